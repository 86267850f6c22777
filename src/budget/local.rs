//! The limiter of one process: governor, asked for slots ahead of time.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::clock::{At, SetClock};
use crate::error::Error;

/// Hands out the slots of one site. Only the head of the site's queue calls it.
///
/// Reserving is async for limiters that ask a server; those never have a slot to try.
pub(super) trait Limiter: Send + Sync {
    /// Charges the earliest slot at or after `from`, and tells when it is.
    fn reserve(&self, from: At) -> impl Future<Output = Result<At, Error>> + Send;

    /// Charges the earliest slot at or after `from` only if it is due by `now`.
    fn try_reserve(&self, from: At, now: At) -> Option<At>;
}

/// A limiter over governor.
///
/// governor has no reservation, but its clock is a parameter: a refusal names the next slot,
/// and a second check at the time of that slot charges just that slot.
pub(super) struct Local {
    limiter: RateLimiter<NotKeyed, InMemoryState, SetClock, NoOpMiddleware<At>>,
    #[cfg(test)]
    pub(super) checks: std::sync::atomic::AtomicUsize,
}

impl Local {
    pub(super) fn new(interval: Duration, burst: NonZeroU32) -> Option<Self> {
        let quota = Quota::with_period(interval)?.allow_burst(burst);
        Some(Self {
            limiter: RateLimiter::direct_with_clock(quota, SetClock::default()),
            #[cfg(test)]
            checks: Default::default(),
        })
    }

    fn reserve_by(&self, from: At, latest: At) -> Option<At> {
        let Err(slot) = self.check(from) else { return Some(from) };
        if slot > latest {
            return None;
        }
        // The head is alone here, so the slot is still the next one and this check passes.
        let charged = self.check(slot);
        debug_assert!(charged.is_ok());
        Some(slot)
    }

    /// Charges a slot at `at`, or names the next one.
    fn check(&self, at: At) -> Result<(), At> {
        #[cfg(test)]
        self.checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.limiter.clock().set(at);
        self.limiter.check().map_err(|refused| refused.earliest_possible())
    }
}

impl Limiter for Local {
    async fn reserve(&self, from: At) -> Result<At, Error> {
        Ok(self.reserve_by(from, At::NEVER).unwrap_or(from))
    }

    fn try_reserve(&self, from: At, now: At) -> Option<At> {
        self.reserve_by(from, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_charged_ahead_of_their_time() {
        let second = Duration::from_secs(1);
        let local = Local::new(second, NonZeroU32::MIN).unwrap();
        let start = At::default().after(second);
        for nth in 0..5 {
            let slot = start.after(second * nth);
            assert_eq!(local.reserve_by(start, At::NEVER), Some(slot));
            assert_eq!(local.try_reserve(slot, slot), None);
        }
    }
}
