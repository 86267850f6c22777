use http::{HeaderMap, StatusCode};
use tokio::task::JoinSet;
use tokio::time::{advance, sleep, timeout};

use super::*;
use crate::error::Kind;

fn keys(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|name| (*name).into()).collect()
}

impl Budgets {
    fn try_pass_with(&self, url: &str, names: &[&str]) -> Option<Passage> {
        self.gate(&Site::of(&super::url(url)).unwrap(), Some(80), &keys(names)).try_pass()
    }

    async fn pass_with(&self, url: &str, names: &[&str]) -> Passage {
        let (site, keys) = (Site::of(&super::url(url)).unwrap(), keys(names));
        let mut turn = self.gate(&site, Some(80), &keys).turn(PATIENT).unwrap();
        turn.slot().await.unwrap();
        turn.spend()
    }
}

const A: &str = "http://a.test";
const B: &str = "http://b.test";

#[tokio::test(start_paused = true)]
async fn a_request_passes_all_of_its_budgets_or_none() {
    let budgets = Budgets::builder()
        .site("a.test", Budget::per_second(10))
        .key("one", Budget::per_second(1))
        .default_key(Budget::per_second(2))
        .build()
        .unwrap();
    assert!(budgets.try_pass_with(A, &["one", "x"]).is_some());
    advance(ms(500)).await;
    // The site and x would let it, one does not; and nothing was charged to the others.
    assert!(budgets.try_pass_with(A, &["x", "one"]).is_none());
    assert!(budgets.try_pass_with(A, &["x"]).is_some());
    assert!(budgets.try_pass_with(B, &["y"]).is_some(), "each key has a bucket of its own");
    assert!(budgets.try_pass_with(B, &["y"]).is_none());
    advance(ms(100)).await;
    assert!(budgets.try_pass_with(A, &[]).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_key_without_a_rule_is_not_limited() {
    let budgets = Budgets::unlimited();
    for _ in 0..100 {
        drop(budgets.pass_with(A, &["one"]).await);
    }
    let budgets = Budgets::builder().key("one", Budget::per_hour(1)).build().unwrap();
    drop(budgets.pass_with(A, &["one"]).await);
    drop(budgets.pass_with(A, &["two"]).await);
    assert!(budgets.try_pass_with(B, &["one"]).is_none(), "one key is one for all sites");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_for_one_charges_none() {
    let budgets = Budgets::builder()
        .default(Budget::per_second(1))
        .key("one", Budget::per_hour(1))
        .build()
        .unwrap();
    drop(budgets.pass_with(B, &["one"]).await);
    let (site, keys) = (Site::parse("a.test").unwrap(), keys(&["one"]));
    for _ in 0..10 {
        let error = budgets.gate(&site, None, &keys).turn(ms(10_000)).err().unwrap();
        assert_eq!(error.kind(), Kind::BudgetExceeded);
        assert!(error.to_string().contains("for one by its rate"), "{error}");
        assert_eq!(error.retry_after().unwrap().as_secs(), 3_600);
    }
    assert!(budgets.try_pass_with(A, &[]).is_some());
}

#[tokio::test(start_paused = true)]
async fn requests_with_the_same_keys_in_any_order_all_come_through() {
    let budgets = Budgets::builder()
        .default(Budget::per_second(200))
        .default_key(Budget::per_second(100).in_flight(2))
        .build()
        .unwrap();
    let mut random = Random(5);
    let names = ["k1", "k2", "k3", "k4"];
    let mut tasks = JoinSet::new();
    for _ in 0..1_000 {
        let (from, count) = (random.below(4) as usize, 1 + random.below(4) as usize);
        let mut chosen: Vec<_> = (from..from + count).map(|nth| names[nth % 4]).collect();
        if random.below(2) == 0 {
            chosen.reverse();
        }
        let (budgets, to) = (budgets.clone(), [A, B][random.below(2) as usize]);
        let gives_up = (random.below(5) == 0).then(|| ms(random.below(3_000)));
        tasks.spawn(timeout(gives_up.unwrap_or(PATIENT), async move {
            let passage = budgets.pass_with(to, &chosen).await;
            sleep(ms(3)).await;
            drop(passage);
        }));
        tokio::task::yield_now().await;
    }
    let began = Instant::now();
    tasks.join_all().await;
    assert!(began.elapsed() < ms(30_000), "{:?}", began.elapsed());
    for name in names {
        let queue = budgets.0.find_key(name, At::default()).unwrap();
        assert_eq!(queue.idle(), (0, true), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_passed_in_the_order_of_their_names() {
    let names: Vec<_> = (0..60).map(|nth| format!("key {}", nth * 7 % 60)).collect();
    let mut sorted: Vec<_> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let site = Site::parse("a.test").unwrap();
    for first in [0, 30] {
        // Another process meets them in another order.
        let budgets = Budgets::builder().default_key(Budget::per_second(1)).build().unwrap();
        let all: Vec<Box<str>> =
            names.iter().cycle().skip(first).take(60).map(|name| name.as_str().into()).collect();
        let keys: Vec<_> = budgets.gate(&site, None, &all).key_names().map(str::to_owned).collect();
        assert_eq!(keys, sorted);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_without_room_for_buckets_of_their_own_are_passed_once_and_last() {
    let budgets = Budgets::builder().default_key(Budget::per_second(1)).max_sites(16);
    let budgets = budgets.build().unwrap();
    let names: Vec<_> = (0..200).map(|nth| format!("key {nth}").into()).collect();
    let site = Site::parse("a.test").unwrap();
    // All rest on something, so that none is forgotten.
    let _ = budgets.gate(&site, None, &names).try_pass().unwrap();
    for from in 0..100 {
        let some = &names[from..from + 100];
        let gate = budgets.gate(&site, None, some);
        let (mut own, mut overflow) = (Vec::new(), Vec::new());
        for queue in gate.queues() {
            let list = if queue.is_overflow { &mut overflow } else { &mut own };
            assert!(!list.contains(&Arc::as_ptr(queue)), "one is there twice");
            list.push(Arc::as_ptr(queue));
        }
        let kinds: Vec<_> = gate.queues().map(|queue| queue.is_overflow).collect();
        assert!(kinds.is_sorted() && overflow.is_sorted(), "{kinds:?}");
        assert!(!gate.would_pass());
    }
}

#[tokio::test(start_paused = true)]
async fn each_of_a_requests_budgets_holds() {
    let budgets = Budgets::builder()
        .default(Budget::per_second(50))
        .default_key(Budget::per_second(20))
        .build()
        .unwrap();
    let (mut tasks, begin) = (JoinSet::new(), Starts::new());
    let seen: Vec<_> = (0..4).map(|_| Starts { seen: Arc::default(), ..begin.clone() }).collect();
    for who in 0..400 {
        let (budgets, seen) = (budgets.clone(), seen.clone());
        tasks.spawn(async move {
            let (site, key) = (who % 2, who / 2 % 2);
            drop(budgets.pass_with([A, B][site], &[["x", "y"][key]]).await);
            seen[site].note(who);
            seen[2 + key].note(who);
        });
        tokio::task::yield_now().await;
    }
    tasks.join_all().await;
    for (nth, interval) in [20, 20, 50, 50].into_iter().enumerate() {
        let excess = seen[nth].excess(ms(interval), 1);
        assert!(excess <= 0.001, "{nth}: {excess}");
    }
    // The keys are what there is less of, and are used in full.
    assert!(seen[2].used(ms(50), 1) > 0.95, "{}", seen[2].used(ms(50), 1));
    assert!(seen[3].used(ms(50), 1) > 0.95, "{}", seen[3].used(ms(50), 1));
}

#[tokio::test(start_paused = true)]
async fn a_slow_key_does_not_hold_up_its_site() {
    let budgets = Budgets::builder()
        .default(Budget::per_second(10))
        .key("slow", Budget::per_minute(1))
        .key("busy", Budget::unpaced().in_flight(1))
        .build()
        .unwrap();
    let held = (budgets.pass_with(A, &["slow"]).await, budgets.pass_with(A, &["busy"]).await);
    let waiters: Vec<_> = (0..20)
        .map(|nth| {
            let budgets = budgets.clone();
            let key = ["slow", "busy"][nth % 2];
            tokio::spawn(async move { drop(budgets.pass_with(A, &[key]).await) })
        })
        .collect();
    sleep(ms(150)).await;
    let began = Instant::now();
    for _ in 0..100 {
        drop(budgets.pass_with(A, &[]).await);
    }
    assert!(began.elapsed() <= ms(10_100), "{:?}", began.elapsed());
    drop(held);
    for waiter in waiters {
        waiter.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_or_full_site_does_not_hold_up_a_key() {
    for budget in [Budget::per_minute(1), Budget::per_second(100).in_flight(1)] {
        let budgets = Budgets::builder()
            .site("a.test", budget)
            .default(Budget::per_second(100))
            .key("one", Budget::per_second(100))
            .build()
            .unwrap();
        let held = budgets.pass_with(A, &["one"]).await;
        let waiters: Vec<_> = (0..20)
            .map(|_| {
                let budgets = budgets.clone();
                tokio::spawn(async move { drop(budgets.pass_with(A, &["one"]).await) })
            })
            .collect();
        sleep(ms(3_000)).await;
        let began = Instant::now();
        for _ in 0..1_000 {
            drop(budgets.pass_with(B, &["one"]).await);
        }
        // All of the key's rate, but for a moment when the site's slot is had.
        assert!(began.elapsed() <= ms(10_500), "{:?}", began.elapsed());
        drop(held);
        let began = Instant::now();
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert!(began.elapsed() <= ms(20 * 60_000), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn who_waited_for_a_far_site_keeps_its_slot_until_it_has_the_key_again() {
    let budgets = Budgets::builder()
        .site("a.test", Budget::per_minute(1))
        .default(Budget::per_second(100))
        .key("one", Budget::per_second(100))
        .build()
        .unwrap();
    drop(budgets.pass_with(A, &[]).await);
    let began = Instant::now();
    let starts = Starts::new();
    let spawn = |who: usize, keys: &'static [&'static str]| {
        let (budgets, starts) = (budgets.clone(), starts.clone());
        tokio::spawn(async move {
            drop(budgets.pass_with(A, keys).await);
            starts.note(who);
        })
    };
    let first = spawn(1, &["one"]);
    sleep(ms(100)).await;
    let second = spawn(2, &[]);
    // The key is busy all the time.
    while began.elapsed() < ms(121_000) {
        drop(budgets.pass_with(B, &["one"]).await);
    }
    let (first, second) = (first.await, second.await);
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(starts.order(), [1, 2]);
    assert!(starts.times()[0] <= ms(60_200), "{:?}", starts.times());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_key_does_not_count_at_its_site() {
    let budgets = Budgets::builder()
        .site("a.test", Budget::per_second(10))
        .key("slow", Budget::per_minute(1))
        .key("full", Budget::unpaced().in_flight(1))
        .most_waiting(110)
        .build()
        .unwrap();
    let held = (budgets.pass_with(A, &["slow"]).await, budgets.pass_with(A, &["full"]).await);
    let spawn = |keys: &'static [&'static str]| {
        let budgets = budgets.clone();
        tokio::spawn(async move { drop(budgets.pass_with(A, keys).await) })
    };
    let aside: Vec<_> = (0..200).map(|nth| spawn([&["slow"], &["full"]][nth % 2])).collect();
    sleep(ms(1_000)).await;
    let site = Site::parse("a.test").unwrap();
    let turn = budgets.gate(&site, None, &[]).turn(ms(200)).expect("it need not wait");
    drop(turn);
    assert!(budgets.try_pass_with(A, &[]).is_some(), "the way is free");
    // Those who wait for the site itself count, whatever key they had to pass before.
    let waiting: Vec<_> = (0..50).map(|_| spawn(&["quick"])).collect();
    tokio::task::yield_now().await;
    let error = budgets.gate(&site, None, &[]).turn(ms(4_000)).err().expect("a long wait");
    assert!((4_900..=5_200).contains(&error.retry_after().unwrap().as_millis()), "{error}");
    for waiting in waiting {
        waiting.await.unwrap();
    }
    aside.iter().for_each(|waiter| waiter.abort());
    for waiter in aside {
        let _ = waiter.await;
    }
    drop(held);
    assert_eq!(budgets.queue(&url(A)).idle(), (0, true));
    assert_eq!(budgets.queue(&url(A)).state().aside, 0);
}

#[tokio::test(start_paused = true)]
async fn a_paused_site_does_not_hold_up_a_key_and_its_waiter_comes_first_again() {
    let budgets = Budgets::builder()
        .default(Budget::per_second(100))
        .key("one", Budget::per_second(5))
        .build()
        .unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "100".parse().unwrap());
    let passage = budgets.try_pass_with(A, &[]).unwrap();
    let site = Site::parse("a.test").unwrap();
    budgets.answered(&site, None, &passage, StatusCode::TOO_MANY_REQUESTS, &headers);
    let (began, starts) = (Instant::now(), Starts::new());
    let waiter = tokio::spawn({
        let (budgets, starts) = (budgets.clone(), starts.clone());
        async move {
            drop(budgets.pass_with(A, &["one"]).await);
            starts.note(0);
        }
    });
    tokio::task::yield_now().await;
    // The key is asked for all the time, and goes to its other requests at its full rate.
    while began.elapsed() < ms(102_000) {
        drop(budgets.pass_with(B, &["one"]).await);
        starts.note(1);
    }
    waiter.await.unwrap();
    let others = starts.order().iter().filter(|who| **who == 1).count();
    assert!(others >= 508, "{others}");
    assert!(starts.excess(ms(200), 1) <= 0.001);
    let at = starts.times()[starts.order().iter().position(|who| *who == 0).unwrap()];
    assert!((100_000..100_450).contains(&at.as_millis()), "{at:?}");
}
