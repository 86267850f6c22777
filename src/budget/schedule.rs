//! The books of one site: which slot is kept, what is charged, and how long a newcomer waits.

use std::time::Duration;

use super::clock::At;
use super::rate::Pace;

/// A wake-up this late counts as on time: the next slot is reckoned from the last one and not
/// from now, or timers (1 ms in tokio) would eat the rate of fast sites.
const SLACK: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(super) struct Schedule {
    pace: Pace,
    /// When the bucket is full again: nothing that was charged counts any more.
    full_at: At,
    /// The last slot that was charged.
    last: At,
    /// The reserved slot that nobody has used yet. It belongs to the queue.
    kept: Option<At>,
    /// When the last request started, at the latest.
    started: Option<At>,
    slow: Option<Slow>,
}

/// At least `delay` between starts, until it ends.
#[derive(Clone, Copy)]
struct Slow {
    delay: Duration,
    until: At,
}

impl Schedule {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// Lowers the rate until `until`, from the last start on.
    pub(super) fn slow(&mut self, delay: Duration, now: At, until: At) {
        if !self.is_slow(now) {
            // The start is at most the grace later than its slot.
            self.started = self.started.map(|slot| slot.after(self.grace()).min(now));
        }
        self.slow = Some(Slow { delay, until });
    }

    /// A slot lapses after the grace, but never before another one is due: what it was charged
    /// for would be lost, and a slow site starved by a busy pool.
    fn has_lapsed(&self, kept: At, now: At) -> bool {
        now.since(kept) > self.grace() && self.is_due(now)
    }

    /// The slot that is kept for the head; one older than the grace lapses.
    pub(super) fn kept(&mut self, now: At) -> Option<At> {
        let kept = self.kept.take()?;
        if self.has_lapsed(kept, now) {
            return None;
        }
        Some(self.keep(kept))
    }

    /// Books a slot that the limiter charged, and tells when it may be used.
    pub(super) fn reserved(&mut self, slot: At) -> At {
        self.full_at = self.full_at.max(slot).after(self.pace.interval);
        self.keep(slot)
    }

    /// Keeps a slot for the queue; tells when it may be used, which is later on a slowed site.
    pub(super) fn keep(&mut self, slot: At) -> At {
        let slot = self.not_before(slot);
        self.last = slot;
        self.kept = Some(slot);
        slot
    }

    #[cfg(test)]
    pub(super) fn forget_kept(&mut self) {
        self.kept = None;
    }

    /// Uses the kept slot up; `now` is asked only where the very moment matters.
    pub(super) fn spend(&mut self, now: impl FnOnce() -> At) {
        let slot = self.kept.take();
        self.started = Some(if self.slow.is_some() { now() } else { slot.unwrap_or(self.last) });
    }

    /// Until when the kept slot is good for the site that has not seen what used it.
    pub(super) fn good_until(&self) -> At {
        self.kept.unwrap_or(self.last).after(self.grace())
    }

    /// The moment to ask the limiter about, for a request that has been waiting since `joined`.
    pub(super) fn from(&self, joined: At, now: At) -> At {
        let late = now.since(self.last) <= SLACK;
        self.not_before(if late { joined.max(self.last).min(now) } else { now })
    }

    /// Whether a slot is due by `now`, as far as this process knows.
    pub(super) fn is_due(&self, now: At) -> bool {
        self.full_at.before(self.pace.tolerance()) <= now
    }

    /// How long a slot may be kept for a lease: one interval, at most a second.
    pub(super) fn grace(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(1);
        if self.pace.interval.is_zero() { LONGEST } else { self.pace.interval.min(LONGEST) }
    }

    /// The slot that a request gets which finds `ahead` others before it.
    pub(super) fn forecast(&self, now: At, ahead: usize) -> At {
        let kept = self.kept.filter(|kept| !self.has_lapsed(*kept, now));
        let charges = match (kept, ahead) {
            (Some(kept), 0) => return self.not_before(kept).max(now),
            (Some(_), _) => ahead - 1,
            (None, _) => ahead,
        };
        let charges = u32::try_from(charges).unwrap_or(u32::MAX);
        let slot = self.full_at.max(now).after(self.pace.interval.saturating_mul(charges));
        let slot = slot.before(self.pace.tolerance()).max(now);
        self.forecast_slow(slot, kept.or(self.started), charges, now)
    }

    /// `slot`, or as much later as `charges` requests since the last start were slowed.
    fn forecast_slow(&self, slot: At, last: Option<At>, charges: u32, now: At) -> At {
        let Some(Slow { delay, until }) = self.slow.filter(|slow| slot < slow.until) else {
            return slot;
        };
        let slowed = match last {
            Some(last) => last.after(delay).max(now),
            None => now,
        };
        slowed.after(delay.saturating_mul(charges)).min(until).max(slot)
    }

    pub(super) fn is_slow(&self, now: At) -> bool {
        self.slow.is_some_and(|slow| now < slow.until)
    }

    /// Whether a new schedule would behave as this one does.
    pub(super) fn is_fresh(&self, now: At) -> bool {
        self.full_at <= now && !self.is_slow(now)
    }

    /// `slot`, or as much later as the site was slowed.
    fn not_before(&self, slot: At) -> At {
        match (self.slow, self.started) {
            (Some(Slow { delay, until }), Some(started)) if slot < until => {
                started.after(delay).min(until).max(slot)
            }
            _ => slot,
        }
    }
}
