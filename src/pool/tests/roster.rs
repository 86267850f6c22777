//! Members that come and go.

use async_trait::async_trait;

use super::*;
use crate::inventory::{InventorySource, Snapshot};
use crate::store::{MemoryStore, State};

/// A source that a test rewrites.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<&'static str>>>);

impl Page {
    fn write(&self, ids: &[&'static str]) {
        *self.0.lock().unwrap() = ids.to_vec();
    }
}

#[async_trait]
impl InventorySource for Page {
    async fn load(&self) -> Result<Snapshot, Error> {
        let ids = self.0.lock().unwrap().clone();
        Snapshot::new(ids.into_iter().map(endpoint), None)
    }
}

async fn embedded(ids: &[&'static str]) -> (Pool, Page) {
    let page = Page::default();
    page.write(ids);
    let inventory = Inventory::open(page.clone()).await.unwrap();
    let pool = Pool::builder(name(), inventory).poll_every(HOUR).build().await.unwrap();
    (pool, page)
}

async fn ids(pool: &Pool) -> Vec<String> {
    let members = pool.list().await.unwrap();
    members.iter().map(|member| member.endpoint.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_woken_for_an_endpoint_that_a_reload_adds() {
    let (pool, page) = embedded(&["a"]).await;
    let _held = lease(&pool).await;
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { lease(&pool).await.endpoint().id().clone() }
    });
    settle().await;
    page.write(&["a", "b"]);
    pool.reload().await.unwrap();
    assert_eq!(waiter.await.unwrap().as_str(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_removed_endpoint_ends_its_lease_first() {
    let (pool, page) = embedded(&["a", "b"]).await;
    let a = pool.lease(without(&["b"]), seconds(1)).await.unwrap().0;
    page.write(&["b"]);
    for _ in 0..2 {
        pool.reload().await.unwrap();
        assert_eq!(ids(&pool).await, ["a", "b"]);
    }
    assert!(a.is_trusted());
    drop(a);
    assert_eq!(ids(&pool).await, ["b"]);
    let b = lease(&pool).await;
    assert_eq!(b.endpoint().id().as_str(), "b");
}

#[tokio::test(start_paused = true)]
async fn an_inventory_that_is_refused_changes_nothing() {
    let (pool, page) = embedded(&["a", "b"]).await;
    for bad in [&["a", "a"][..], &[]] {
        page.write(bad);
        assert_eq!(pool.reload().await.unwrap_err().kind(), Kind::Inventory);
        assert_eq!(pool.inventory().snapshot().len(), 2);
        assert_eq!(ids(&pool).await, ["a", "b"]);
    }
    drop(lease(&pool).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_at_once_end_with_the_members_of_the_inventory() {
    let (pool, page) = embedded(&["a", "b", "c"]).await;
    for round in 0..200 {
        page.write(if round % 2 == 0 { &["a"] } else { &["b", "c"] });
        let reload = |pool: Pool| tokio::spawn(async move { pool.reload().await.map(drop) });
        let [one, other] = [reload(pool.clone()), reload(pool.clone())];
        page.write(if round % 3 == 0 { &["c"] } else { &["a", "c"] });
        let third = reload(pool.clone());
        for reload in [one, other, third] {
            reload.await.unwrap().unwrap();
        }
        let snapshot = pool.inventory().snapshot();
        let known: Vec<_> = snapshot.iter().map(|endpoint| endpoint.id().to_string()).collect();
        assert_eq!(ids(&pool).await, known, "in round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_unknown_here_is_left_to_those_who_know_it() {
    let store = MemoryStore::new();
    let set_up = [Order::Init(PoolConfig::default().into()), members(&["a", "b", "c"])];
    for order in set_up {
        let request = crate::store::AdminRequest::new(name(), order);
        store.administer(request).await.unwrap();
    }
    let build = |ids: &'static [&str]| Pool::builder(name(), inventory(ids)).store(store.clone());
    let old = build(&["c"]).build().await.unwrap();
    let new = build(&["a", "b", "c"]).build().await.unwrap();

    let c = lease(&old).await;
    assert_eq!(c.endpoint().id().as_str(), "c");
    assert_eq!((old.counts().unknown_endpoints, old.counts().grants), (2, 3));
    assert_eq!(old.counts().releases, 2, "given back unused");
    let states = new.list().await.unwrap();
    assert_eq!(states.iter().filter(|member| member.state == State::Ready).count(), 2);
    let known = [lease(&new).await, lease(&new).await];
    assert!(known.iter().all(|lease| lease.endpoint().id().as_str() != "c"));
}

/// A pool with many members before the one that the inventory here has.
async fn mostly_unknown(number: usize) -> (Pool, Wire) {
    let ids: Vec<_> = (0..number).map(|number| format!("u{number:03}")).collect();
    let (pool, wire) = pool_of(&["z"], |builder| builder).await;
    let z = lease(&pool).await;
    wire.order(members(&ids.iter().map(String::as_str).collect::<Vec<_>>())).await;
    sleep(seconds(1)).await;
    drop(z);
    settle().await;
    (pool, wire)
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_are_unknown_here_cost_a_call_each_and_only_once() {
    let (pool, wire) = mostly_unknown(200).await;
    let mut calls = Vec::new();
    for _ in 0..3 {
        let before = wire.made(Call::Acquire).len();
        drop(lease(&pool).await);
        settle().await;
        calls.push(wire.made(Call::Acquire).len() - before);
    }
    assert_eq!((calls, pool.counts().unknown_endpoints), (vec![201, 1, 1], 200));
}

#[tokio::test(start_paused = true)]
async fn more_unknown_endpoints_than_a_store_passes_over_are_asked_for_at_leisure() {
    let (pool, wire) = mostly_unknown(400).await;
    wire.order(Order::Disable(vec![id("z")])).await;
    let (error, waited) = refusal(&pool, seconds(5)).await;
    assert_eq!((error.kind(), waited), (Kind::PoolExhausted, seconds(5)));
    assert!(error.to_string().contains("256 that the inventory here lacks"), "{error}");
    let calls = wire.made(Call::Acquire).len();
    assert!((256 + 15..256 + 25).contains(&calls), "{calls} calls, 4 a second at last");
}

#[tokio::test(start_paused = true)]
async fn more_unknown_endpoints_in_memory_are_asked_for_at_leisure_too() {
    let store = MemoryStore::new();
    let ids: Vec<_> = (0..400).map(|number| format!("u{number:03}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    for order in [Order::Init(PoolConfig::default().into()), members(&ids)] {
        store.administer(crate::store::AdminRequest::new(name(), order)).await.unwrap();
    }
    let pool = Pool::builder(name(), inventory(&["z"])).store(store).build().await.unwrap();
    let (error, waited) = refusal(&pool, seconds(5)).await;
    assert_eq!((error.kind(), waited), (Kind::PoolExhausted, seconds(5)));
    assert!((271..285).contains(&pool.counts().grants), "{:?}", pool.counts());
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_becomes_known_is_passed_over_no_longer() {
    let page = Page::default();
    page.write(&["z"]);
    let wire = Wire::new();
    wire.order(Order::Init(PoolConfig::default().into())).await;
    wire.order(members(&["a"])).await;
    let inventory = Inventory::open(page.clone()).await.unwrap();
    let builder = Pool::builder(name(), inventory).store(wire.clone()).poll_every(HOUR);
    let pool = builder.build().await.unwrap();
    let (error, waited) = refusal(&pool, seconds(5)).await;
    assert_eq!((error.kind(), waited), (Kind::PoolExhausted, seconds(5)), "it might have come");
    assert!(error.to_string().contains("1 that the inventory here lacks"), "{error}");
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { lease(&pool).await.endpoint().id().clone() }
    });
    settle().await;
    page.write(&["a"]);
    pool.reload().await.unwrap();
    settle().await;
    assert!(waiter.is_finished(), "the reload wakes it");
    assert_eq!(waiter.await.unwrap().as_str(), "a");
}

/// A store that says so of any token.
#[tokio::test(start_paused = true)]
async fn tokens_that_were_never_cancelled_are_not_drawn_anew_for_ever() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Swallowed);
    let (error, waited) = refusal(&pool, seconds(5)).await;
    assert_eq!((error.kind(), waited), (Kind::PoolExhausted, seconds(5)));
    let calls = wire.made(Call::Acquire).len();
    assert!((15..25).contains(&calls), "{calls} calls");
}
