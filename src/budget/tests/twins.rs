//! The same situations with a guard off, to see that the tests of it can fail.

use tokio::time::{sleep, timeout};

use super::super::local::{Limiter, Local};
use super::super::pause::{Pause, Probe};
use super::super::place::{Holding, Place, Readiness};
use super::super::queue::Step;
use super::*;

fn queue(budgets: &Budgets) -> Arc<Queue> {
    budgets.queue(&example())
}

fn local(budget: Budget) -> Local {
    Local::new(&budget.pace().unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn without_the_queue_refusals_storm_and_shuffle() {
    let local = Arc::new(local(Budget::per_second(500)));
    let (epoch, starts) = (super::super::clock::Epoch::start(), Starts::new());
    let mut random = Random(11);
    let waiters: Vec<_> = (0..1_000)
        .map(|who| {
            let (local, starts, late) = (Arc::clone(&local), starts.clone(), random.below(3));
            tokio::spawn(async move {
                while local.try_reserve(epoch.now(), epoch.now()).is_none() {
                    sleep(ms(1 + late)).await;
                }
                starts.note(who);
            })
        })
        .collect();
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert!(!starts.order().is_sorted());
    assert!(local.checks.load(std::sync::atomic::Ordering::Relaxed) > 100_000);
}

#[tokio::test(start_paused = true)]
async fn without_the_queue_owning_slots_cancelled_waits_cost_the_rate() {
    let budgets = only(Budget::per_second(500));
    let starts = Starts::new();
    for who in 0..1_000 {
        let leaves = who % 2 == 0;
        let patience = if leaves { ms(1) } else { PATIENT };
        match timeout(patience, turn_with_slot(&budgets, &example())).await {
            Ok(turn) => {
                starts.note(who);
                drop(turn.spend());
            }
            Err(_) => drop(queue(&budgets).state().schedule.forget_kept()),
        }
    }
    assert!(starts.used(ms(2), 1) < 0.8, "{}", starts.used(ms(2), 1));
}

#[tokio::test(start_paused = true)]
async fn without_reservation_late_wakeups_cost_the_rate() {
    let local = local(Budget::per_second(500));
    let (epoch, starts) = (super::super::clock::Epoch::start(), Starts::new());
    for who in 0..1_000 {
        while local.try_reserve(epoch.now(), epoch.now()).is_none() {
            sleep(ms(2) + Duration::from_micros(100)).await;
        }
        starts.note(who);
    }
    assert!(starts.used(ms(2), 1) < 0.97, "{}", starts.used(ms(2), 1));
}

#[tokio::test(start_paused = true)]
async fn without_the_freshness_test_eviction_exceeds_the_rate() {
    let limits = Budget::per_second(1).burst(3);
    let starts = Starts::new();
    for round in 0..10 {
        let budgets = only(limits);
        while budgets.try_pass_for(&example()).is_some() {
            starts.note(round);
        }
        sleep(ms(50)).await;
    }
    assert!(starts.excess(ms(1_000), 3) > 20.0);
}

#[tokio::test(start_paused = true)]
async fn without_the_queue_owning_slots_an_empty_pool_hoards_them() {
    let local = local(Budget::per_second(20).burst(3));
    let (epoch, starts) = (super::super::clock::Epoch::start(), Starts::new());
    let mut owned = 0;
    for _ in 0..100 {
        owned += usize::from(local.try_reserve(epoch.now(), epoch.now()).is_some());
        sleep(ms(50)).await;
    }
    (0..owned).for_each(|who| starts.note(who));
    assert!(starts.excess(ms(50), 3) > 50.0, "{}", starts.excess(ms(50), 3));
}

#[tokio::test(start_paused = true)]
async fn without_the_queue_length_the_wait_is_foretold_too_short() {
    let budgets = only(Budget::per_second(10));
    pass(&budgets, &example()).await;
    let waiters: Vec<_> = (0..10)
        .map(|_| {
            let budgets = budgets.clone();
            tokio::spawn(async move { pass(&budgets, &example()).await })
        })
        .collect();
    tokio::task::yield_now().await;
    let (queue, began) = (queue(&budgets), Instant::now());
    let now = queue.now();
    let (alone, honest) = {
        let schedule = &queue.state().schedule;
        (schedule.forecast(now, 0, 0).since(now), schedule.forecast(now, 10, 0).since(now))
    };
    pass(&budgets, &example()).await;
    assert!(alone < ms(101) && began.elapsed() > ms(1_000), "{alone:?}");
    assert!(began.elapsed().abs_diff(honest) <= ms(1), "{honest:?}");
    for waiter in waiters {
        waiter.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn without_looking_again_a_sleeping_head_misses_that_its_site_was_slowed() {
    let budgets = only(Budget::per_second(10));
    pass(&budgets, &example()).await;
    let asleep = timeout(ms(10), turn_with_slot(&budgets, &example())).await;
    assert!(asleep.is_err());
    let queue = queue(&budgets);
    let now = queue.now();
    let slot = queue.state().schedule.forecast(now, 0, 0);
    budgets.slow(&Site::parse("example.com").unwrap(), ms(3_000), PATIENT);
    assert!(slot.since(now) <= ms(90), "the slot that it sleeps to");
    assert!(
        queue.state().schedule.kept().unwrap().since(now) >= ms(2_980),
        "what it sees after looking"
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_time_of_sending_each_refusal_under_way_is_a_pause_of_its_own() {
    let at = |ms| At::default().after(super::ms(ms));
    let (mut guarded, mut naive) = (Pause::none(), Pause::none());
    for answer in 0..20 {
        let now = at(1_000 + answer);
        let _ = guarded.refused(at(900), now, None);
        let _ = naive.refused(now, now, None);
    }
    assert_eq!((guarded.nth, naive.nth), (1, 20));
    assert!(guarded.until < at(4_000) && naive.until > at(60_000), "one doubled twenty times");
}

#[tokio::test(start_paused = true)]
async fn without_the_books_of_the_overflow_a_site_gets_a_second_burst() {
    let budgets = only(Budget::per_second(1).burst(3));
    let limit = &budgets.queue(&example()).limit;
    let fresh = || Arc::new(Queue::new("example.com", Arc::clone(limit)));
    let overflow = fresh();
    let now = overflow.now();
    let passes = |queue: &Arc<Queue>| {
        let take = |_: &usize| {
            let mut state = queue.state();
            let goes = queue.look(&mut state, now, now) == Step::Go;
            drop(goes.then(|| queue.spend(&mut state, now)));
            goes
        };
        (0..10).take_while(take).count()
    };
    assert_eq!(passes(&overflow), 3);
    let (naive, guarded) = (fresh(), fresh());
    guarded.resume_from(&overflow, now);
    assert_eq!((passes(&naive), passes(&guarded)), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn without_stepping_aside_a_paused_site_holds_up_a_key() {
    let budgets = only(Budget::per_second(10));
    let refused = budgets.try_pass_for(&example()).unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert("retry-after", "100".parse().unwrap());
    let (site, status) = (Site::of(&example()).unwrap(), http::StatusCode::TOO_MANY_REQUESTS);
    budgets.answered(&site, None, &refused, status, &headers);
    for holding in [Holding::Nothing, Holding::Buckets] {
        let (key, site) = (budgets.queue(&url("http://key.test")), budgets.queue(&example()));
        let enter = |queue: &Arc<Queue>, ticket| {
            Place::enter(queue, "x", ticket, site.now(), (site.now(), PATIENT)).unwrap().0
        };
        let (mut of_key, mut of_site) = (enter(&key, 1), enter(&site, 1));
        of_key.ready(Holding::Nothing).await.unwrap();
        let far = timeout(ms(50), of_site.ready(holding)).await;
        if far.is_ok_and(|far| far.unwrap() == Readiness::Far) {
            of_key.step_aside();
        }
        let other = timeout(ms(50_000), enter(&key, 2).ready(Holding::Nothing)).await;
        assert_eq!(
            other.is_ok(),
            holding == Holding::Buckets,
            "whether another request gets at the key"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_probe_all_go_at_once_when_a_pause_ends() {
    let run = async |guarded: bool| {
        let budgets = Budgets::unlimited();
        let refused = budgets.try_pass_for(&example()).unwrap();
        let (site, headers) = (Site::of(&example()).unwrap(), http::HeaderMap::new());
        let status = http::StatusCode::SERVICE_UNAVAILABLE;
        let pause = budgets.answered(&site, None, &refused, status, &headers).unwrap();
        sleep(pause).await;
        let queue = budgets.queue(&example());
        let passages: Vec<_> = (0..50)
            .filter_map(|_| {
                if !guarded {
                    queue.state().pause.as_mut().unwrap().probe = Probe::Answered;
                }
                budgets.try_pass_for(&example())
            })
            .collect();
        passages.len()
    };
    assert_eq!((run(true).await, run(false).await), (1, 50));
}
