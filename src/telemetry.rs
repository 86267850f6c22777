//! Counts that tell what clean-up did, since clean-up never hides the first error.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Live counts of one pool in this process.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        /// Counts of one pool in this process since it was built.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> Counts {
                Counts { $($name: self.$name.value(),)+ }
            }
        }
    };
}

counters! {
    /// Leases granted.
    grants,
    /// Leases given back and accepted; also those of which only a repeated release was answered.
    releases,
    /// Releases that were sent again because the store had not answered.
    releases_repeated,
    /// Releases of leases that were no longer held.
    not_owner,
    /// Releases that failed until the lease's deadline or the pool's end, or found the queue full;
    /// the deadline ends the lease.
    releases_failed,
    /// Hints from elsewhere that had those who wait asked for.
    hints,
    /// Acquires given up with an unknown result, and cancelled in the store.
    cancels,
    /// Cancels that failed; the lease's deadline ends it.
    cancels_failed,
    /// Leases that ran out in the middle of an exchange.
    expirations,
    /// Renewals that failed for good.
    renewals_failed,
    /// Grants of endpoints that the inventory here does not have, given back unused.
    unknown_endpoints,
}

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
