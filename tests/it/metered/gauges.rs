//! The pool's state in gauges: what is told, and that nothing is told that is not known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest_lease::{
    Endpoint, EndpointId, Error, Inventory, InventorySource, Member, MemoryStore, Order, Pool,
    PoolBuilder, PoolConfig, PoolName, Snapshot,
};

use super::Scraped;
use crate::support::client::pool_of;
use crate::support::eventually;

const OFTEN: Duration = Duration::from_millis(20);

#[tokio::test]
async fn the_pools_state_is_told_in_gauges_when_asked_for() {
    let scraped = Scraped::start();
    let endpoints = ["a", "b", "c", "d"]
        .map(|id| Endpoint::new(EndpointId::new(id).unwrap(), "http://127.0.0.1:1", None).unwrap());
    let inventory = Inventory::from_endpoints(endpoints).unwrap();
    let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory)
        .gauges_every(Duration::from_millis(20))
        .build()
        .await
        .unwrap();
    let _held = pool.hold().await.unwrap();
    pool.administer(Order::Disable(vec![EndpointId::new("d").unwrap()])).await.unwrap();
    pool.administer(Order::Pause).await.unwrap();
    for (series, value) in [
        (r#"leases_valid{pool="vn"}"#, 1.0),
        (r#"endpoints_ready{pool="vn"}"#, 2.0),
        (r#"endpoints_cooling{pool="vn"}"#, 0.0),
        (r#"leases_expired{pool="vn"}"#, 0.0),
        (r#"endpoints_parked{pool="vn",reason="disabled"}"#, 1.0),
        (r#"endpoints_parked{pool="vn",reason="quarantined"}"#, 0.0),
        (r#"grants_withheld{pool="vn",reason="paused"}"#, 1.0),
        (r#"grants_withheld{pool="vn",reason="hold"}"#, 0.0),
        (r#"waiters{pool="vn"}"#, 0.0),
    ] {
        scraped.reaches(series, value).await;
    }
    assert!(scraped.value(r#"status_timestamp_seconds{pool="vn"}"#).unwrap() > 1.7e9);
    assert_eq!(pool.counts().store_errors, 0, "it is not asked for what is not there yet");
}

/// The twin: nobody asks the store for what nobody has asked for.
#[tokio::test]
async fn without_being_asked_the_store_is_not() {
    let scraped = Scraped::start();
    let pool = pool_of(&["http://127.0.0.1:1".to_owned()]).await;
    pool.hold().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(scraped.value(r#"grants_total{pool="test"}"#), Some(1.0));
    assert_eq!(scraped.value(r#"leases_valid{pool="test"}"#), None);
}

impl Scraped {
    async fn forgets(&self, series: &str) {
        eventually(&format!("no {series}"), || self.value(series)?.is_nan().then_some(())).await;
    }
}

fn endpoint() -> Endpoint {
    Endpoint::new(EndpointId::new("a").unwrap(), "http://127.0.0.1:1", None).unwrap()
}

/// Gauges go by the pool's name, and other tests have theirs.
fn builder(name: &str) -> PoolBuilder {
    let inventory = Inventory::from_endpoints([endpoint()]).unwrap();
    Pool::builder(PoolName::new(name).unwrap(), inventory).gauges_every(OFTEN)
}

#[tokio::test]
async fn a_pool_that_has_ended_is_not_told_of() {
    for shuts_down in [true, false] {
        let scraped = Scraped::start();
        let pool = builder("ended").build().await.unwrap();
        scraped.reaches(r#"endpoints_ready{pool="ended"}"#, 1.0).await;
        if shuts_down {
            pool.shutdown().await;
        } else {
            drop(pool.clone());
            assert_eq!(scraped.value(r#"endpoints_ready{pool="ended"}"#), Some(1.0), "the twin");
            drop(pool);
        }
        for series in [
            r#"endpoints_ready{pool="ended"}"#,
            r#"endpoints_parked{pool="ended",reason="disabled"}"#,
            r#"grants_withheld{pool="ended",reason="hold"}"#,
            r#"status_timestamp_seconds{pool="ended"}"#,
        ] {
            scraped.forgets(series).await;
        }
        assert_eq!(scraped.value(r#"waiters{pool="ended"}"#), Some(0.0), "nobody, for sure");
    }
}

#[tokio::test]
async fn a_pool_that_is_built_anew_before_the_other_ends_is_told_of() {
    let scraped = Scraped::start();
    let old = builder("anew").build().await.unwrap();
    scraped.reaches(r#"endpoints_ready{pool="anew"}"#, 1.0).await;
    // It looks once, and not again while this test lasts.
    let new = builder("anew").gauges_every(Duration::from_secs(3600)).build().await.unwrap();
    let _held = new.hold().await.unwrap();
    old.shutdown().await;
    drop(old);
    tokio::task::yield_now().await;
    assert!(scraped.value(r#"endpoints_ready{pool="anew"}"#).unwrap() >= 0.0);
}

#[tokio::test]
async fn a_state_that_is_not_known_is_not_told() {
    let scraped = Scraped::start();
    let store = MemoryStore::new();
    let pool = builder("unknown").store(store).build().await.unwrap();
    let series = r#"endpoints_ready{pool="unknown"}"#;
    let at = r#"status_timestamp_seconds{pool="unknown"}"#;
    scraped.forgets(series).await;
    assert_eq!(scraped.value(at), Some(0.0), "it was never learned");
    pool.administer(Order::Init(PoolConfig::default().into())).await.unwrap();
    let member = Member::new(EndpointId::new("a").unwrap());
    pool.administer(Order::Add(vec![member])).await.unwrap();
    scraped.reaches(series, 1.0).await;
    let known = scraped.value(at).unwrap();
    assert!(known > 1.7e9);
    pool.administer(Order::Pause).await.unwrap();
    pool.administer(Order::DestroyPool).await.unwrap();
    scraped.forgets(series).await;
    assert!(scraped.value(at).unwrap() >= known, "when it was learned last stays");
}

/// A source that fails when it is told to.
#[derive(Clone, Default)]
struct Moody(Arc<AtomicBool>);

#[async_trait]
impl InventorySource for Moody {
    async fn load(&self) -> Result<Snapshot, Error> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(Error::inventory("not now")),
            false => Snapshot::new([endpoint()], None),
        }
    }
}

#[tokio::test]
async fn an_inventory_that_could_not_be_read_is_told_until_it_can() {
    let scraped = Scraped::start();
    let moody = Moody::default();
    let inventory = Inventory::open(moody.clone()).await.unwrap();
    let pool = Pool::builder(PoolName::new("old").unwrap(), inventory).build().await.unwrap();
    let stale = || scraped.value(r#"inventory_stale{pool="old"}"#);
    assert_eq!(stale(), Some(0.0));
    for (fails, value) in [(true, 1.0), (false, 0.0), (true, 1.0)] {
        moody.0.store(fails, Ordering::SeqCst);
        assert_eq!(pool.reload().await.is_err(), fails);
        assert_eq!(stale(), Some(value));
    }
    pool.shutdown().await;
    drop(pool);
    scraped.reaches(r#"inventory_stale{pool="old"}"#, 0.0).await;
}

/// A counter that first shows with its first event shows no rise.
#[tokio::test]
async fn a_recorder_that_comes_late_is_told_of_what_is_zero() {
    let pool = builder("late").build().await.unwrap();
    let scraped = Scraped::start();
    scraped.reaches(r#"expirations_total{pool="late"}"#, 0.0).await;
    scraped.reaches(r#"inventory_stale{pool="late"}"#, 0.0).await;
    drop(pool);
}
