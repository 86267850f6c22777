//! What the buckets of one rule, and all buckets of one process, have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::clock::Epoch;
use super::pause::Pauses;
use super::rate::{Budget, Pace};
#[cfg(feature = "redis")]
use super::shared::{SharedLimits, Sharing};
#[cfg(feature = "redis")]
use crate::error::Error;
use crate::telemetry::{Counter, table};

/// A checked rule; buckets point at it.
pub(super) struct Limit {
    /// `None` where there is no limit; such a bucket is there for pauses and slowing.
    pub(super) budget: Option<Budget>,
    pub(super) pace: Pace,
    pub(super) common: Arc<Common>,
    /// `None` for buckets of this process.
    #[cfg(feature = "redis")]
    pub(super) sharing: Option<Sharing>,
}

impl Limit {
    pub(super) fn unlimited(common: &Arc<Common>) -> Arc<Self> {
        let common = Arc::clone(common);
        Arc::new(Self {
            budget: None,
            pace: Pace::default(),
            common,
            #[cfg(feature = "redis")]
            sharing: None,
        })
    }
}

/// What all buckets share.
pub(super) struct Common {
    pub(super) epoch: Epoch,
    pub(super) pauses: Pauses,
    pub(super) most_waiting: usize,
    /// Whether any site was ever slowed or paused.
    watched: AtomicBool,
    tickets: AtomicU64,
    pub(super) counters: Counters,
    /// Of budgets that are not this process's own.
    #[cfg(feature = "redis")]
    pub(super) shared: Option<SharedLimits>,
}

impl Common {
    pub(super) fn new(pauses: Pauses, most_waiting: usize) -> Self {
        Self {
            epoch: Epoch::start(),
            pauses,
            most_waiting,
            watched: AtomicBool::new(false),
            tickets: AtomicU64::new(0),
            counters: Counters::default(),
            #[cfg(feature = "redis")]
            shared: None,
        }
    }

    #[cfg(feature = "redis")]
    pub(super) fn shared(mut self, limits: Option<SharedLimits>) -> Result<Self, Error> {
        limits.as_ref().map(SharedLimits::check).transpose()?;
        self.shared = limits;
        Ok(self)
    }

    /// A number that is greater than all before.
    pub(super) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    pub(super) fn watch(&self) {
        self.watched.store(true, Ordering::Release);
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident = $counter:expr),+ $(,)?) => {
        /// Live counts of all buckets.
        #[derive(Debug)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)+
        }

        /// What the budgets of this process did since they were built.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct BudgetCounts {
            /// Sites and keys without a rule of their own that are remembered now.
            pub remembered: usize,
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Default for Counters {
            fn default() -> Self {
                Self { $($name: $counter,)+ }
            }
        }

        impl Counters {
            pub(super) fn snapshot(&self, remembered: usize) -> BudgetCounts {
                BudgetCounts { remembered, $($name: self.$name.value(),)+ }
            }
        }
    };
}

counts! {
    /// Sites and keys that were forgotten when they had rested.
    evicted = Counter::default(),
    /// Requests that shared the overflow bucket, for want of room for their site or key.
    overflowed = Counter::default(),
    /// Requests refused because their wait would have been too long.
    too_long = refused("too_long"),
    /// Requests refused because too many waited already.
    crowded_out = refused("crowded_out"),
    /// Requests refused because their site went on refusing.
    refused_by_site = refused("refused_by_site"),
    /// Pauses that sites asked for.
    pauses = Counter::new(&table::BUDGET_PAUSES, &[]),
    /// Pauses that were cut to the longest.
    pauses_cut = Counter::default(),
}

fn refused(reason: &'static str) -> Counter {
    Counter::new(&table::BUDGET_REFUSALS, &[("reason", reason)])
}
