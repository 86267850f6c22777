//! What is told of a pool's work: counts for programs, and counts and times for the `metrics`
//! facade, both from one place.
//!
//! | file | what |
//! |---|---|
//! | `table` | every metric's name, kind, unit, labels and help, declared once |
//! | `meter` | what counts and measures |
//! | `keys` | metrics with their labels, for the facade (feature `metrics`) |

#[cfg(feature = "metrics")]
mod keys;
mod meter;
pub(crate) mod table;

pub(crate) use meter::{Counter, Family, Stopwatch, Timing, Timings};
#[cfg(feature = "metrics")]
pub(crate) use meter::{Flag, gauge};
#[cfg(feature = "metrics")]
pub use table::{Metric, MetricKind};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $type:ident of $metric:ident),+ $(,)?) => {
        /// Live counts of one pool in this process.
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: $type,)+
        }

        /// Counts of one pool in this process since it was built.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counters {
            pub(crate) fn of(pool: &str) -> Self {
                Self { $($name: $type::new(&table::$metric, &[("pool", pool)]),)+ }
            }

            /// Tells a recorder that may have come meanwhile of those that are still zero.
            #[cfg(feature = "metrics")]
            pub(crate) fn tell(&self) {
                $(self.$name.tell();)+
            }

            pub(crate) fn snapshot(&self) -> Counts {
                Counts { $($name: self.$name.value(),)+ }
            }
        }
    };
}

counters! {
    /// Leases granted.
    grants: Counter of GRANTS,
    /// Leases given back and accepted; also those of which only a repeated release was answered.
    releases: Family of RELEASES,
    /// Releases that were sent again because the store had not answered.
    releases_repeated: Counter of RELEASES_REPEATED,
    /// Releases of leases that were no longer held.
    not_owner: Counter of RELEASES_NOT_OWNER,
    /// Releases that failed until the lease's deadline or the pool's end, or found the queue full;
    /// the deadline ends the lease.
    releases_failed: Counter of RELEASES_FAILED,
    /// Hints from elsewhere that had those who wait asked for.
    hints: Counter of HINTS,
    /// Acquires given up with an unknown result, and cancelled in the store.
    cancels: Counter of CANCELS,
    /// Cancels that failed; the lease's deadline ends it.
    cancels_failed: Counter of CANCELS_FAILED,
    /// Leases that ran out in the middle of an exchange.
    expirations: Counter of EXPIRATIONS,
    /// Renewals that failed for good.
    renewals_failed: Counter of RENEWALS_FAILED,
    /// Grants of endpoints that the inventory here does not have, given back unused.
    unknown_endpoints: Counter of UNKNOWN_ENDPOINTS,
    /// Panics of the judge, the classifier, the store or a response's body that were caught where
    /// others would have suffered.
    panics: Counter of PANICS,
    /// Times that so many endpoints failed that verdicts were braked.
    brakes: Counter of BRAKES,
    /// Requests that were tried again on another endpoint, each time counted.
    retries: Family of RETRIES,
    /// Requests that ended with an error of this crate instead of a response.
    requests_failed: Family of REQUESTS_FAILED,
    /// Calls to the store that failed, those included that were not answered in time.
    store_errors: Family of STORE_ERRORS,
    /// Reloads of the inventory, whether they changed anything or not.
    reloads: Counter of RELOADS,
    /// Reloads that failed and left the inventory as it was.
    reloads_failed: Counter of RELOADS_FAILED,
}

/// Times of one pool in this process.
pub(crate) struct Times {
    pub(crate) lease_wait: Timing,
    pub(crate) budget_wait: Timing,
    pub(crate) hold: Timings,
    pub(crate) request: Timings,
}

impl Times {
    pub(crate) fn of(pool: &str) -> Self {
        let labels = &[("pool", pool)];
        Self {
            lease_wait: Timing::new(&table::LEASE_WAIT, labels),
            budget_wait: Timing::new(&table::BUDGET_WAIT, labels),
            hold: Timings::new(&table::HOLD, labels),
            request: Timings::new(&table::REQUEST, labels),
        }
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests;
