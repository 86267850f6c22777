//! Waiting on a Redis server: how soon a lease follows a release in another process, and how many
//! leases 64 tasks take and give back, beside two calls that do nothing in the same run. It starts a
//! server of its own; `REDIS_SERVER` names another program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark fails by panicking, and the tests' support does more than it needs"
)]

#[path = "../tests/it/support"]
mod support {
    pub(crate) mod program;
    pub(crate) mod redis;
}

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest_lease::conformance::Fixture;
use reqwest_lease::{Endpoint, EndpointId, Inventory, Member, Order, Pool, PoolConfig, RedisStore};

use support::redis::{Redis, Server};

const TASKS: usize = 64;
const PAIRS: usize = 500;

#[tokio::main]
async fn main() {
    let server = Arc::new(Server::start(&[]));
    for (wakeups, rounds) in [(true, 2000), (false, 60)] {
        let redis = Redis::on(server.clone()).await;
        let times = hand_overs(&redis, wakeups, rounds).await;
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let name = if wakeups { "with wakeups" } else { "without" };
        let (half, most, nearly_all, all) = (at(0.5), at(0.9), at(0.99), at(1.0));
        println!(
            "release to grant, {name:14} p50 {half:?}, p90 {most:?}, p99 {nearly_all:?}, max {all:?}"
        );
    }
    for members in [1000, TASKS / 2] {
        let redis = Redis::on(server.clone()).await;
        let (pairs, calls) = pairs(&redis, members).await;
        let plain = nothings(&redis).await;
        println!(
            "{TASKS} tasks, {members:4} endpoints: {pairs:6.0} pairs/s with {calls:.2} calls a \
             pair; {plain:6.0} pairs/s of calls that do nothing; {:.2} of it",
            pairs / plain
        );
    }
}

/// A pool as another process would build it: with a connection of its own.
async fn pool(redis: &Redis, members: usize, wakeups: bool) -> Pool {
    let builder = RedisStore::builder(redis.server.url()).namespace(&redis.namespace);
    let store = builder.build().await.unwrap();
    let endpoint = |nth| Endpoint::new(id(nth), "http://127.0.0.1:1", None).unwrap();
    let inventory = Inventory::from_endpoints((0..members).map(endpoint)).unwrap();
    Pool::builder(redis.pool(), inventory).store(store).wakeups(wakeups).build().await.unwrap()
}

async fn set_up(pool: &Pool, members: usize) {
    pool.administer(Order::Init(PoolConfig::default().into())).await.unwrap();
    let members = (0..members).map(|nth| Member::new(id(nth))).collect();
    pool.administer(Order::Add(members)).await.unwrap();
}

/// Times from a release by one pool to the grant of the same endpoint to the other, in order.
async fn hand_overs(redis: &Redis, wakeups: bool, rounds: usize) -> Vec<Duration> {
    let mut pools = [pool(redis, 1, wakeups).await, pool(redis, 1, wakeups).await];
    set_up(&pools[0], 1).await;
    let mut held = pools[0].hold().await.unwrap();
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let other = pools[1].clone();
        let waiter = tokio::spawn(async move { (other.hold().await.unwrap(), Instant::now()) });
        // Some time after its first question, and at any time between two.
        tokio::time::sleep(Duration::from_millis(3 + (round as u64 * 7) % 5)).await;
        let released = Instant::now();
        drop(held);
        let (next, granted) = waiter.await.unwrap();
        times.push(granted - released);
        held = next;
        pools.swap(0, 1);
    }
    times.sort();
    times
}

/// Leases taken and given back in a second, and the calls that a pair took.
async fn pairs(redis: &Redis, members: usize) -> (f64, f64) {
    let pool = pool(redis, members, false).await;
    set_up(&pool, members).await;
    drop(pool.hold().await.unwrap());
    let (before, started) = (redis.calls("evalsha").await, Instant::now());
    let task = || {
        let pool = pool.clone();
        tokio::spawn(async move {
            for _ in 0..PAIRS {
                drop(pool.hold().await.unwrap());
            }
        })
    };
    join_all((0..TASKS).map(|_| task())).await;
    pool.shutdown().await;
    let all = (TASKS * PAIRS) as f64;
    let calls = redis.calls("evalsha").await - before;
    (all / started.elapsed().as_secs_f64(), calls as f64 / all)
}

/// Pairs of calls with as many keys that do nothing, in a second.
async fn nothings(redis: &Redis) -> f64 {
    let script = Arc::new(redis::Script::new("#!lua\nreturn {}"));
    let keys: Vec<_> = (0..13).map(|nth| redis.key(&format!("key{nth}"))).collect();
    let call = async |connection: &mut redis::aio::MultiplexedConnection| {
        let _: Vec<String> = script.key(&keys).invoke_async(connection).await.unwrap();
    };
    call(&mut redis.connection.clone()).await;
    let started = Instant::now();
    let task = || {
        let (mut connection, script, keys) =
            (redis.connection.clone(), script.clone(), keys.clone());
        tokio::spawn(async move {
            for _ in 0..PAIRS * 2 {
                let _: Vec<String> = script.key(&keys).invoke_async(&mut connection).await.unwrap();
            }
        })
    };
    join_all((0..TASKS).map(|_| task())).await;
    (TASKS * PAIRS) as f64 / started.elapsed().as_secs_f64()
}

fn id(nth: usize) -> EndpointId {
    EndpointId::new(format!("endpoint-{nth:04}")).unwrap()
}
