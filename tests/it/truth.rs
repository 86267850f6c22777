//! The pool's promises among real processes, by what the Redis server itself wrote down.
//!
//! | file | what it is about |
//! |---|---|
//! | `aof` | a server's append-only file, read and replayed |
//! | `layout` | what is known here of the keys and of the scripts' sources |
//! | `checker` | the promises, looked for in what was replayed |
//! | `diary` | what workers believe to hold |
//! | `relay` | a way to the server that loses answers and changes scripts |
//! | `worker` | a process that leases in all the ways there are |
//! | `ground` | many of those, killed and started again |
//! | `crash` | a process that dies with its leases |
//! | `stopped` | a process that sleeps past its deadline |
//! | `failover` | restarts, promotions and their ways back |

pub(crate) mod aof;
mod checker;
mod crash;
mod diary;
mod failover;
mod ground;
pub(crate) mod layout;
pub(crate) mod relay;
#[allow(dead_code, reason = "the tests of connections need more of it")]
#[path = "../../src/redis/tests/server.rs"]
mod server;
mod stopped;
mod witness;
mod worker;

use std::time::Duration;

use reqwest_lease::{
    AdminRequest, EndpointId, LeaseStore, Member, Order, PoolConfig, PoolName, RedisStore,
};

use crate::support::SOON;

const NAMESPACE: &str = "truth";
const ENDPOINTS: usize = 16;
const TASKS_EACH: usize = 8;

/// Short, so that holders get beyond it.
const TTL: Duration = Duration::from_millis(600);
const COOLDOWN: Duration = Duration::from_millis(100);

/// What a server writes its state down with, each step before it answers.
const APPEND_ONLY: &[&str] = &[
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--aof-use-rdb-preamble",
    "no",
    "--aof-timestamp-enabled",
    "yes",
    "--auto-aof-rewrite-percentage",
    "0",
];

fn id(nth: usize) -> EndpointId {
    EndpointId::new(format!("e{nth:02}")).unwrap()
}

fn pool_name() -> PoolName {
    PoolName::new("truth").unwrap()
}

/// What the names of the pool's keys begin with.
fn prefix() -> String {
    format!("{NAMESPACE}:{{{}}}:", pool_name())
}

fn config() -> PoolConfig {
    let mut config = PoolConfig::default();
    config.largest_ttl = TTL;
    config.largest_lifetime = TTL * 3;
    config
}

/// A store that bears a slow machine: where an answer is lost, the test has lost it.
async fn connect(url: &str) -> RedisStore {
    let builder = RedisStore::builder(url).namespace(NAMESPACE).call_timeout(SOON);
    builder.build().await.unwrap()
}

async fn set_up(store: &RedisStore, config: PoolConfig) {
    order(store, Order::Init(config.into())).await;
    order(store, members()).await;
}

fn members() -> Order {
    Order::Add((0..ENDPOINTS).map(|nth| Member::new(id(nth))).collect())
}

async fn order(store: &RedisStore, order: Order) {
    store.administer(AdminRequest::new(pool_name(), order)).await.unwrap();
}
