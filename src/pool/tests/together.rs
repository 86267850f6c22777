//! Many who are asked for in one call.

use futures_util::future::join_all;

use super::*;
use crate::outcome::Outcome;
use crate::site::Site;
use crate::store::MAX_BATCH;

fn many(number: usize) -> Vec<String> {
    (0..number).map(|number| format!("e{number:04}")).collect()
}

async fn pool_of_many(number: usize) -> (Pool, Wire) {
    let ids = many(number);
    pool_of(&ids.iter().map(String::as_str).collect::<Vec<_>>(), |builder| builder).await
}

fn at(site: &str) -> Wants {
    Wants { site: Site::parse(site), ..wants() }
}

async fn now(pool: &Pool, wants: Wants) -> Option<Lease> {
    match pool.lease_now(wants, seconds(30)).await.unwrap().0 {
        Now::Lease(lease) => Some(lease),
        Now::Later(_) => None,
    }
}

/// Calls for leases of 64 tasks that ask at the same moment, a store that takes 10 ms for each.
async fn calls_for_64(wants: impl Fn(usize) -> Wants) -> usize {
    let (pool, wire) = pool_of_many(64).await;
    wire.always(Call::Acquire, Fault::Late(millis(10)));
    let leases = join_all((0..64).map(|nth| now(&pool, wants(nth)))).await;
    assert_eq!(leases.iter().flatten().count(), 64);
    assert_eq!(leased(&wire).await, 64);
    wire.made(Call::Acquire).len()
}

#[tokio::test(start_paused = true)]
async fn sixty_four_at_once_need_few_calls() {
    let calls = calls_for_64(|_| wants()).await;
    assert!(calls <= 1 + 64 / MAX_BATCH, "{calls} calls");
}

/// The twin: those who all want something else need a call each.
#[tokio::test(start_paused = true)]
async fn sixty_four_with_wants_of_their_own_need_a_call_each() {
    assert_eq!(calls_for_64(|nth| at(&format!("s{nth}.test"))).await, 64);
}

#[tokio::test(start_paused = true)]
async fn those_who_want_something_else_do_not_wait_for_each_other() {
    let (pool, wire) = pool_of_many(10).await;
    wire.always(Call::Acquire, Fault::Late(millis(100)));
    let started = Instant::now();
    let leases = join_all((0..10).map(|nth| now(&pool, at(&format!("s{nth}.test"))))).await;
    assert_eq!((leases.iter().flatten().count(), started.elapsed()), (10, millis(100)));
}

#[tokio::test(start_paused = true)]
async fn sixty_four_who_wait_are_served_by_few_calls_in_their_order() {
    let (pool, wire) = pool_of_many(64).await;
    let held = join_all((0..64).map(|_| lease(&pool))).await;
    let (served, before) = (Mutex::new(Vec::new()), wire.made(Call::Acquire).len());
    let waiters = join_all((0..64).map(async |nth| {
        let lease = lease(&pool).await;
        served.lock().unwrap().push(nth);
        lease
    }));
    let give_back = async {
        settle().await;
        drop(held);
    };
    let (leases, ()) = tokio::join!(waiters, give_back);
    assert_eq!(leases.len(), 64);
    assert!(served.lock().unwrap().iter().copied().eq(0..64), "{served:?}");
    let calls = wire.made(Call::Acquire).len() - before;
    assert!(calls <= 16, "{calls} calls");
}

#[tokio::test(start_paused = true)]
async fn nobody_overtakes_one_who_wants_something_else() {
    let (pool, _) = pool_of(&["a"], |builder| builder).await;
    let held = lease(&pool).await;
    let served = Mutex::new(Vec::new());
    let waiters = join_all((0..20).map(async |nth| {
        let site = ["one.test", "two.test"][nth % 2];
        drop(pool.lease(at(site), HOUR).await.unwrap());
        served.lock().unwrap().push(nth);
    }));
    let give_back = async {
        settle().await;
        drop(held);
    };
    tokio::join!(waiters, give_back);
    assert!(served.lock().unwrap().iter().copied().eq(0..20), "{served:?}");
}

/// Long queues of many who want something else are not served one by one.
#[tokio::test(start_paused = true)]
async fn a_queue_speeds_up_when_there_is_enough() {
    let (pool, wire) = pool_of_many(64).await;
    wire.order(Order::Pause).await;
    let served = Mutex::new(Vec::new());
    let waiters = join_all((0..64).map(async |nth| {
        let lease = pool.lease(at(&format!("s{nth}.test")), HOUR).await.unwrap();
        served.lock().unwrap().push(nth);
        lease
    }));
    let started = Instant::now();
    let resume = async {
        settle().await;
        wire.always(Call::Acquire, Fault::Late(millis(10)));
        pool.administer(Order::Resume).await.unwrap();
    };
    let _leases = tokio::join!(waiters, resume);
    assert!(served.lock().unwrap().iter().copied().eq(0..64), "{served:?}");
    assert!(started.elapsed() < millis(100), "{:?} for 64 at 10 ms", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_goes_in_the_middle_leaves_its_grant_to_the_next() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Late(millis(100)));
    let mut waits: Vec<_> = (0..3).map(|_| Box::pin(pool.lease(wants(), HOUR))).collect();
    for wait in &mut waits {
        assert!(futures_util::poll!(wait).is_pending());
    }
    settle().await;
    // Three are asked for, of whom the first goes.
    drop(waits.remove(0));
    let leases = join_all(waits).await;
    assert_eq!(leases.iter().filter(|lease| lease.is_ok()).count(), 2);
    assert_eq!(wire.made(Call::Acquire).len(), 1, "the question has survived");
    assert_eq!((leased(&wire).await, pool.counts().cancels), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn grants_that_nobody_is_left_for_are_given_back() {
    let (pool, wire) = pool_of(&["a", "b", "c"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Late(millis(100)));
    let mut waits: Vec<_> = (0..3).map(|_| Box::pin(pool.lease(wants(), HOUR))).collect();
    for wait in &mut waits {
        assert!(futures_util::poll!(wait).is_pending());
    }
    settle().await;
    waits.truncate(1);
    let lease = waits.remove(0).await.unwrap().0;
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().grants), (1, 3));
    lease.finish(Outcome::Success);
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().releases), (0, 3));
}

/// A lease that has been handed over and not been taken.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_goes_after_its_grant_gives_it_back() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let mut wait = Box::pin(pool.lease(wants(), HOUR));
    assert!(futures_util::poll!(&mut wait).is_pending());
    settle().await;
    assert_eq!(leased(&wire).await, 1);
    drop(wait);
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().releases), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn all_tokens_of_a_question_that_nobody_waits_for_are_cancelled() {
    let (pool, wire) = pool_of(&["a", "b", "c"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Late(seconds(2))]);
    let all = join_all((0..3).map(|_| pool.lease(wants(), HOUR)));
    assert!(tokio::time::timeout(seconds(1), all).await.is_err());
    sleep(seconds(2)).await;
    assert_eq!(wire.made(Call::Acquire)[0].batch, 3);
    assert_eq!((leased(&wire).await, pool.counts().cancels), (0, 3));
}

/// The twin: without the cancels the late call takes all three.
#[tokio::test(start_paused = true)]
async fn without_the_cancels_a_late_question_takes_what_it_asked_for() {
    let (pool, wire) = pool_of(&["a", "b", "c"], |builder| builder).await;
    wire.always(Call::Cancel, Fault::Swallowed);
    wire.next(Call::Acquire, &[Fault::Late(seconds(2))]);
    let all = join_all((0..3).map(|_| pool.lease(wants(), HOUR)));
    assert!(tokio::time::timeout(seconds(1), all).await.is_err());
    sleep(seconds(2)).await;
    assert_eq!(leased(&wire).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_for_several_is_asked_for_again_and_costs_nothing() {
    let (pool, wire) = pool_of_many(10).await;
    wire.next(Call::Acquire, &[Fault::Lost, Fault::Lost]);
    let leases = join_all((0..5).map(|_| lease(&pool))).await;
    assert_eq!((leases.len(), leased(&wire).await), (5, 5));
    assert_eq!(wire.made(Call::Acquire).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_question_in_doubt_is_not_made_larger() {
    let (pool, wire) = pool_of_many(10).await;
    wire.next(Call::Acquire, &[Fault::Lost; 4]);
    let mut first = Box::pin(lease(&pool));
    assert!(futures_util::poll!(&mut first).is_pending());
    settle().await;
    let (_lease, more) = tokio::join!(first, join_all((0..5).map(|_| lease(&pool))));
    let batches: Vec<_> = wire.made(Call::Acquire).iter().map(|made| made.batch).collect();
    assert_eq!((batches, more.len()), (vec![1, 1, 1, 1, 1, 5], 5));
}

/// A joiner is told at once, as one who asks alone is.
#[tokio::test(start_paused = true)]
async fn those_who_will_not_wait_are_told_together_that_there_is_nothing() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let _held = lease(&pool).await;
    wire.always(Call::Acquire, Fault::Late(millis(100)));
    let started = Instant::now();
    let leases = join_all((0..20).map(|_| now(&pool, wants()))).await;
    assert_eq!((leases.iter().flatten().count(), started.elapsed()), (0, millis(100)));
    assert_eq!(wire.made(Call::Acquire).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_each_who_will_not_wait_a_token() {
    let (pool, wire) = pool_of_many(10).await;
    wire.next(Call::Acquire, &[Fault::Late(millis(10)), Fault::Lost]);
    let mut asked: Vec<_> =
        (0..5).map(|_| Box::pin(pool.lease_now(wants(), seconds(30)))).collect();
    for wait in &mut asked {
        assert!(futures_util::poll!(wait).is_pending());
    }
    let told = join_all(asked).await.into_iter().map(|told| told.unwrap().0);
    let doubts = told.filter(|now| matches!(now, Now::Later(Some(_)))).count();
    assert_eq!(doubts, 4, "all but the one who asked first");
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().cancels), (0, 4), "none was repeated");
}

#[tokio::test(start_paused = true)]
async fn an_asker_who_goes_leaves_its_question_to_those_who_joined_it() {
    let (pool, wire) = pool_of_many(10).await;
    wire.always(Call::Acquire, Fault::Late(millis(100)));
    let mut first = Box::pin(pool.lease_now(wants(), seconds(30)));
    assert!(futures_util::poll!(&mut first).is_pending());
    let second = tokio::spawn({
        let pool = pool.clone();
        async move { now(&pool, wants()).await }
    });
    settle().await;
    drop(first);
    let lease = second.await.unwrap();
    sleep(seconds(1)).await;
    assert_eq!((leased(&wire).await, wire.made(Call::Acquire).len()), (1, 1));
    drop(lease);
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().cancels), (0, 0));
}

/// The twin: with nobody else who wants the answer the question is given up.
#[tokio::test(start_paused = true)]
async fn an_asker_who_goes_alone_gives_its_question_up() {
    let (pool, wire) = pool_of_many(10).await;
    wire.always(Call::Acquire, Fault::Late(millis(100)));
    let mut first = Box::pin(pool.lease_now(wants(), seconds(30)));
    assert!(futures_util::poll!(&mut first).is_pending());
    settle().await;
    drop(first);
    sleep(seconds(1)).await;
    assert_eq!((leased(&wire).await, pool.counts().cancels), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn one_for_whom_nothing_free_would_do_keeps_its_place() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder.poll_every(HOUR)).await;
    let (b, a) = (pool.lease(without(&["a"]), HOUR).await.unwrap().0, lease(&pool).await);
    let served = Mutex::new(Vec::new());
    let wait = async |name: &'static str, wants: Wants| {
        let lease = pool.lease(wants, HOUR * 2).await.unwrap().0;
        served.lock().unwrap().push((name, lease.endpoint().id().to_string()));
    };
    let others = async {
        settle().await;
        // Nothing of it for the first: the second is served.
        drop(a);
        settle().await;
        let _a = lease(&pool).await;
        wire.order(Order::Disable(vec![id("a")])).await;
        let third = wait("third", wants());
        let give_back = async {
            settle().await;
            drop(b);
        };
        tokio::join!(third, give_back);
    };
    tokio::join!(wait("first", without(&["a"])), wait("second", wants()), others);
    let served = served.lock().unwrap();
    let order: Vec<_> = served.iter().map(|(name, id)| (*name, id.as_str())).collect();
    assert_eq!(order, [("second", "a"), ("first", "b"), ("third", "b")]);
}

#[tokio::test]
async fn an_asker_that_ends_with_its_runtime_is_replaced() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.poll_every(HOUR)).await;
    let held = lease(&pool).await;
    let other = tokio::runtime::Runtime::new().unwrap();
    let elsewhere = other.spawn({
        let pool = pool.clone();
        async move { drop(lease(&pool).await) }
    });
    let asked = wire.made(Call::Acquire).len();
    while wire.made(Call::Acquire).len() == asked {
        tokio::task::yield_now().await;
    }
    let here = tokio::spawn({
        let pool = pool.clone();
        async move { drop(lease(&pool).await) }
    });
    tokio::task::yield_now().await;
    other.shutdown_background();
    assert!(elsewhere.await.is_err());
    drop(held);
    tokio::time::timeout(seconds(10), here).await.unwrap().unwrap();
}

/// Their site may never be asked for again.
#[tokio::test(start_paused = true)]
async fn those_who_have_gone_leave_nothing_behind_while_others_wait() {
    let (pool, _) = pool_of(&["a", "b"], |builder| builder).await;
    let _b = pool.lease(without(&["a"]), HOUR).await.unwrap().0;
    let mut patient = Box::pin(pool.lease(without(&["a"]), HOUR));
    assert!(futures_util::poll!(&mut patient).is_pending());
    for nth in 0..50 {
        let one = Wants { exclude: vec![id("a")], ..at(&format!("s{nth}.test")) };
        assert!(pool.lease(one, millis(300)).await.is_err());
    }
    let barred = pool.0.core.waiting.with_queue(|queue| queue.barred.len());
    assert!(barred <= 1, "{barred} of one who waits");
}
