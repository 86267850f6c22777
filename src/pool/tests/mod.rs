//! The life of a lease, on paused time and over a wire that tests can disturb.

mod closing;
mod held;
mod panics;
mod renewal;
mod roster;
mod setting_up;
mod together;
mod unpolled;
mod unsure;
mod verdicts;
mod waiting;
mod wakes;
mod wire;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Doubt, Lease, Now, Patience, Pool, PoolBuilder, Wants};
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind};
use crate::id::{EndpointId, PoolName};
use crate::inventory::Inventory;
use crate::store::{LeaseStore, Member, Order, PoolConfig};
use crate::verdict::{Evidence, Judge, Verdict};
use wire::{Call, Fault, Wire};

const TTL: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn name() -> PoolName {
    PoolName::new("vn").unwrap()
}

fn id(id: &str) -> EndpointId {
    EndpointId::new(id).unwrap()
}

fn endpoint(name: &str) -> Endpoint {
    Endpoint::new(id(name), "http://127.0.0.1:1", None).unwrap()
}

fn inventory(ids: &[&str]) -> Inventory {
    Inventory::from_endpoints(ids.iter().map(|id| endpoint(id))).unwrap()
}

fn members(ids: &[&str]) -> Order {
    let members = ids.iter().map(|name| Member::new(id(name))).collect();
    Order::Add(members)
}

/// A pool of these endpoints over a wire, and the wire.
async fn pool_of(ids: &[&str], choose: impl FnOnce(PoolBuilder) -> PoolBuilder) -> (Pool, Wire) {
    let wire = Wire::new();
    wire.order(Order::Init(PoolConfig::default().into())).await;
    wire.order(members(ids)).await;
    let builder = Pool::builder(name(), inventory(ids)).store(wire.clone()).ttl(TTL);
    (choose(builder).build().await.unwrap(), wire)
}

fn wants() -> Wants {
    Wants { ttl: TTL, site: None, exclude: Vec::new(), prefer: None }
}

fn without(ids: &[&str]) -> Wants {
    Wants { exclude: ids.iter().map(|name| id(name)).collect(), ..wants() }
}

async fn lease(pool: &Pool) -> Lease {
    pool.lease(wants(), seconds(30)).await.unwrap().0
}

/// Why there was no lease, and after how long.
async fn refusal(pool: &Pool, patience: Duration) -> (Error, Duration) {
    let started = Instant::now();
    let Err(error) = pool.lease(wants(), patience).await else { panic!("there was a lease") };
    (error, started.elapsed())
}

/// The same of three who queue behind somebody with an hour to wait, who is not heard.
async fn behind_a_patient_one(pool: &Pool, patience: Duration) -> Vec<(Error, Duration)> {
    let mut patient = Box::pin(pool.lease(wants(), HOUR));
    assert!(futures_util::poll!(&mut patient).is_pending());
    let all = futures_util::future::join_all((0..3).map(|_| refusal(pool, patience)));
    tokio::select! {
        all = all => all,
        _ = patient => panic!("there was a lease"),
    }
}

/// Runs everything that is ready to run.
async fn settle() {
    sleep(millis(1)).await;
}

async fn leased(wire: &Wire) -> usize {
    wire.memory.status(&name()).await.unwrap().leased
}

/// A judge that lets every endpoint rest after use.
struct Rests(Duration);

impl Judge for Rests {
    fn judge(&self, _: Evidence) -> Verdict {
        Verdict::cooldown(self.0)
    }
}
