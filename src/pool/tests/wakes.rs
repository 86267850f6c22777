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

/// Two pools of one store, as two processes would have them.
async fn neighbours(wakeups: bool) -> [Pool; 2] {
    let choose = |builder: PoolBuilder| builder.poll_every(HOUR).wakeups(wakeups);
    let (one, wire) = pool_of(&["a"], choose).await;
    let builder = Pool::builder(name(), inventory(&["a"])).store(wire).ttl(TTL);
    [one, choose(builder).build().await.unwrap()]
}

#[tokio::test(start_paused = true)]
async fn a_release_in_a_neighbour_does_with_wakeups() {
    let [one, other] = neighbours(true).await;
    let held = lease(&one).await;
    wakes(&other, async move { drop(held) }).await;
    assert_eq!(other.counts().hints, 1);
}

#[tokio::test(start_paused = true)]
async fn an_order_in_a_neighbour_does_with_wakeups() {
    let [one, other] = neighbours(true).await;
    one.administer(Order::Pause).await.unwrap();
    wakes(&other, async { assert!(one.administer(Order::Resume).await.is_ok()) }).await;
}

/// The twin: the same without.
#[tokio::test(start_paused = true)]
#[should_panic = "it slept on"]
async fn a_release_in_a_neighbour_does_not_without_wakeups() {
    let [one, other] = neighbours(false).await;
    let held = lease(&one).await;
    wakes(&other, async move { drop(held) }).await;
}

#[tokio::test(start_paused = true)]
async fn many_hints_that_lead_to_nothing_are_few_questions() {
    let [one, other] = neighbours(true).await;
    let _held = lease(&one).await;
    let waiter = tokio::spawn({
        let other = other.clone();
        async move { refusal(&other, seconds(10)).await }
    });
    settle().await;
    for _ in 0..1000 {
        // It readies nothing, and is told all the same.
        one.administer(Order::Enable(vec![id("a")])).await.unwrap();
        sleep(millis(1)).await;
    }
    let heard = other.counts().hints;
    assert!((10..40).contains(&heard), "{heard} of 1000 hints were heard");
    let told = waiter.await.unwrap();
    assert_eq!(told.0.kind(), Kind::PoolExhausted);
}

/// The twin: what the pool does not hear of, it sleeps through.
#[tokio::test(start_paused = true)]
#[should_panic = "it slept on"]
async fn an_order_that_another_process_gives_does_not() {
    let (pool, wire) = patient_pool().await;
    wire.order(Order::Pause).await;
    wakes(&pool, wire.order(Order::Resume)).await;
}
