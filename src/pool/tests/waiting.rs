//! Who is served when.

use super::*;

/// Tasks that note their number when they are granted the endpoint, and pass it on.
struct Crowd {
    pool: Pool,
    served: Arc<Mutex<Vec<usize>>>,
}

impl Crowd {
    /// Joins the queue, surely before whoever comes next.
    async fn join(&self, number: usize) -> tokio::task::JoinHandle<()> {
        let (pool, served) = (self.pool.clone(), self.served.clone());
        let task = tokio::spawn(async move {
            let lease = pool.lease(wants(), HOUR).await.unwrap().0;
            served.lock().unwrap().push(number);
            sleep(millis(10)).await;
            drop(lease);
        });
        tokio::task::yield_now().await;
        task
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_waiters_are_served_in_the_order_of_their_arrival() {
    let (pool, _) = pool_of(&["a"], |builder| builder).await;
    let crowd = Crowd { pool: pool.clone(), served: Arc::default() };
    let first = lease(&pool).await;
    let mut tasks = Vec::new();
    for number in 0..100 {
        tasks.push(crowd.join(number).await);
    }
    drop(first);
    sleep(millis(500)).await;
    assert!((10..60).contains(&crowd.served.lock().unwrap().len()), "the queue is half served");
    for number in 100..110 {
        tasks.push(crowd.join(number).await);
    }
    for task in tasks {
        task.await.unwrap();
    }
    let served = crowd.served.lock().unwrap().clone();
    assert!(served.iter().copied().eq(0..110), "{served:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_keeps_nobody_waiting() {
    let (pool, _) = pool_of(&["a"], |builder| builder.poll_every(HOUR)).await;
    let held = lease(&pool).await;
    let crowd = Crowd { pool: pool.clone(), served: Arc::default() };
    let (head, middle, last) = (crowd.join(0).await, crowd.join(1).await, crowd.join(2).await);
    head.abort();
    middle.abort();
    drop(held);
    tokio::time::timeout(seconds(1), last).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_whom_nothing_free_will_do_lets_those_behind_it_pass() {
    let (pool, _) = pool_of(&["a", "b"], |builder| builder.poll_every(HOUR)).await;
    let b = pool.lease(without(&["a"]), seconds(1)).await.unwrap().0;
    let picky = tokio::spawn({
        let pool = pool.clone();
        async move { pool.lease(without(&["a"]), seconds(30)).await.unwrap().0 }
    });
    settle().await;
    let a = pool.lease(wants(), Duration::ZERO).await.unwrap().0;
    assert_eq!(a.endpoint().id().as_str(), "a");
    assert!(!picky.is_finished());
    drop(b);
    assert_eq!(picky.await.unwrap().endpoint().id().as_str(), "b");
}

#[tokio::test(start_paused = true)]
async fn the_last_choice_gone_there_is_nothing_to_wait_for() {
    let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
    wire.order(Order::Disable(vec![id("b")])).await;
    let started = Instant::now();
    let Err(error) = pool.lease(without(&["a"]), seconds(30)).await else { panic!("a lease") };
    assert_eq!((error.kind(), started.elapsed()), (Kind::PoolExhausted, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn an_end_of_a_cooldown_is_met_with_few_questions() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.judge(Rests(seconds(3)))).await;
    drop(lease(&pool).await);
    settle().await;
    let (started, asked) = (Instant::now(), wire.made(Call::Acquire).len());
    drop(lease(&pool).await);
    let (waited, asked) = (started.elapsed(), wire.made(Call::Acquire).len() - asked);
    assert!(waited > millis(2990) && waited < millis(3050), "{waited:?}");
    assert!((10..=15).contains(&asked), "{asked} questions at 4 a second");
}

/// The twin: who asks at every chance asks far more often.
#[tokio::test(start_paused = true)]
async fn a_short_pause_asks_a_thousand_times() {
    let (pool, wire) =
        pool_of(&["a"], |builder| builder.judge(Rests(seconds(3))).poll_every(millis(2))).await;
    drop(lease(&pool).await);
    settle().await;
    drop(lease(&pool).await);
    assert!(wire.made(Call::Acquire).len() > 500);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_allowed_and_everybody_learns_of_the_next_chance() {
    let (pool, _) = pool_of(&["a"], |builder| builder).await;
    let _held = lease(&pool).await;
    let waits = behind_a_patient_one(&pool, seconds(5));
    for (error, waited) in waits.await {
        assert_eq!(error.kind(), Kind::PoolExhausted);
        assert!(waited >= seconds(5) && waited < millis(5010), "{waited:?}");
        let after = error.retry_after().expect("the lease's deadline is the next chance");
        assert!(after > seconds(54) && after <= seconds(56), "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_at_a_paused_pool_are_told_so() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.order(Order::Pause).await;
    let waits = behind_a_patient_one(&pool, seconds(5));
    for (error, waited) in waits.await {
        assert_eq!(error.kind(), Kind::PoolPaused);
        assert!(waited >= seconds(5) && waited < millis(5010), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_reason_is_not_told_to_those_who_come_later() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.order(Order::Pause).await;
    refusal(&pool, seconds(1)).await;
    wire.order(Order::Resume).await;
    let _held = lease(&pool).await;
    let waits = behind_a_patient_one(&pool, seconds(1));
    for (error, _) in waits.await {
        assert_eq!(error.kind(), Kind::PoolExhausted);
    }
}
