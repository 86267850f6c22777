//! The limiter of one process: governor, asked for slots ahead of time.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::clock::{At, SetClock};
use super::rate::Pace;
use crate::error::Error;

/// Decides on the slots of one bucket: by itself, or by asking a server.
///
/// Only the head of the bucket's queue reserves, once an admission; what it gets belongs to the
/// queue and not to the head. The queue keeps books of its own on rate, pause and places in
/// flight. A limiter that decides by itself leaves pauses and places to them; one that asks a
/// server decides on all three in the one call of [`reserve`](Self::reserve), and the queue's
/// books only follow.
pub(super) trait Limiter: Send + Sync {
    /// Charges the earliest slot at or after `from`. With `early` its place in flight is taken at
    /// once, for the slot may be used before it is due.
    fn reserve(&self, from: At, early: bool) -> Reservation;

    /// Charges the earliest slot at or after `from` only if it is due by `now`, without asking
    /// anybody; one that asks a server never has such a slot.
    fn try_reserve(&self, from: At, now: At) -> Option<At>;

    /// Takes away what was stored up by `at`, which is a slot or more: from then on slots are one
    /// interval apart.
    fn restart(&self, at: At);

    /// A slot was not used and lapses; its place in flight comes free. It may be undone if
    /// nothing was charged after it.
    fn lapsed(&self, _slot: Slot) {}

    /// Nobody is left for the slot that is asked for: it may be given back before it is due.
    fn unwanted(&self) {}

    /// The exchange that went out with this place in flight has ended.
    fn left(&self, _place: u64) {}

    /// The slot that the queue has is used by a request that goes out now; how a server admitted
    /// it, if one did.
    fn spent(&self) -> Option<Admission> {
        None
    }

    /// The site asked this process for a pause, `nth` without a success between; `said` tells
    /// whether it named the time itself. `admission` is that of the request that it refused.
    fn paused(&self, _until: At, _nth: u32, _said: bool, _admission: Option<Admission>) {}

    /// The site has answered the one request that finds out whether a pause is over.
    fn succeeded(&self, _probe: Admission) {}

    /// A user ends the site's pause; whether there was one.
    fn end_pause(&self) -> Pending<bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// That request ended without an answer of the site: another one may find out.
    fn unanswered(&self, _probe: Admission) {}
}

/// What a server is asked.
pub(super) type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// The answer to [`Limiter::reserve`].
pub(super) enum Reservation {
    /// Decided here.
    Now(Slot),
    /// Decided elsewhere. The queue runs it in a task of its own, so that a head which gives up
    /// meanwhile orphans nothing: the slot is booked for the queue when it comes back.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis is asked"))]
    Asked(Pending<Reply>),
}

/// What a server says.
#[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis is asked"))]
pub(super) enum Reply {
    /// A slot is charged, and a place in flight taken where the budget has such.
    Slot(Slot, Known),
    /// All places in flight are taken and nothing is charged: the head asks again at `again`, or
    /// when a place of this process comes free.
    Full { again: At },
    /// The site is paused and nothing is charged: the head asks again at `until`. `nth` as in
    /// [`Limiter::paused`].
    Paused { until: At, nth: u32 },
    /// Another process finds out whether a pause is over, and nothing is charged: the head asks
    /// again at `again`.
    Probing { again: At },
}

/// What a server that grants a slot knows of the site's pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis is asked"))]
pub(super) enum Known {
    /// It was not asked.
    Nothing,
    NoPause,
    /// The site was paused, the `nth` time without a success, and the slot is for the one request
    /// that finds out whether it answers again.
    Ended {
        nth: u32,
    },
}

/// How a server admitted a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    /// The number of the site's last pause then.
    pub(super) known: u64,
    /// It finds out whether that one is over.
    pub(super) probe: bool,
}

/// A slot that was charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) at: At,
    /// The server's name for the place in flight that is taken with it.
    pub(super) place: Option<u64>,
}

/// A limiter over governor.
///
/// governor has no reservation, but its clock is a parameter: a refusal names the next slot,
/// and a second check at the time of that slot charges just that slot.
pub(super) struct Local {
    limiter: RateLimiter<NotKeyed, InMemoryState, SetClock, NoOpMiddleware<At>>,
    interval: u64,
    tolerance: u64,
    #[cfg(test)]
    pub(super) checks: std::sync::atomic::AtomicUsize,
}

impl Local {
    /// `None` for a pace without a rate.
    pub(super) fn new(pace: &Pace) -> Option<Self> {
        let quota = Quota::with_period(Duration::from_nanos(pace.interval))?;
        let quota = quota.allow_burst(pace.burst);
        Some(Self {
            limiter: RateLimiter::direct_with_clock(quota, SetClock::default()),
            interval: pace.interval,
            tolerance: pace.tolerance(),
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
    fn reserve(&self, from: At, _early: bool) -> Reservation {
        let at = self.reserve_by(from, At::NEVER).unwrap_or(from);
        Reservation::Now(Slot { at, place: None })
    }

    fn try_reserve(&self, from: At, now: At) -> Option<At> {
        self.reserve_by(from, now)
    }

    /// A charge just before the moment at which a bucket that is emptied at `at` is full again
    /// leaves it full at that moment.
    fn restart(&self, at: At) {
        // Refused only if nothing is stored up, which is as good.
        let _ = self.check(at.plus(self.tolerance).minus(self.interval));
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate::Budget;
    use super::*;

    #[test]
    fn slots_are_charged_ahead_of_their_time() {
        let second = Duration::from_secs(1);
        let local = Local::new(&Budget::per_second(1).pace().unwrap()).unwrap();
        let start = At::default().after(second);
        for nth in 0..5 {
            let slot = start.after(second * nth);
            assert_eq!(local.reserve_by(start, At::NEVER), Some(slot));
            assert_eq!(local.try_reserve(slot, slot), None);
        }
    }

    #[test]
    fn after_a_restart_slots_are_an_interval_apart() {
        let second = Duration::from_secs(1);
        for used in 0..=4 {
            let local = Local::new(&Budget::per_second(1).burst(5).pace().unwrap()).unwrap();
            let start = At::default().after(second * 60);
            for _ in 0..used {
                local.reserve_by(start, At::NEVER);
            }
            local.restart(start);
            let slots = [0; 3].map(|_| local.reserve_by(start, At::NEVER).unwrap());
            assert_eq!(slots[0], start.after(second * u32::from(used == 4)), "{used}");
            assert!(slots.windows(2).all(|pair| pair[1].since(pair[0]) == second), "{slots:?}");
        }
    }
}
