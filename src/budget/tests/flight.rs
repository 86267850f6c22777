use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::{advance, sleep, timeout};

use super::*;
use crate::error::Kind;

fn places(most: u32) -> Budget {
    Budget::unpaced().in_flight(most)
}

/// Requests that last a while each, and the most that were under way at once.
async fn flock(budgets: &Budgets, count: usize, lasts: Duration) -> (Starts, usize) {
    let starts = Starts::new();
    let under_way = Arc::new(Mutex::new((0, 0)));
    let mut tasks = JoinSet::new();
    for who in 0..count {
        let (budgets, starts, under_way) = (budgets.clone(), starts.clone(), under_way.clone());
        tasks.spawn(async move {
            let passage = turn_with_slot(&budgets, &example()).await.spend();
            starts.note(who);
            {
                let mut under_way = under_way.lock().unwrap();
                under_way.0 += 1;
                under_way.1 = under_way.1.max(under_way.0);
            }
            sleep(lasts).await;
            under_way.lock().unwrap().0 -= 1;
            drop(passage);
        });
        tokio::task::yield_now().await;
    }
    tasks.join_all().await;
    let most = under_way.lock().unwrap().1;
    (starts, most)
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_most_are_in_flight_and_places_go_in_order() {
    for (budget, most) in [
        (places(3), 3),
        (Budget::per_second(100).in_flight(3), 3),
        (Budget::per_second(100).burst(50).in_flight(1), 1),
    ] {
        let (starts, seen) = flock(&only(budget), 100, ms(500)).await;
        assert_eq!(seen, most);
        assert_eq!(starts.order(), (0..100).collect::<Vec<_>>());
        let ideal = 100_usize.div_ceil(most) as u128 * 500;
        let took = starts.times()[99].as_millis() + 500;
        assert!(took <= ideal + 100, "{took} of {ideal}");
    }
    let (_, seen) = flock(&only(Budget::per_second(100).burst(50)), 100, ms(500)).await;
    assert!(seen >= 50, "without a most in flight: {seen}");
}

#[tokio::test(start_paused = true)]
async fn a_place_is_held_until_the_passage_is_dropped() {
    let budgets = only(places(2));
    let held = [(); 2].map(|()| budgets.try_pass_for(&example()).unwrap());
    assert!(budgets.try_pass_for(&example()).is_none());
    assert!(timeout(ms(10_000), turn_with_slot(&budgets, &example())).await.is_err());
    drop(held);
    assert!(budgets.try_pass_for(&example()).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_for_a_place_costs_nothing() {
    let budgets = only(Budget::per_second(1).burst(3).in_flight(1));
    let held = budgets.try_pass_for(&example()).unwrap();
    for _ in 0..100 {
        assert!(timeout(ms(1), turn_with_slot(&budgets, &example())).await.is_err());
    }
    drop(held);
    let first = budgets.try_pass_for(&example()).unwrap();
    drop(first);
    assert!(budgets.try_pass_for(&example()).is_some());
    assert_eq!(budgets.queue(&example()).idle(), (0, true));
}

#[tokio::test(start_paused = true)]
async fn who_has_no_time_is_told_of_the_full_house_and_of_a_likely_wait() {
    let budgets = only(places(1));
    for _ in 0..20 {
        let passage = budgets.try_pass_for(&example()).unwrap();
        advance(ms(400)).await;
        drop(passage);
    }
    let held = budgets.try_pass_for(&example()).unwrap();
    let error = budgets.turn_for(&example(), Duration::ZERO).now_or_never().unwrap().err().unwrap();
    assert_eq!(error.kind(), Kind::BudgetExceeded);
    assert!(error.to_string().contains("by what is in flight there"), "{error}");
    assert_eq!(error.retry_after(), Some(ms(400)));
    let mut turn = budgets.turn_for(&example(), ms(100)).await.unwrap();
    assert!(timeout(ms(100), turn.slot()).await.is_err());
    let error = turn.overdue();
    assert!(error.to_string().contains("in flight there lasted too long"), "{error}");
    assert_eq!(error.retry_after(), Some(ms(400)));
    drop((turn, held));
}

#[tokio::test(start_paused = true)]
async fn a_site_with_something_in_flight_is_not_forgotten() {
    let budgets = Budgets::builder().default(places(1)).max_sites(16).build().unwrap();
    let held = budgets.try_pass_for(&example()).unwrap();
    for host in 0..1_000 {
        let _ = budgets.try_pass_for(&url(&format!("http://h{host}.test")));
        advance(ms(10)).await;
    }
    assert!(budgets.counts().evicted > 900);
    assert!(budgets.try_pass_for(&example()).is_none());
    drop(held);
    assert!(budgets.try_pass_for(&example()).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_keeps_its_place_no_longer_than_its_slot_is_good() {
    let budgets = only(Budget::per_second(2).in_flight(1));
    let mut failed = budgets.try_pass_for(&example()).unwrap();
    let site = Site::of(&example()).unwrap();
    assert!(timeout(ms(499), failed.give_back()).await.is_err());
    assert!(budgets.gate(&site, None, &[]).lets(&mut failed));
    let began = Instant::now();
    failed.give_back().await;
    assert!(began.elapsed() <= ms(2), "{:?}", began.elapsed());
    assert!(!budgets.gate(&site, None, &[]).lets(&mut failed));
    assert!(budgets.try_pass_for(&example()).is_some(), "its place is free");
    let mut open = Passage::without_limit(At::default());
    assert!(timeout(PATIENT, open.give_back()).await.is_err());
}
