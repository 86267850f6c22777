use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::{advance, sleep, sleep_until, timeout};

use super::*;
use crate::error::Kind;

/// Waiters that arrive in order, the first `early` at once and the others one a millisecond.
async fn crowd(
    budgets: &Budgets,
    count: usize,
    early: usize,
    gives_up: impl Fn(usize) -> Option<Duration>,
) -> Starts {
    let starts = Starts::new();
    let mut tasks = JoinSet::new();
    for who in 0..count {
        if who >= early {
            sleep(ms(1)).await;
        }
        let (budgets, starts, patience) = (budgets.clone(), starts.clone(), gives_up(who));
        tasks.spawn(async move {
            let through = async {
                let turn = turn_with_slot(&budgets, &example()).await;
                starts.note(who);
                drop(turn.spend());
            };
            timeout(patience.unwrap_or(PATIENT), through).await
        });
        tokio::task::yield_now().await;
    }
    while tasks.join_next().await.is_some() {}
    starts
}

#[tokio::test(start_paused = true)]
async fn a_thousand_waiters_go_in_order_at_the_full_rate() {
    for burst in [1, 10] {
        let budgets = only(Budget::per_second(500).burst(burst as u32));
        let starts = crowd(&budgets, 1_000, 500, |_| None).await;
        assert_eq!(starts.order(), (0..1_000).collect::<Vec<_>>());
        assert!(starts.excess(ms(2), burst) <= 0.001, "{}", starts.excess(ms(2), burst));
        assert!(starts.used(ms(2), burst) >= 0.97, "{}", starts.used(ms(2), burst));
        assert!(checks(&budgets, &example()) <= 2_000);
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_is_used_though_half_of_the_waiters_are_cancelled() {
    for burst in [1, 10] {
        let budgets = only(Budget::per_second(500).burst(burst as u32));
        let random = Mutex::new(Random(7));
        let some = |who| (who % 2 == 0).then(|| ms(random.lock().unwrap().below(2_000)));
        let starts = crowd(&budgets, 1_000, 500, some).await;
        assert!(starts.order().is_sorted());
        assert!(starts.times().len() >= 500);
        assert!(starts.excess(ms(2), burst) <= 0.001);
        assert!(starts.used(ms(2), burst) >= 0.97, "{}", starts.used(ms(2), burst));
    }
}

#[tokio::test(start_paused = true)]
async fn rates_beyond_the_timer_are_used_in_full() {
    let budgets = only(Budget::per_second(5_000));
    let starts = crowd(&budgets, 2_000, 2_000, |_| None).await;
    let interval = Duration::from_micros(200);
    assert!(starts.used(interval, 1) >= 0.97, "{}", starts.used(interval, 1));
    // A tick of the timer is 1 ms, which is five slots.
    assert!(starts.excess(interval, 1) <= 5.001, "{}", starts.excess(interval, 1));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_cancelled_waits_cost_at_most_one_slot() {
    let budgets = only(Budget::per_second(10));
    pass(&budgets, &example()).await;
    let mut random = Random(3);
    for _ in 0..10_000 {
        let wait = ms(random.below(100));
        let _ = timeout(wait, turn_with_slot(&budgets, &example())).await;
    }
    let began = Instant::now();
    pass(&budgets, &example()).await;
    pass(&budgets, &example()).await;
    assert!(began.elapsed() <= ms(201), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_head_leaves_its_slot_to_the_next() {
    let budgets = only(Budget::per_minute(1));
    pass(&budgets, &example()).await;
    let began = Instant::now();
    for _ in 0..5 {
        assert!(timeout(ms(10), turn_with_slot(&budgets, &example())).await.is_err());
    }
    pass(&budgets, &example()).await;
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_judged_on_arrival_and_nothing_is_charged() {
    let budgets = only(Budget::per_second(1));
    pass(&budgets, &example()).await;
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let budgets = budgets.clone();
            tokio::spawn(async move { pass(&budgets, &example()).await })
        })
        .collect();
    tokio::task::yield_now().await;
    let began = Instant::now();
    for _ in 0..100 {
        let error = budgets.turn_for(&example(), ms(3_900)).await.err().unwrap();
        assert_eq!(error.kind(), Kind::BudgetExceeded);
        assert!(error.to_string().contains("example.com"), "{error}");
        let after = error.retry_after().unwrap();
        assert!((ms(3_990)..=ms(4_000)).contains(&after), "{after:?}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    let mut turn = budgets.turn_for(&example(), ms(4_000)).await.unwrap();
    turn.slot().await.unwrap();
    let waited = began.elapsed();
    assert!((ms(3_990)..=ms(4_001)).contains(&waited), "{waited:?}");
    drop(turn.spend());
    for waiter in waiting {
        waiter.await.unwrap();
    }
}

/// The wait as it is judged on arrival, by asking with no patience.
fn foretold(budgets: &Budgets) -> Duration {
    match budgets.turn_for(&example(), Duration::ZERO).now_or_never() {
        Some(Err(error)) => error.retry_after().unwrap(),
        _ => Duration::ZERO,
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_had_is_the_wait_foretold() {
    for seed in 1..=20 {
        let mut random = Random(seed * 7_919);
        let budget = Budget::per_second(1 + random.below(50) as u32);
        let budgets = only(budget.burst(1 + random.below(5) as u32));
        if seed % 4 == 0 {
            budgets.slow(&Site::parse("example.com").unwrap(), ms(300), PATIENT);
        }
        let mut tasks = JoinSet::new();
        for _ in 0..100 {
            sleep(ms(random.below(40))).await;
            let (foretold, budgets) = (foretold(&budgets), budgets.clone());
            tasks.spawn(async move {
                let began = Instant::now();
                let turn = turn_with_slot(&budgets, &example()).await;
                (foretold, began.elapsed(), drop(turn.spend()))
            });
            tokio::task::yield_now().await;
        }
        for (foretold, had, ()) in tasks.join_all().await {
            assert!(had.abs_diff(foretold) <= ms(2), "{seed}: {foretold:?} {had:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_budgets_own_longest_wait_holds_for_the_patient() {
    let budgets = only(Budget::per_second(1).max_wait(ms(500)));
    pass(&budgets, &example()).await;
    assert!(budgets.turn_for(&example(), PATIENT).await.is_err());
    advance(ms(600)).await;
    pass(&budgets, &example()).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_pool_stores_up_no_burst() {
    let budgets = only(Budget::per_second(20).burst(3));
    let mut head = turn_with_slot(&budgets, &example()).await;
    let starts = Starts::new();
    let mut tasks = JoinSet::new();
    for who in 0..50 {
        let (budgets, starts) = (budgets.clone(), starts.clone());
        tasks.spawn(async move {
            let turn = turn_with_slot(&budgets, &example()).await;
            starts.note(who);
            drop(turn.spend());
        });
    }
    for _ in 0..50 {
        sleep(head.grace().unwrap() * 2).await;
        head.slot().await.unwrap();
    }
    drop(head.spend());
    tasks.join_all().await;
    let at_once = starts.times().iter().filter(|at| **at < ms(5_040)).count();
    assert!(at_once < 3 + 1, "{at_once} and the head");
    assert!(starts.excess(ms(50), 3) <= 1.001);
}

/// A lapsed slot of a slow site would cost a whole interval: a busy pool would starve it.
#[tokio::test(start_paused = true)]
async fn a_slow_sites_slot_is_kept_until_another_is_due() {
    let budgets = only(Budget::per_minute(15));
    pass(&budgets, &example()).await;
    let mut turn = turn_with_slot(&budgets, &example()).await;
    sleep(ms(3_900)).await;
    assert!(turn.try_slot(), "the lease came late, and before the next slot");
    drop(turn.spend());
    assert!(budgets.try_pass_for(&example()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kept_slot_lapses_after_the_grace() {
    let budgets = only(Budget::per_second(10));
    let mut turn = turn_with_slot(&budgets, &example()).await;
    assert_eq!(turn.grace().unwrap(), ms(100));
    advance(ms(90)).await;
    let began = Instant::now();
    turn.slot().await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let before = checks(&budgets, &example());
    advance(ms(20)).await;
    turn.slot().await.unwrap();
    assert!(checks(&budgets, &example()) > before, "a new slot was reserved");
    assert_eq!(
        only(Budget::per_hour(1)).turn_for(&example(), PATIENT).await.unwrap().grace().unwrap(),
        ms(1_000)
    );
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_taken_only_if_it_is_due() {
    let budgets = only(Budget::per_second(10));
    let mut turn = budgets.turn_for(&example(), PATIENT).await.unwrap();
    assert!(turn.try_slot());
    drop(turn.spend());
    assert!(budgets.try_pass_for(&example()).is_none());
    advance(ms(100)).await;
    let held = budgets.turn_for(&example(), PATIENT).await.unwrap();
    assert!(budgets.try_pass_for(&example()).is_none(), "somebody is in the queue");
    drop(held);
    assert!(budgets.try_pass_for(&example()).is_some());
    assert!(budgets.try_pass_for(&example()).is_none());
}

/// One request's life: it may lose patience anywhere, and waits for its lease while it holds the
/// turn, taking another slot when the one it has went stale.
async fn live(budgets: Budgets, starts: Starts, lease_after: Duration) {
    let mut turn = turn_with_slot(&budgets, &example()).await;
    let lease_at = Instant::now() + lease_after;
    while timeout(turn.grace().unwrap(), sleep_until(lease_at)).await.is_err() {
        turn.slot().await.unwrap();
    }
    starts.note(0);
    drop(turn.spend());
}

#[tokio::test(start_paused = true)]
async fn whatever_is_dropped_at_any_moment_nothing_is_left_behind() {
    for seed in 1..=10 {
        let mut random = Random(seed * 104_729);
        let burst = 1 + random.below(3) as usize;
        let budgets = only(Budget::per_second(50).burst(burst as u32));
        let (starts, mut tasks) = (Starts::new(), JoinSet::new());
        for _ in 0..300 {
            sleep(ms(random.below(30))).await;
            let late = if random.below(4) == 0 { random.below(50) } else { random.below(3) };
            let life = live(budgets.clone(), starts.clone(), ms(late));
            tasks.spawn(timeout(ms(random.below(400)), life));
        }
        while tasks.join_next().await.is_some() {}
        assert!(starts.times().len() > 50);
        assert!(starts.excess(ms(20), burst) <= 1.001, "{}", starts.excess(ms(20), burst));
        let queue = budgets.queue(&example());
        assert_eq!(queue.idle(), (0, true));
        advance(ms(1_000)).await;
        assert!(queue.is_fresh(queue.now()));
        assert!(budgets.try_pass_for(&example()).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_kept_for_later_is_not_taken_early() {
    let budgets = only(Budget::per_second(1));
    pass(&budgets, &example()).await;
    assert!(timeout(ms(10), turn_with_slot(&budgets, &example())).await.is_err());
    assert!(budgets.try_pass_for(&example()).is_none());
    advance(ms(1_000)).await;
    assert!(budgets.try_pass_for(&example()).is_some());
}

#[tokio::test(start_paused = true)]
async fn lateness_is_forgiven_only_to_those_who_waited() {
    let budgets = only(Budget::per_second(5_000));
    pass(&budgets, &example()).await;
    advance(ms(4)).await;
    assert!(budgets.try_pass_for(&example()).is_some());
    assert!(budgets.try_pass_for(&example()).is_none());
}

#[tokio::test(start_paused = true)]
async fn jitter_makes_gaps_longer_and_never_shorter() {
    let budgets = only(Budget::per_second(10).jitter(0.5));
    let starts = crowd(&budgets, 300, 300, |_| None).await;
    let gaps: Vec<_> =
        starts.times().windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    // The timer counts in milliseconds.
    assert!(gaps.iter().all(|gap| (99..=151).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap > 140) && gaps.iter().any(|gap| *gap < 110), "{gaps:?}");
    assert!(starts.excess(ms(100), 1) <= 0.011);
    let used = starts.used(ms(100), 1);
    assert!((0.76..0.84).contains(&used), "half of the fraction on average: {used}");
    assert_eq!(starts.order(), (0..300).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn more_than_may_wait_are_turned_away_at_once() {
    let limits = Budgets::builder().default(Budget::per_second(10)).most_waiting(3);
    let budgets = limits.build().unwrap();
    pass(&budgets, &example()).await;
    let waiting = [(); 3].map(|()| budgets.turn_for(&example(), PATIENT).now_or_never().unwrap());
    assert!(waiting.iter().all(Result::is_ok));
    let error = budgets.turn_for(&example(), PATIENT).await.err().unwrap();
    let told = "3 requests wait for example.com already, next chance in 400.0ms";
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::BudgetExceeded, told));
    assert_eq!(budgets.counts().crowded_out, 1);
    assert!(budgets.turn_for(&url("http://other.test"), PATIENT).await.is_ok());
    drop(waiting);
    assert!(budgets.turn_for(&example(), PATIENT).await.is_ok());
}
