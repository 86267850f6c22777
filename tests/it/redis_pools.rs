//! Pools of several processes share what is in Redis.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use reqwest_lease::conformance::Fixture;
use reqwest_lease::{
    Endpoint, EndpointId, Error, Inventory, Kind, LeaseInfo, LeaseMiddleware, LeaseStore, Member,
    Order, Pool, PoolBuilder, PoolConfig, RedisRole, RedisStore,
};

use crate::local::proxy::{ForwardProxy, Manners};
use crate::redis_roles::login;
use crate::requests::inventory;
use crate::support::direct_connections;
use crate::support::origin::{Origin, text};
use crate::support::redis::{Redis, Server};

/// A pool as another process would build it: with a connection of its own.
async fn pool(redis: &Redis, url: &str, proxies: &[&ForwardProxy]) -> Pool {
    pool_with(redis, url, proxies, |builder| builder).await
}

async fn pool_with(
    redis: &Redis,
    url: &str,
    proxies: &[&ForwardProxy],
    choose: impl FnOnce(PoolBuilder) -> PoolBuilder,
) -> Pool {
    let store = RedisStore::builder(url).namespace(&redis.namespace).build().await.unwrap();
    let builder = Pool::builder(redis.pool(), inventory(proxies)).store(store);
    choose(builder).build().await.unwrap()
}

async fn set_up(redis: &Redis, pool: &Pool, proxies: &[&ForwardProxy]) {
    pool.set_up(PoolConfig::default()).await.unwrap();
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().ready, proxies.len());
}

#[tokio::test]
async fn two_pools_lease_from_one() {
    let redis = Redis::new().await;
    let url = redis.server.url();
    lease_from_one(&redis, &url, &url).await;
}

#[tokio::test]
async fn two_pools_of_workers_lease_from_one() {
    let redis = Redis::new().await;
    let worker = login(&redis, RedisRole::Worker).await;
    let administrator = login(&redis, RedisRole::Administrator).await;
    lease_from_one(&redis, &worker, &administrator).await;
}

async fn lease_from_one(redis: &Redis, worker: &str, administrator: &str) {
    let proxies = [
        ForwardProxy::start(Manners::default()).await.unwrap(),
        ForwardProxy::start(Manners::default()).await.unwrap(),
    ];
    let proxies = [&proxies[0], &proxies[1]];
    let pools = [pool(redis, worker, &proxies).await, pool(redis, worker, &proxies).await];
    set_up(redis, &pool(redis, administrator, &proxies).await, &proxies).await;

    let (one, other) = (pools[0].hold().await.unwrap(), pools[1].hold().await.unwrap());
    assert_ne!(one.endpoint(), other.endpoint());
    assert!(one.fence() < other.fence());
    assert_eq!(pools[0].status().await.unwrap().leased, 2);
    let returned = one.endpoint().clone();
    drop(one);
    let third = pools[1].hold().await.unwrap();
    assert_eq!(*third.endpoint(), returned, "it waited for the other pool's release");
    drop((other, third));

    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let clients = pools
        .each_ref()
        .map(|pool| LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client());
    let get = async |nth: usize| {
        let response = clients[nth % 2].get(origin.url("/")).send().await.unwrap();
        let endpoint = response.extensions().get::<LeaseInfo>().unwrap().endpoint().to_string();
        assert_eq!(response.text().await.unwrap(), "hello");
        endpoint
    };
    let used: BTreeSet<_> = join_all((0..20).map(get)).await.into_iter().collect();
    assert_eq!(used.len(), 2);
    assert_eq!(origin.visits().len(), 20);
    assert!(direct_connections(&origin, &[proxies[0], proxies[1]]).is_empty());
    for pool in &pools {
        pool.shutdown().await;
    }
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().ready, 2);
    assert_eq!(redis.store.check(&redis.pool()).await.unwrap(), []);
}

/// Whether one who waits in one process gets what another process gives back, although the next
/// question to the store would be an hour off.
async fn a_release_elsewhere_wakes(wakeups: bool) -> bool {
    let redis = Redis::on(Arc::new(Server::start(&[]))).await;
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let hour = Duration::from_secs(3600);
    let patient = |builder: PoolBuilder| {
        builder.wakeups(wakeups).poll_every(hour).ttl(hour / 10).max_wait(hour)
    };
    let one = pool_with(&redis, &redis.server.url(), &[&proxy], patient).await;
    let other = pool_with(&redis, &redis.server.url(), &[&proxy], patient).await;
    set_up(&redis, &one, &[&proxy]).await;
    let held = one.hold().await.unwrap();
    let asked = redis.calls("evalsha").await;
    let waiter = tokio::spawn({
        let other = other.clone();
        async move { other.hold().await.unwrap().endpoint().clone() }
    });
    // It has asked, and been told to wait.
    while redis.calls("evalsha").await == asked {
        tokio::task::yield_now().await;
    }
    drop(held);
    one.shutdown().await;
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().expired, 0);
    let patience = Duration::from_millis(if wakeups { 10_000 } else { 500 });
    let woken = tokio::time::timeout(patience, waiter).await.is_ok();
    assert_eq!(other.counts().grants, u64::from(woken));
    woken
}

#[tokio::test]
async fn with_wakeups_a_release_elsewhere_wakes_who_waits() {
    assert!(a_release_elsewhere_wakes(true).await);
}

/// The twin.
#[tokio::test]
async fn without_wakeups_a_release_elsewhere_is_not_heard_of() {
    assert!(!a_release_elsewhere_wakes(false).await);
}

#[tokio::test]
async fn many_who_ask_at_once_share_calls() {
    let redis = Redis::on(Arc::new(Server::start(&[]))).await;
    let endpoint = |nth: usize| {
        let id = EndpointId::new(format!("e{nth}")).unwrap();
        Endpoint::new(id, "http://127.0.0.1:1", None).unwrap()
    };
    let inventory = Inventory::from_endpoints((0..64).map(endpoint)).unwrap();
    let members =
        inventory.snapshot().iter().map(|endpoint| Member::new(endpoint.id().clone())).collect();
    let store = redis.store.clone();
    let pool = Pool::builder(redis.pool(), inventory).store(store).build().await.unwrap();
    pool.administer(Order::Init(PoolConfig::default().into())).await.unwrap();
    pool.administer(Order::Add(members)).await.unwrap();
    let asked = redis.calls("evalsha").await;
    let held = join_all((0..64).map(|_| pool.hold())).await;
    let calls = redis.calls("evalsha").await - asked;
    assert_eq!(held.iter().filter(|held| held.is_ok()).count(), 64);
    assert!(calls <= 8, "{calls} calls");
}

#[tokio::test]
async fn a_pool_that_nobody_set_up_sends_nothing() {
    let redis = Redis::new().await;
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let pool = pool(&redis, &redis.server.url(), &[&proxy]).await;
    let client = LeaseMiddleware::builder(pool).build().unwrap().into_client();
    let error = client.get(origin.url("/")).send().await.unwrap_err();
    assert_eq!(Error::find_in(&error).map(Error::kind), Some(Kind::PoolUninitialised));
    assert!(origin.visits().is_empty());
}

#[tokio::test]
async fn no_error_tells_the_url_of_the_store() {
    for url in
        ["redis://user:canary@127.0.0.1:1/0", "canary://user:canary@h", "redis://:canary@[", ""]
    {
        let error = RedisStore::connect(url).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("canary") && !text.contains("127.0.0.1"), "{text}");
    }
    let builder = format!("{:?}", RedisStore::builder("redis://user:canary@127.0.0.1"));
    assert!(!builder.contains("canary"), "{builder}");
    let redis = Redis::new().await;
    let bad = RedisStore::builder(redis.server.url()).namespace("a:b").build().await.unwrap_err();
    assert_eq!(bad.kind(), Kind::Config);
}
