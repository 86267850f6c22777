//! Budgets that many processes share through Redis.
//!
//! | file | concept |
//! |---|---|
//! | `bucket` | one site's bucket in Redis: typed calls of `lua/budget/` |
//! | `limiter` | what a queue asks, answered by buckets |
//! | `news` | what is told to Redis while nobody waits for it |
//! | `places` | the places in flight that this process has taken |
//! | `outage` | whether Redis can be asked now, and what has to be made up for afterwards |
//! | `counts` | what was done, in numbers |

mod bucket;
mod counts;
mod limiter;
mod news;
mod outage;
mod places;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

#[cfg(feature = "test-util")]
use bucket::Bucket;
#[cfg(feature = "test-util")]
use bucket::{Passage, Seat};
pub use counts::SharedCounts;

use super::limit::Limit;
use super::local::Limiter;
use crate::error::{Error, Kind};
use crate::redis::handle::Handle;
use crate::telemetry::{Counter, Family, table};
use counts::Counters;
use limiter::SharedLimiter;
use news::News;
use outage::Outage;

/// Budgets that all processes share which use the same Redis and namespace.
///
/// [`BudgetsBuilder::shared`](crate::BudgetsBuilder::shared) takes it. Rates go by the server's
/// clock and are exact over all processes. An admission is one call; where the budget limits what
/// is in flight, a slot that is not due at once takes its place by a second one, and places are
/// given back by further ones, many at a time. A slot that was reserved before the site was paused
/// is still used, so at most one request a process goes out into a pause.
///
/// Rate and burst go along with each call: a changed rate is in force at once, and what was
/// charged before counts in requests. All processes should have the same rules. Requests are
/// charged to a bucket by the name of the rule's target, so it is the same site's bucket for all
/// pools.
///
/// What a bucket has charged is lost with the server's memory: after a restart or a failover each
/// process that noticed starts with an empty bucket. A server's clock that is set forward by more
/// than a bucket takes to fill allows one burst, and ends pauses sooner; set back, all waits stay
/// as they were.
///
/// # When Redis does not answer
///
/// - [`refuse`](Self::refuse), the default: requests fail with
///   [`StoreUnavailable`](Kind::StoreUnavailable) within the connection's call timeout.
/// - [`fallback_local`](Self::fallback_local): each process goes on by itself at a share of the
///   rate.
///
/// # Examples
/// ```no_run
/// use reqwest_lease::{Budget, Budgets, RedisStore, SharedLimits};
///
/// # async fn run() -> Result<(), reqwest_lease::Error> {
/// let store = RedisStore::connect("redis://127.0.0.1").await?;
/// let budgets = Budgets::builder()
///     .shared(SharedLimits::new(store.connection()).fallback_local(0.25))
///     .default(Budget::per_second(2))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SharedLimits {
    shared: Arc<Shared>,
    share: Option<f64>,
}

struct Shared {
    handle: Handle,
    outage: Outage,
    counters: Counters,
    /// Of calls that failed, by code.
    errors: Family,
    fallbacks: Counter,
    news: News,
    /// Tells this process's passages from all others'.
    process: u64,
    passages: AtomicU64,
}

/// Where the buckets of a rule are.
#[derive(Clone)]
pub(super) struct Sharing {
    limits: SharedLimits,
    /// Keeps the names of what is no host apart from those of hosts.
    prefix: &'static str,
}

impl Sharing {
    pub(super) fn new(limits: &SharedLimits, prefix: &'static str) -> Self {
        Self { limits: limits.clone(), prefix }
    }

    /// The limiter of one bucket.
    pub(super) fn limiter(&self, name: &str, limit: &Limit) -> Arc<dyn Limiter> {
        self.named(&utf8_percent_encode(name, ODD).to_string(), limit)
    }

    /// The limiter of those for whom there is no room. It is one for all processes: several would
    /// let more pass than one site's rate, should they all have the same site in it.
    pub(super) fn overflow(&self, limit: &Limit) -> Arc<dyn Limiter> {
        // No name that is written out has a slash.
        self.named("overflow/", limit)
    }

    fn named(&self, name: &str, limit: &Limit) -> Arc<dyn Limiter> {
        let name = format!("{}{name}", self.prefix);
        let limiter = SharedLimiter::new(&self.limits, &name, &limit.pace, limit.common.epoch);
        Arc::new(limiter)
    }
}

/// All but what names of hosts, ports and patterns have: a key may hold anything.
const ODD: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'*')
    .remove(b':')
    .remove(b'[')
    .remove(b']');

impl SharedLimits {
    /// Budgets in the Redis of a store, under its namespace.
    pub fn new(connection: Handle) -> Self {
        let shared = Shared {
            handle: connection,
            outage: Outage::default(),
            counters: Counters::default(),
            errors: Family::new(&table::BUDGET_STORE_ERRORS, &[]),
            fallbacks: Counter::new(&table::BUDGET_FALLBACKS, &[]),
            news: News::default(),
            process: crate::random::number(),
            passages: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared), share: None }
    }

    /// Lets nothing pass while Redis does not answer. The default: a limit that nobody can count
    /// is not kept.
    #[must_use]
    pub fn refuse(mut self) -> Self {
        self.share = None;
        self
    }

    /// While Redis does not answer, each process goes on by itself at `share` of each rate and
    /// without a burst: one divided by the number of processes, say. More than 0, at most 1.
    ///
    /// It is told by one warning. Redis is asked again once a second, and when it answers, the
    /// budgets go on from an empty bucket. It is no fallback from what Redis refuses, such as a
    /// user who may not.
    #[must_use]
    pub fn fallback_local(mut self, share: f64) -> Self {
        self.share = Some(share);
        self
    }

    /// What was done so far in this process.
    pub fn counts(&self) -> SharedCounts {
        let Shared { counters, errors, fallbacks, .. } = &*self.shared;
        counters.snapshot(fallbacks.value(), errors.value())
    }

    /// Charges a slot and forgets it, for benchmarks.
    #[cfg(feature = "test-util")]
    #[doc(hidden)]
    pub async fn charge(
        &self,
        bucket: &str,
        interval: Duration,
        burst: u32,
        in_flight: Option<u32>,
    ) -> Result<(), Error> {
        let passage = Passage { process: 0, number: crate::random::number() };
        let hold = Duration::from_secs(1);
        let seat = in_flight.map(|most| Seat { passage, most, hold });
        let bucket = Bucket::new(self.clone(), bucket, interval, burst);
        bucket.reserve(hold, seat.as_ref()).await.map(drop)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        match self.share {
            Some(share) if !(share > 0.0 && share <= 1.0) => Err(Error::new(
                Kind::Config,
                "the share of a fallback is more than 0 and at most 1",
            )),
            _ => Ok(()),
        }
    }

    fn share(&self) -> Option<f64> {
        self.share
    }

    /// Between calls of a Redis that did not answer: those who wait must not all wait for it.
    fn ask_again(&self) -> Duration {
        match self.share {
            Some(_) => Duration::from_secs(1),
            None => Duration::from_millis(100),
        }
    }
}

impl fmt::Debug for SharedLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimits").field("share", &self.share).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
