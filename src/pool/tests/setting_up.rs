//! Pools that are set up in a store.

use super::*;
use crate::id::AdminName;
use crate::inventory::Snapshot;
use crate::pool::set_up::BATCH;
use crate::store::{AuditEntry, PoolConfig, Setup};

/// An inventory of this many endpoints, each with a weight of its own, at version 7.
fn inventory_of(number: usize) -> Inventory {
    let entry = |nth: usize| {
        let weight = nth % 3 + 1;
        format!("[[endpoint]]\nid = \"e{nth:05}\"\nurl = \"http://h:1\"\nweight = {weight}\n")
    };
    let text: String = (0..number).map(entry).collect();
    Inventory::from_toml(&format!("version = 7\n{text}")).unwrap()
}

async fn pool_with(wire: &Wire, inventory: Inventory) -> Pool {
    let kim = AdminName::new("kim").unwrap();
    let builder = Pool::builder(name(), inventory).store(wire.clone()).administrator(kim);
    builder.build().await.unwrap()
}

/// The pool is open and has the inventory's endpoints with their weights.
async fn is_complete(pool: &Pool) {
    let status = pool.status().await.unwrap();
    assert!(!status.loading);
    assert_eq!(status.config_version, Some(7));
    let members = pool.list().await.unwrap();
    let snapshot: Snapshot = (*pool.inventory().snapshot()).clone();
    let told = members.iter().map(|member| (member.endpoint.clone(), member.weight));
    let known = snapshot.iter().map(|it| (it.id().clone(), it.labels().weight));
    assert_eq!(told.collect::<Vec<_>>(), known.collect::<Vec<_>>());
}

async fn words(pool: &Pool) -> Vec<String> {
    let trail = pool.audit(None, usize::MAX).await.unwrap();
    let kims = |entry: &AuditEntry| {
        entry.by.as_ref().is_some_and(|by| by.as_str() == "kim") && entry.config_version == Some(7)
    };
    assert!(trail.iter().all(kims), "{trail:?}");
    trail.into_iter().rev().map(|entry| format!("{} {}", entry.order, entry.number)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_loaded_in_batches_and_opened() {
    let pool = pool_with(&Wire::new(), inventory_of(2 * BATCH + 201)).await;
    assert_eq!(pool.set_up(PoolConfig::default()).await.unwrap().changed, 2 * BATCH + 201);
    is_complete(&pool).await;
    let (said, batch) = (words(&pool).await, format!("load {BATCH}"));
    assert_eq!(said, ["init:loading 0", &batch, &batch, "load 201", "open 0"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_one_goes_on_wherever_it_was() {
    for lost in [Fault::Lost, Fault::Unsent] {
        for at in 0..5 {
            let wire = Wire::new();
            let pool = pool_with(&wire, inventory_of(2 * BATCH + 201)).await;
            let faults: Vec<_> = (0..at).map(|_| Fault::None).chain([lost]).collect();
            wire.next(Call::Administer, &faults);
            let error = pool.set_up(PoolConfig::default()).await.unwrap_err();
            assert_eq!(error.kind(), Kind::StoreUnavailable);
            let again = pool.set_up(PoolConfig::default()).await;
            match (at, lost) {
                // It had been opened, and nobody knew.
                (4, Fault::Lost) => assert_eq!(again.unwrap_err().kind(), Kind::InvalidCall),
                _ => drop(again.unwrap()),
            }
            is_complete(&pool).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_goes_on_has_the_inventory_of_then() {
    let wire = Wire::new();
    let before = pool_with(&wire, inventory_of(BATCH + 200)).await;
    wire.next(Call::Administer, &[Fault::None, Fault::None, Fault::None, Fault::Unsent]);
    before.set_up(PoolConfig::default()).await.unwrap_err();
    assert_eq!(before.status().await.unwrap().members(), BATCH + 200);
    let pool = pool_with(&wire, inventory_of(BATCH + 100)).await;
    assert_eq!(pool.set_up(PoolConfig::default()).await.unwrap().changed, 0);
    is_complete(&pool).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_goes_on() {
    let wire = Wire::new();
    let pool = pool_with(&wire, inventory_of(BATCH + 200)).await;
    wire.next(Call::Administer, &[Fault::None, Fault::None, Fault::Hangs]);
    let hung = tokio::time::timeout(seconds(1), pool.set_up(PoolConfig::default()));
    assert!(hung.await.is_err());
    assert_eq!(pool.set_up(PoolConfig::default()).await.unwrap().changed, 200);
    is_complete(&pool).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_pool_is_refused_and_left_alone() {
    let wire = Wire::new();
    let pool = pool_with(&wire, inventory_of(3)).await;
    pool.set_up(PoolConfig::default()).await.unwrap();
    let held = lease(&pool).await;
    let said = words(&pool).await;
    let other = pool_with(&wire, inventory_of(5)).await;
    let error = other.set_up(PoolConfig::default()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidCall);
    assert_eq!(words(&pool).await, said);
    assert_eq!(pool.status().await.unwrap().members(), 3);
    drop(held);

    let embedded = Pool::builder(name(), inventory(&["a"])).build().await.unwrap();
    let error = embedded.set_up(PoolConfig::default()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidCall);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_begun_otherwise_is_not_gone_on_with() {
    let plain = Setup::new(PoolConfig::default());
    let short = PoolConfig { largest_ttl: TTL, ..PoolConfig::default() };
    let starts = [plain.clone(), plain.after_loss(), Setup::new(short)];
    for (nth, begun) in starts.iter().enumerate() {
        for (other, wanted) in starts.iter().enumerate() {
            let wire = Wire::new();
            wire.order(Order::Init(begun.clone().loading())).await;
            let pool = pool_with(&wire, inventory_of(2)).await;
            let done = pool.set_up(wanted.clone()).await;
            assert_eq!(done.is_ok(), nth == other, "{begun:?} {wanted:?} {done:?}");
            assert_eq!(pool.status().await.unwrap().loading, nth != other);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_at_a_loading_pool_is_told_so_or_served_when_it_opens() {
    let wire = Wire::new();
    wire.order(Order::Init(Setup::new(PoolConfig::default()).loading())).await;
    let builder = Pool::builder(name(), inventory(&["a"])).store(wire.clone()).ttl(TTL);
    let pool = builder.poll_every(HOUR).build().await.unwrap();
    for (error, waited) in behind_a_patient_one(&pool, seconds(5)).await {
        assert_eq!((error.kind(), error.is_transient()), (Kind::PoolLoading, true));
        assert!(waited >= seconds(5) && waited < millis(5010), "{waited:?}");
        assert_eq!(error.to_string(), "pool vn is being loaded");
    }
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { drop(pool.lease(wants(), HOUR).await.unwrap()) }
    });
    settle().await;
    pool.set_up(PoolConfig::default()).await.unwrap();
    tokio::time::timeout(millis(100), waiter).await.expect("it slept on").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pool_after_a_loss_is_waited_for_to_its_end() {
    let wire = Wire::new();
    let pool = pool_with(&wire, inventory(&["a"])).await;
    let config = PoolConfig { largest_ttl: TTL, ..PoolConfig::default() };
    pool.set_up(Setup::new(config).after_loss()).await.unwrap();
    let (error, _) = refusal(&pool, seconds(5)).await;
    assert_eq!(error.kind(), Kind::PoolExhausted);
    let after = error.retry_after().expect("the hold has an end");
    assert!(after > seconds(50) && after <= TTL, "{after:?}");
    let started = Instant::now();
    drop(pool.lease(wants(), HOUR).await.unwrap());
    assert!(started.elapsed() >= seconds(54), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn orders_through_a_pool_have_its_name_and_reloads_their_version() {
    let pool = pool_with(&Wire::new(), inventory_of(2)).await;
    pool.set_up(PoolConfig::default()).await.unwrap();
    pool.administer(Order::Pause).await.unwrap();
    let last = &pool.audit(None, 1).await.unwrap()[0];
    assert_eq!((last.by.as_ref().unwrap().as_str(), last.config_version), ("kim", None));
    let before = pool.audit(Some(last.id), 1).await.unwrap();
    assert_eq!(before[0].order, "open");

    let embedded = Pool::builder(name(), inventory_of(2)).build().await.unwrap();
    embedded.reload().await.unwrap();
    let last = &embedded.audit(None, 1).await.unwrap()[0];
    assert_eq!((last.order.as_str(), &last.by, last.config_version), ("add", &None, Some(7)));
    assert_eq!(embedded.status().await.unwrap().config_version, Some(7));
}

#[tokio::test(start_paused = true)]
async fn that_a_pool_is_not_there_yet_is_no_failure_of_the_store() {
    let wire = Wire::new();
    let pool = pool_with(&wire, inventory_of(3)).await;
    pool.status().await.unwrap_err();
    assert_eq!(pool.counts().store_errors, 1, "whoever looks for it is told");
    pool.set_up(PoolConfig::default()).await.unwrap();
    assert_eq!(pool.counts().store_errors, 1);
}
