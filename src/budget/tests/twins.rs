//! The same situations with a guard off, to see that the tests of it can fail.

use tokio::time::{sleep, timeout};

use super::super::local::{Limiter, Local};
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
