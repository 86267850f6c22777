//! What wakes a waiter that would by itself ask again in an hour.

use super::*;

/// A waiter at a pool that has nothing for it, woken by `wake` at once.
async fn wakes(pool: &Pool, wake: impl Future<Output = ()>) {
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { drop(pool.lease(wants(), HOUR * 2).await.unwrap().0) }
    });
    settle().await;
    assert!(!waiter.is_finished());
    wake.await;
    tokio::time::timeout(millis(100), waiter).await.expect("it slept on").unwrap();
}

async fn patient_pool() -> (Pool, Wire) {
    pool_of(&["a"], |builder| builder.poll_every(HOUR)).await
}

#[tokio::test(start_paused = true)]
async fn a_release_does() {
    let (pool, _) = patient_pool().await;
    let held = lease(&pool).await;
    wakes(&pool, async move { drop(held) }).await;
}

#[tokio::test(start_paused = true)]
async fn a_resumed_pool_does() {
    let (pool, _) = patient_pool().await;
    pool.administer(Order::Pause).await.unwrap();
    wakes(&pool, async { assert!(pool.administer(Order::Resume).await.is_ok()) }).await;
}

#[tokio::test(start_paused = true)]
async fn an_enabled_endpoint_does() {
    let (pool, _) = patient_pool().await;
    pool.administer(Order::Disable(vec![id("a")])).await.unwrap();
    let enable = Order::Enable(vec![id("a")]);
    wakes(&pool, async { assert!(pool.administer(enable).await.is_ok()) }).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_does() {
    let (pool, wire) = patient_pool().await;
    wire.next(Call::Acquire, &[Fault::Lost]);
    let lost = pool.lease(wants(), HOUR);
    let _ = tokio::time::timeout(millis(1), lost).await.map(drop);
    wire.next(Call::Cancel, &[Fault::Late(millis(500))]);
    wakes(&pool, sleep(millis(500))).await;
}

#[tokio::test(start_paused = true)]
async fn an_end_of_a_cooldown_does() {
    let (pool, _) =
        pool_of(&["a"], |builder| builder.judge(Rests(seconds(8))).poll_every(HOUR)).await;
    drop(lease(&pool).await);
    settle().await;
    let started = Instant::now();
    drop(pool.lease(wants(), HOUR).await.unwrap().0);
    assert!(started.elapsed() < seconds(9) + millis(10), "an eighth late at most");
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_tells_everybody_in_the_queue() {
    let (pool, _) = patient_pool().await;
    let _held = lease(&pool).await;
    let waits: Vec<_> = (0..5).map(|_| refusal(&pool, HOUR)).collect();
    let close = async {
        settle().await;
        pool.shutdown().await;
    };
    let (told, ()) = tokio::join!(futures_util::future::join_all(waits), close);
    for (error, waited) in told {
        assert_eq!(error.kind(), Kind::PoolClosed);
        assert!(waited < millis(100), "{waited:?}");
    }
    assert_eq!(refusal(&pool, HOUR).await.0.kind(), Kind::PoolClosed);
}

/// The twin: what the pool does not hear of, it sleeps through.
#[tokio::test(start_paused = true)]
#[should_panic = "it slept on"]
async fn an_order_that_another_process_gives_does_not() {
    let (pool, wire) = patient_pool().await;
    wire.order(Order::Pause).await;
    wakes(&pool, wire.order(Order::Resume)).await;
}
