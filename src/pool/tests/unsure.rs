//! Acquires of which nobody knows whether they took place.

use super::*;

/// A waiter that is gone after this long.
async fn give_up_after(pool: &Pool, after: Duration) {
    let gone = tokio::time::timeout(after, pool.lease(wants(), HOUR)).await;
    assert!(gone.is_err(), "there was an answer");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_and_costs_no_second_endpoint() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Lost, Fault::Lost]);
    let _lease = lease(&pool).await;
    let asked = wire.made(Call::Acquire);
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|made| made.token == asked[0].token));
    assert_eq!(leased(&wire).await, 1);
}

/// The twin: a store that does not know its tokens gives an endpoint away for each lost answer.
#[tokio::test(start_paused = true)]
async fn without_tokens_a_lost_answer_costs_an_endpoint() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
    wire.forget_tokens();
    wire.next(Call::Acquire, &[Fault::Lost]);
    let _lease = lease(&pool).await;
    assert_eq!(leased(&wire).await, 2);
}

#[tokio::test(start_paused = true)]
async fn the_trust_after_a_lost_answer_ends_before_the_lease_does() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let started = Instant::now();
    wire.next(Call::Acquire, &[Fault::Lost; 20]);
    let lease = lease(&pool).await;
    assert!(started.elapsed() > seconds(1), "the answer took its time");
    assert!(lease.trusted_until().unwrap() <= started + TTL);
}

#[tokio::test(start_paused = true)]
async fn a_future_dropped_in_the_middle_of_a_call_leaves_no_lease() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Late(seconds(2))]);
    give_up_after(&pool, seconds(1)).await;
    sleep(seconds(2)).await;
    assert_eq!(leased(&wire).await, 0, "the late call met a tombstone");
    assert_eq!(pool.counts().cancels, 1);
    drop(pool.lease(wants(), Duration::ZERO).await.unwrap().0);
}

/// The twin: where cancels get lost, so does the endpoint.
#[tokio::test(start_paused = true)]
async fn without_the_cancel_a_late_call_takes_the_endpoint() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Cancel, Fault::Swallowed);
    wire.next(Call::Acquire, &[Fault::Late(seconds(2))]);
    give_up_after(&pool, seconds(1)).await;
    sleep(seconds(2)).await;
    assert_eq!(leased(&wire).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_still_run_is_cancelled_although_a_later_one_was_answered() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let held = lease(&pool).await;
    wire.next(Call::Acquire, &[Fault::Stray(seconds(5))]);
    give_up_after(&pool, seconds(1)).await;
    assert_eq!(wire.made(Call::Acquire).len(), 1 + 5, "it was told of an empty pool since");
    drop(held);
    sleep(seconds(5)).await;
    assert_eq!(leased(&wire).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_still_run_is_cancelled_when_its_lease_has_been_used() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.judge(Rests(millis(10)))).await;
    wire.next(Call::Acquire, &[Fault::Stray(seconds(5))]);
    drop(lease(&pool).await);
    sleep(seconds(6)).await;
    assert_eq!(leased(&wire).await, 0);
    let counts = pool.counts();
    assert_eq!((counts.grants, counts.releases, counts.cancels), (1, 1, 1), "with its verdict");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_still_run_is_cancelled_when_its_endpoint_is_unknown_here() {
    let (pool, wire) = pool_of(&["b"], |builder| builder).await;
    wire.order(members(&["a"])).await;
    wire.order(Order::Disable(vec![id("b")])).await;
    wire.next(Call::Acquire, &[Fault::Stray(seconds(5))]);
    let Err(error) = pool.lease(wants(), seconds(1)).await else { panic!("a lease") };
    assert_eq!(error.kind(), Kind::PoolExhausted);
    sleep(seconds(6)).await;
    assert_eq!(leased(&wire).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_is_named_by_all_who_waited_for_it() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Unsent);
    wire.always(Call::Cancel, Fault::Unsent);
    let waits = behind_a_patient_one(&pool, seconds(2));
    for (error, waited) in waits.await {
        assert_eq!(error.kind(), Kind::StoreUnavailable);
        assert!(waited >= seconds(2) && waited < millis(2100), "{waited:?}");
    }
    let asked = wire.made(Call::Acquire).len();
    assert!((20..60).contains(&asked), "{asked} questions in 2 s");
    pool.shutdown().await;
    let counts = pool.counts();
    assert_eq!((counts.cancels, counts.cancels_failed), (0, 4), "each token of the question");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_keeps_nobody_longer_than_allowed() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Hangs);
    let waits = behind_a_patient_one(&pool, seconds(2));
    for (error, waited) in waits.await {
        assert_eq!(error.kind(), Kind::StoreUnavailable);
        assert!(waited >= seconds(2) && waited < millis(2010), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_serves_those_who_waited() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Unsent; 10]);
    drop(lease(&pool).await);
    assert_eq!(wire.made(Call::Acquire).len(), 11);
}

#[tokio::test(start_paused = true)]
async fn whoever_would_not_wait_waits_for_the_answer() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Late(millis(300)));
    let _lease = pool.lease(wants(), Duration::ZERO).await.unwrap().0;
    let (error, waited) = refusal(&pool, Duration::ZERO).await;
    assert_eq!((error.kind(), waited), (Kind::PoolExhausted, millis(300)));
}

/// What a first question is told.
async fn first_question(pool: &Pool) -> Option<Doubt> {
    match pool.lease_now(wants(), TTL).await.unwrap().0 {
        Now::Later(doubt) => doubt,
        Now::Lease(_) => panic!("there was a lease"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_question_without_an_answer_is_repeated_in_the_wait_that_follows() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Lost]);
    let doubt = first_question(&pool).await;
    assert!(doubt.is_some());
    let _lease = pool.lease_after(wants(), TTL, doubt).await.unwrap().0;
    assert_eq!(leased(&wire).await, 1, "it is the lease of the first question");
    let asked = wire.made(Call::Acquire);
    assert_eq!((asked.len(), asked[0].token), (2, asked[1].token));
    assert_eq!(pool.counts().cancels, 0);
}

/// The twin: a wait that knows nothing of it takes a second endpoint.
#[tokio::test(start_paused = true)]
async fn without_its_token_a_lost_first_question_costs_an_endpoint() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Lost]);
    let _doubt = first_question(&pool).await;
    let _lease = lease(&pool).await;
    assert_eq!(leased(&wire).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_first_question_without_an_answer_is_given_up_when_nothing_follows() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Lost]);
    drop(first_question(&pool).await);
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().cancels), (0, 1));
    wire.next(Call::Acquire, &[Fault::Late(millis(300))]);
    let (now, took) = pool.lease_now(wants(), TTL).await.unwrap();
    assert!(matches!(now, Now::Lease(_)));
    assert_eq!(took, millis(300));
}

#[tokio::test(start_paused = true)]
async fn a_doubt_is_for_nobody_who_wants_something_else() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Lost]);
    let doubt = first_question(&pool).await;
    let lease = pool.lease_after(without(&["a"]), TTL, doubt).await.unwrap().0;
    settle().await;
    assert_eq!(lease.endpoint().id().as_str(), "b");
    assert_eq!((leased(&wire).await, pool.counts().cancels), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_first_question_to_a_store_that_hangs_has_an_end() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Hangs);
    let started = Instant::now();
    let Err(error) = pool.lease_now(wants(), seconds(2)).await else { panic!("an answer") };
    assert_eq!((error.kind(), started.elapsed()), (Kind::StoreUnavailable, seconds(2)));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_served_at_once_while_somebody_waits() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let held = lease(&pool).await;
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { lease(&pool).await }
    });
    settle().await;
    wire.always(Call::Acquire, Fault::Late(millis(100)));
    drop(held);
    settle().await;
    assert!(matches!(pool.lease_now(wants(), TTL).await.unwrap().0, Now::Later(None)));
    waiter.await.unwrap();
}

fn within(wait: Duration) -> Patience {
    Patience { wait, deadline: Some(Instant::now() + wait) }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_to_the_moment_and_what_was_asked_for_is_given_up() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Late(seconds(20)));
    for nth in 1..=2 {
        let started = Instant::now();
        let kind = match nth {
            1 => pool.lease_now(wants(), within(millis(100))).await.err().unwrap().kind(),
            _ => pool.lease(wants(), within(millis(100))).await.err().unwrap().kind(),
        };
        assert_eq!((kind, started.elapsed()), (Kind::StoreUnavailable, millis(100)));
        settle().await;
        assert_eq!(pool.counts().cancels, nth);
    }
    sleep(seconds(30)).await;
    assert_eq!(leased(&wire).await, 0);
}

/// The twin: a wait that is merely short lets the store answer.
#[tokio::test(start_paused = true)]
async fn a_short_wait_is_long_enough_for_an_answer() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Late(seconds(20)));
    let started = Instant::now();
    assert!(pool.lease_now(wants(), millis(100)).await.is_err());
    assert_eq!(started.elapsed(), seconds(1));
    let (_, waited) = refusal(&pool, millis(100)).await;
    assert_eq!(waited, seconds(1));
}

#[tokio::test(start_paused = true)]
async fn a_doubt_at_a_closed_pool_is_given_up() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Lost]);
    let doubt = first_question(&pool).await;
    pool.shutdown().await;
    let Err(error) = pool.lease_after(wants(), TTL, doubt).await else { panic!("a lease") };
    assert_eq!(error.kind(), Kind::PoolClosed);
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().cancels), (0, 1));
}
