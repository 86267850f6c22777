//! The same situations with a guard off, to see that the tests of it can fail.

use tokio::time::{sleep, timeout};

use super::super::local::{Limiter, Local};
use super::super::queue::Queue;
use super::*;

fn queue(budgets: &Budgets) -> Arc<Queue> {
    budgets.0.find(&Site::of(&example()).unwrap(), None).unwrap()
}

#[tokio::test(start_paused = true)]
async fn without_the_queue_refusals_storm_and_shuffle() {
    let local = Arc::new(Local::new(ms(2), 1.try_into().unwrap()).unwrap());
    let (epoch, starts) = (super::super::Epoch::start(), Starts::new());
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
            Err(_) => queue(&budgets).schedule().forget_kept(),
        }
    }
    assert!(starts.used(ms(2)) < 0.8, "{}", starts.used(ms(2)));
}

#[tokio::test(start_paused = true)]
async fn without_reservation_late_wakeups_cost_the_rate() {
    let local = Local::new(ms(2), 1.try_into().unwrap()).unwrap();
    let (epoch, starts) = (super::super::Epoch::start(), Starts::new());
    for who in 0..1_000 {
        while local.try_reserve(epoch.now(), epoch.now()).is_none() {
            sleep(ms(2) + Duration::from_micros(100)).await;
        }
        starts.note(who);
    }
    assert!(starts.used(ms(2)) < 0.97, "{}", starts.used(ms(2)));
}

#[tokio::test(start_paused = true)]
async fn without_the_freshness_test_eviction_exceeds_the_rate() {
    let limits = Budget::per_second(1).burst(3);
    let starts = Starts::new();
    for round in 0..10 {
        let budgets = only(limits);
        while budgets.try_pass(&example()).is_some() {
            starts.note(round);
        }
        sleep(ms(50)).await;
    }
    assert!(starts.excess(ms(1_000), 3) > 20.0);
}

#[tokio::test(start_paused = true)]
async fn without_lapsing_an_empty_pool_sends_stale_slots() {
    let budgets = only(Budget::per_second(10));
    let turn = turn_with_slot(&budgets, &example()).await;
    sleep(ms(5_000)).await;
    drop(turn);
    let queue = queue(&budgets);
    let now = queue.now();
    assert_eq!(queue.schedule().kept(now), None, "the guard");
    queue.schedule().keep(now.before(ms(5_000)));
    assert!(queue.schedule().kept(now.before(ms(4_950))).is_some(), "an old slot is young then");
}
