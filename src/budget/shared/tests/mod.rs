//! Buckets in a real Redis.

mod clock;
mod denied;
mod ends;
mod flight;
mod pauses;
mod probes;
mod queues;
mod rates;
mod server;

use std::time::Duration;

use super::bucket::*;
use super::*;
use crate::budget::{Budgets, Pauses};
use crate::redis::tests::server::Server;
use crate::redis::{ConnectOptions, Connection, Namespace};
use crate::secret::Secret;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);
const PROBE: Duration = Duration::from_secs(30);
const KEY: &str = "lease:budget:{a.test}";
const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) };

/// With time for each call: on a busy machine a server may be put off.
async fn limits(url: &str) -> SharedLimits {
    let mut options = ConnectOptions::new(Secret::new(url));
    (options.connect_timeout, options.call_timeout) = (PATIENCE, PATIENCE);
    let connection = Connection::connect(options).await.unwrap();
    SharedLimits::new(Handle { connection, namespace: Namespace::new("lease").unwrap() })
}

/// A server, and a worker's bucket of `a.test`.
struct Rig {
    server: Server,
    limits: SharedLimits,
}

impl Rig {
    async fn start() -> Self {
        let server = Server::start(&[]);
        Self { limits: limits(&server.url()).await, server }
    }

    /// A bucket as a worker with this rate has it.
    fn bucket(&self, interval: Duration, burst: u32) -> Bucket {
        Bucket::new(self.limits.clone(), "a.test", interval, burst)
    }

    /// What is stored.
    fn state(&self) -> Vec<u64> {
        let state: String = self.server.ask(&format!("GET {KEY}"));
        state.split(':').map(|field| field.parse().unwrap()).collect()
    }

    fn tat(&self) -> u64 {
        self.state()[1]
    }

    /// Lets time pass for the bucket: all that is stored moves into the past.
    fn pass(&self, time: Duration) {
        self.step(-i64::try_from(time.as_micros()).unwrap());
    }

    /// Moves what is stored as a server's clock that is set back moves it, in microseconds.
    fn step(&self, by: i64) {
        let mut state = self.state();
        for (nth, field) in state.iter_mut().enumerate() {
            if matches!(nth, 0 | 1 | 3 | 6) && *field > 0 {
                *field = field.checked_add_signed(by).unwrap();
            }
        }
        let state: Vec<_> = state.iter().map(ToString::to_string).collect();
        let _: () = self.server.ask(&format!("SET {KEY} {} KEEPTTL", state.join(":")));
    }
}

async fn slot(bucket: &Bucket) -> Slot {
    match bucket.reserve(PROBE, None).await.unwrap() {
        Reserved::Slot(slot) => slot,
        other => panic!("{other:?}"),
    }
}

async fn wait(bucket: &Bucket) -> Duration {
    slot(bucket).await.wait
}
