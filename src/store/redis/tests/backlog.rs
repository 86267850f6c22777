//! Many leases that run out at once.

use super::*;
use crate::store::{MAX_BATCH, MAX_SWEEP};

#[tokio::test]
async fn twenty_thousand_expiries_hold_nobody_up() {
    let members = 20_000;
    let redis = Redis::on(std::sync::Arc::new(Server::start(&[]))).await;
    set_up(&redis, PoolConfig::default(), members).await;
    for _ in 0..members / MAX_BATCH {
        let mut request = AcquireRequest::new(redis.pool(), Token::random(), TTL);
        request.tokens = (0..MAX_BATCH).map(|_| Token::random()).collect();
        redis.store.acquire(request).await.unwrap();
    }
    redis.advance(TTL * 2).await;
    let (mut left, mut slowest) = (members, 0.0_f64);
    while left > 0 {
        // The lease of an acquire is no part of the backlog.
        let before = cpu_ms(&redis).await;
        grant(&redis).await;
        let between = cpu_ms(&redis).await;
        let granted = expired(&redis).await;
        assert_eq!(granted, left.saturating_sub(MAX_SWEEP), "an acquire takes back so many");
        let looked = cpu_ms(&redis).await;
        let reaped = reap(&redis).await.unwrap().0;
        slowest = slowest.max(between - before).max(cpu_ms(&redis).await - looked);
        left = expired(&redis).await;
        assert_eq!((reaped, left), (granted.min(MAX_SWEEP), granted.saturating_sub(MAX_SWEEP)));
    }
    in_order(&redis).await;
    println!("the slowest call took {slowest} ms");
    assert!(slowest < 10.0, "a call took {slowest} ms");
}

/// Time that the server has worked. Its slowlog goes by the wall clock, and on a busy machine
/// tells of calls that were put off.
async fn cpu_ms(redis: &Redis) -> f64 {
    let told: String = redis.send("INFO cpu").await;
    let field = |name: &str| -> f64 {
        let line = told.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    1000.0 * (field("used_cpu_user_main_thread:") + field("used_cpu_sys_main_thread:"))
}

async fn expired(redis: &Redis) -> usize {
    redis.store.status(&redis.pool()).await.unwrap().expired
}
