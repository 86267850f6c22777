//! What users of a pool see when its Redis is in trouble.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::StatusCode;
use reqwest_lease::conformance::Fixture;
use reqwest_lease::{
    AcquireRequest, Error, Kind, LeaseMiddleware, LeaseStore, Member, Order, Pool, PoolConfig,
    RedisStore, Token,
};

use crate::local::proxy::{ForwardProxy, Manners};
use crate::requests::inventory;
use crate::support::direct_connections;
use crate::support::origin::{Origin, text};
use crate::support::redis::{Redis, Server};

/// A pool on a server of its own, with one endpoint.
async fn pool(proxy: &ForwardProxy, max_wait: Duration) -> (Redis, Pool) {
    let redis = Redis::on(Arc::new(Server::start(&[]))).await;
    let builder = RedisStore::builder(redis.server.url()).namespace(&redis.namespace);
    let store = builder.build().await.unwrap();
    let builder = Pool::builder(redis.pool(), inventory(&[proxy])).store(store);
    let pool = builder.max_wait(max_wait).build().await.unwrap();
    pool.administer(Order::Init(PoolConfig::default().into())).await.unwrap();
    let members = inventory(&[proxy]).snapshot();
    let members = members.iter().map(|endpoint| Member::new(endpoint.id().clone())).collect();
    pool.administer(Order::Add(members)).await.unwrap();
    (redis, pool)
}

#[tokio::test]
async fn a_server_that_sleeps_past_the_wait_grants_nothing_when_it_wakes() {
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let (redis, pool) = pool(&proxy, Duration::from_millis(300)).await;
    drop(pool.hold().await.unwrap());
    until(&redis, "the lease is back", async |redis| leased(redis).await == 0).await;
    redis.server.signal("STOP");
    for error in join_all((0..4).map(|_| pool.hold())).await {
        let error = error.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
    }
    redis.server.signal("CONT");
    // What was sent before runs now, and so do the cancels that follow it.
    until(&redis, "scripts that were given up have run", async |redis| {
        let status = redis.store.status(&redis.pool()).await;
        status.is_ok_and(|status| status.fence.0 >= 2)
    })
    .await;
    until(&redis, "nothing is leased", async |redis| leased(redis).await == 0).await;
    drop(pool.hold().await.unwrap());
    pool.shutdown().await;
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().ready, 1);
    assert!(redis.store.check(&redis.pool()).await.unwrap().is_empty());
}

/// Twin: an acquire that nobody cancels is a lease when the server wakes.
#[tokio::test]
async fn without_a_cancel_the_sleeper_leases_when_it_wakes() {
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let (redis, pool) = pool(&proxy, Duration::from_millis(300)).await;
    // The server knows the script from now on.
    drop(pool.hold().await.unwrap());
    until(&redis, "the lease is back", async |redis| leased(redis).await == 0).await;
    let builder = RedisStore::builder(redis.server.url()).namespace(&redis.namespace);
    let store = builder.call_timeout(Duration::from_millis(300)).build().await.unwrap();
    redis.server.signal("STOP");
    let request = AcquireRequest::new(redis.pool(), Token::random(), Duration::from_secs(60));
    let error = store.acquire(request).await.unwrap_err();
    assert!(error.may_have_run(), "{error}");
    redis.server.signal("CONT");
    until(&redis, "it is leased", async |redis| leased(redis).await == 1).await;
    pool.shutdown().await;
}

async fn leased(redis: &Redis) -> usize {
    match redis.store.status(&redis.pool()).await {
        Ok(status) => status.leased + status.expired,
        Err(_) => usize::MAX,
    }
}

async fn until(redis: &Redis, what: &str, holds: impl AsyncFn(&Redis) -> bool) {
    let begun = Instant::now();
    while !holds(redis).await {
        assert!(begun.elapsed() < Duration::from_secs(10), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// 600 ms: the wait of 500 ms, and a fifth of it for the machine. The client library alone would
/// take some nine seconds.
#[tokio::test]
async fn with_the_server_gone_a_wait_of_500_ms_ends_within_600() {
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let (redis, pool) = pool(&proxy, Duration::from_millis(500)).await;
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    for end in ["STOP", "KILL"] {
        redis.server.signal(end);
        for _ in 0..3 {
            let begun = Instant::now();
            let timer = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                begun.elapsed().saturating_sub(Duration::from_millis(500))
            };
            let call = async {
                let error = client.get(origin.url("/")).send().await.unwrap_err();
                (error, begun.elapsed())
            };
            // A timer beside it tells how late this machine is by itself.
            let ((error, took), late) = tokio::join!(call, timer);
            let error = Error::find_in(&error).unwrap();
            assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
            assert!(error.is_transient());
            assert!(took < Duration::from_millis(600) + late, "{end}: {took:?}, late {late:?}");
        }
    }
    assert!(origin.visits().is_empty());
}

#[tokio::test]
async fn a_flushed_server_fails_requests_closed_and_tells_the_lost_state() {
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let (redis, pool) = pool(&proxy, Duration::from_secs(5)).await;
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    client.get(origin.url("/")).send().await.unwrap().text().await.unwrap();
    let held = pool.hold().await.unwrap();
    redis.send::<()>("FLUSHALL").await;
    for _ in 0..3 {
        let error = client.get(origin.url("/")).send().await.unwrap_err();
        let error = Error::find_in(&error).unwrap();
        assert_eq!((error.kind(), error.is_transient()), (Kind::PoolUninitialised, false));
        assert!(error.to_string().contains("its state was lost"), "{error}");
    }
    drop(held);
    pool.shutdown().await;
    assert_eq!(origin.visits().len(), 1);
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
    let left: Vec<String> = redis.send("KEYS *").await;
    assert!(left.is_empty(), "{left:?}");
}
