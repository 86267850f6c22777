//! The holder against real servers and real faults.

mod acl;
mod checks;
#[cfg(feature = "redis-cluster")]
pub(crate) mod cluster;
mod faults;
mod hints;
mod logs;
mod lost;
mod moves;
pub(crate) mod proxy;
mod refusals;
mod scripts;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
pub(crate) mod server;
#[cfg(feature = "redis-tls")]
mod tls;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures_util::future::Either;

use super::script::Script;
use super::{Call, ConnectOptions, Connection, Fault};
use crate::secret::Secret;

/// Counts its runs in its key.
static COUNT: Script = Script::new("count", "#!lua\nreturn redis.call('INCR', KEYS[1])\n");

/// A script that a test has changed.
pub(crate) fn script(name: &'static str, source: String) -> &'static Script {
    Box::leak(Box::new(Script::new(name, source.leak())))
}

/// A key that pools have.
fn key() -> [String; 1] {
    ["lease:{t}:meta".to_owned()]
}

async fn connect(url: &str) -> Connection {
    Connection::connect(ConnectOptions::new(Secret::new(url))).await.unwrap()
}

/// Connects where a test is not about time: on a busy machine a call may be put off.
async fn connect_with_patience(url: &str) -> Connection {
    let mut options = ConnectOptions::new(Secret::new(url));
    (options.connect_timeout, options.call_timeout) = (PATIENCE, PATIENCE);
    Connection::connect(options).await.unwrap()
}

const PATIENCE: Duration = Duration::from_secs(20);

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
        let fault = match in_time(count(connection)).await.0 {
            Ok(_) => return begun.elapsed(),
            Err(fault) => fault,
        };
        assert!(begun.elapsed() < within, "no success within {within:?}: {fault}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fails within the call timeout and the little on top; returns fault and time.
async fn fails_in_time(connection: &Connection) -> (Fault, Duration) {
    let (answer, took) = in_time(count(connection)).await;
    (answer.unwrap_err(), took)
}

/// A call that ends 100 ms after its timeout of 500 ms at the latest.
///
/// A timer beside it tells how late this machine is by itself.
async fn in_time<T: Debug>(call: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let call = std::pin::pin!(call);
    let timer = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        begun.elapsed()
    };
    // The timer first: when both are late together it is the machine.
    let (answer, machine) = match futures_util::future::select(std::pin::pin!(timer), call).await {
        Either::Left((late, call)) => (call.await, late.saturating_sub(Duration::from_millis(500))),
        Either::Right((answer, _)) => (answer, Duration::ZERO),
    };
    let took = begun.elapsed();
    assert!(
        took < IN_TIME + machine,
        "took {took:?}, the machine is late by {machine:?}: {answer:?}"
    );
    (answer, took)
}

const IN_TIME: Duration = Duration::from_millis(600);

/// Less than the call timeout: whatever is waited out takes longer, on a busy machine this does not.
const AT_ONCE: Duration = Duration::from_millis(400);
