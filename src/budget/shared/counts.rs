//! What was done, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        #[derive(Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)+
        }

        /// Counts of shared budgets in this process since they were made.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct SharedCounts {
            $($(#[$doc])* pub $name: u64,)+
            /// Slots that were allowed without Redis.
            pub fallbacks: u64,
            /// Calls that failed, or were not made while Redis did not answer.
            pub failures: u64,
        }

        impl Counters {
            pub(super) fn snapshot(&self, fallbacks: u64, failures: u64) -> SharedCounts {
                SharedCounts { $($name: self.$name.0.load(Ordering::Relaxed),)+ fallbacks, failures }
            }
        }
    };
}

counters! {
    /// Calls of Redis that reserve a slot, answered or not.
    reservations,
    /// Slots given back unused.
    undone,
    /// Slots that were not used and could not be given back.
    lapsed,
    /// Times that the server's clock was found set back.
    clock_steps,
}

#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
