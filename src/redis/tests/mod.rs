//! The holder against real servers and real faults.

mod acl;
mod checks;
#[cfg(feature = "redis-cluster")]
mod cluster;
mod faults;
mod logs;
mod lost;
mod moves;
mod proxy;
mod refusals;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod server;
#[cfg(feature = "redis-tls")]
mod tls;

use std::time::{Duration, Instant};

use super::{Call, ConnectOptions, Connection, Fault, Script};
use crate::secret::Secret;

/// Counts its runs in its key.
static COUNT: Script = Script::new("count", "#!lua\nreturn redis.call('INCR', KEYS[1])\n");

/// A key that pools have.
fn key() -> [String; 1] {
    ["lease:{t}:meta".to_owned()]
}

async fn connect(url: &str) -> Connection {
    Connection::connect(ConnectOptions::new(Secret::new(url))).await.unwrap()
}

async fn run(connection: &Connection, script: &Script) -> Result<redis::Value, Fault> {
    connection.call(Call { script, keys: &key(), args: &[] }).await
}

async fn count(connection: &Connection) -> Result<i64, Fault> {
    run(connection, &COUNT).await.map(|value| redis::from_redis_value(value).unwrap())
}

/// Repeats a call as a caller would, until it succeeds; how long that took.
async fn until_it_counts(connection: &Connection, within: Duration) -> Duration {
    let begun = Instant::now();
    loop {
        let asked = Instant::now();
        let fault = match count(connection).await {
            Ok(_) => return begun.elapsed(),
            Err(fault) => fault,
        };
        assert!(asked.elapsed() < IN_TIME, "{:?} {fault}", asked.elapsed());
        assert!(begun.elapsed() < within, "no success within {within:?}: {fault}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fails within the call timeout of 500 ms and the little on top; returns fault and time.
async fn fails_in_time(connection: &Connection) -> (Fault, Duration) {
    let begun = Instant::now();
    let fault = count(connection).await.unwrap_err();
    let took = begun.elapsed();
    assert!(took < IN_TIME, "{took:?} {fault}");
    (fault, took)
}

const IN_TIME: Duration = Duration::from_millis(600);
