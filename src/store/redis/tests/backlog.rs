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
    redis.send::<()>("CONFIG SET slowlog-log-slower-than 10000").await;
    redis.send::<()>("SLOWLOG RESET").await;
    redis.send::<()>("CONFIG RESETSTAT").await;
    let mut left = members;
    while left > 0 {
        // The lease of an acquire is no part of the backlog.
        grant(&redis).await;
        reap(&redis).await.unwrap();
        let expired = redis.store.status(&redis.pool()).await.unwrap().expired;
        assert!(expired < left && left - expired <= 2 * MAX_SWEEP, "{left} then {expired}");
        left = expired;
    }
    in_order(&redis).await;
    let stats: String = redis.send("INFO commandstats").await;
    let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap();
    let mean = line.split("usec_per_call=").nth(1).and_then(|rest| rest.split(',').next());
    assert!(mean.unwrap().parse::<f64>().unwrap() < 2_000.0, "{line}");
    // The server's time is wall time: on a busy machine a call may be put off now and then.
    let slow: usize = redis.send("SLOWLOG LEN").await;
    assert!(slow <= 10, "{slow} calls over 10 ms");
}
