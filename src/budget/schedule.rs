//! The books of one bucket: which slot is kept, what is charged, and how long a newcomer waits.

use std::time::Duration;

use super::clock::{At, nanos};
use super::local::Slot;
use super::rate::Pace;

/// A wake-up this late counts as on time: the next slot is reckoned from the last one and not
/// from now, or timers (1 ms in tokio) would eat the rate of fast sites.
const SLACK: u64 = 2_000_000;

#[derive(Default)]
pub(super) struct Schedule {
    interval: u64,
    tolerance: u64,
    /// When the bucket is full again: nothing that was charged counts any more.
    full_at: At,
    /// The last slot that was charged.
    last: At,
    /// The reserved slot that nobody has used yet. It belongs to the queue.
    kept: Option<Slot>,
    /// When the last request started, at the latest.
    started: Option<At>,
    slows: Option<Box<Slows>>,
}

/// What lowers the rate for a while.
#[derive(Default)]
struct Slows {
    /// By the user.
    asked: Option<Slow>,
    /// By the site's own hints.
    hinted: Option<Slow>,
}

/// At least `delay` between starts, until it ends.
#[derive(Clone, Copy)]
struct Slow {
    delay: u64,
    until: At,
}

/// Who slows a site.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum By {
    User,
    Hint,
}

impl Schedule {
    pub(super) fn new(pace: &Pace) -> Self {
        let (interval, tolerance) = (pace.interval, pace.tolerance());
        Self { interval, tolerance, ..Self::default() }
    }

    /// Lowers the rate until `until`, from the last start on.
    pub(super) fn slow(&mut self, by: By, delay: Duration, now: At, until: At) {
        if !self.is_slow(now) {
            // The start is at most the grace later than its slot.
            self.started = self.started.map(|slot| slot.plus(self.grace()).min(now));
        }
        let slow = Some(Slow { delay: nanos(delay), until });
        let slows = self.slows.get_or_insert_default();
        match by {
            By::User => slows.asked = slow,
            By::Hint => slows.hinted = slow,
        }
    }

    /// A slot lapses after the grace, but never before another one is due: what it was charged
    /// for would be lost, and a slow site starved by a busy pool. One with a place in flight does
    /// all the same, for others wait for its place.
    fn has_lapsed(&self, kept: Slot, now: At) -> bool {
        now >= self.lapses_at(kept, kept.place.is_some())
    }

    fn lapses_at(&self, kept: Slot, is_wanted: bool) -> At {
        let late = kept.at.plus(self.grace()).plus(1);
        if is_wanted { late } else { late.max(self.next()) }
    }

    /// When the kept slot lapses; `is_wanted` if others wait for what comes with it.
    pub(super) fn lapses(&self, is_wanted: bool) -> Option<At> {
        self.kept.map(|kept| self.lapses_at(kept, is_wanted || kept.place.is_some()))
    }

    /// When the slot that is kept for the head may be used.
    pub(super) fn kept(&mut self) -> Option<At> {
        let at = self.kept?.at;
        if self.slows.is_none() { Some(at) } else { Some(self.keep_at(at)) }
    }

    /// Books a slot that the limiter charged, and tells when it may be used.
    pub(super) fn reserved(&mut self, slot: Slot) -> At {
        self.full_at = self.full_at.max(slot.at).plus(self.interval);
        self.kept = Some(slot);
        self.keep_at(slot.at)
    }

    /// Moves the kept slot to when it may be used, which is later on a slowed site.
    fn keep_at(&mut self, at: At) -> At {
        let at = self.not_before(at);
        self.last = at;
        if let Some(kept) = &mut self.kept {
            kept.at = at;
        }
        at
    }

    /// Makes the kept slot one that is due, or as near to it as a slowed site allows.
    pub(super) fn hasten(&mut self, now: At) {
        if let Some(kept) = self.kept.filter(|kept| kept.at > now) {
            self.keep_at(now.min(kept.at));
        }
    }

    pub(super) fn forget_kept(&mut self) -> Option<Slot> {
        self.kept.take()
    }

    /// Nothing is stored up at `now` any more; see [`Limiter::restart`](super::local::Limiter).
    pub(super) fn restart(&mut self, now: At) {
        self.full_at = self.full_at.max(now.plus(self.tolerance));
    }

    /// Uses the kept slot up; `now` is when the request starts.
    pub(super) fn spend(&mut self, now: At) -> Option<u64> {
        let slot = self.kept.take();
        let at = slot.map_or(self.last, |slot| slot.at);
        self.started = Some(if self.slows.is_some() { now } else { at });
        slot.and_then(|slot| slot.place)
    }

    /// Until when the kept slot is good for the site that has not seen what used it.
    pub(super) fn good_until(&self) -> At {
        self.kept.map_or(self.last, |slot| slot.at).plus(self.grace())
    }

    /// The moment to ask the limiter about, for a request that has been waiting since `joined`.
    pub(super) fn from(&self, joined: At, now: At) -> At {
        let late = now.nanos_since(self.last) <= SLACK;
        self.not_before(if late { joined.max(self.last).min(now) } else { now })
    }

    /// Whether a slot is due by `now`, as far as this process knows.
    pub(super) fn is_due(&self, now: At) -> bool {
        self.next() <= now
    }

    /// When the next slot is due, as far as this process knows.
    pub(super) fn next(&self) -> At {
        self.full_at.minus(self.tolerance)
    }

    /// How long a slot may be kept for a lease: one interval, at most a second.
    pub(super) fn grace(&self) -> u64 {
        const LONGEST: u64 = 1_000_000_000;
        if self.interval == 0 { LONGEST } else { self.interval.min(LONGEST) }
    }

    /// The slot that a request gets which finds `ahead` others before it, each of them `extra`
    /// later than its slot.
    pub(super) fn forecast(&self, now: At, ahead: usize, extra: u64) -> At {
        let kept = self.kept.filter(|kept| !self.has_lapsed(*kept, now)).map(|kept| kept.at);
        let charges = match (kept, ahead) {
            (Some(kept), 0) => return self.not_before(kept).max(now),
            (Some(_), _) => ahead - 1,
            (None, _) => ahead,
        } as u64;
        let each = self.interval.saturating_add(extra);
        let slot = self.full_at.max(now).plus(each.saturating_mul(charges));
        let slot = slot.minus(self.tolerance).max(now);
        if self.slows.is_none() {
            return slot;
        }
        self.forecast_slow(slot, kept.or(self.started), charges, now)
    }

    /// `slot`, or as much later as `charges` requests since the last start were slowed.
    fn forecast_slow(&self, slot: At, last: Option<At>, charges: u64, now: At) -> At {
        let slowed = |Slow { delay, until }: Slow| {
            let first = last.map_or(now, |last| last.plus(delay).max(now));
            first.plus(delay.saturating_mul(charges)).min(until)
        };
        self.slows(slot).map(slowed).fold(slot, At::max)
    }

    /// What slows a request that may otherwise go at `slot`.
    fn slows(&self, slot: At) -> impl Iterator<Item = Slow> {
        let each = |slows: &Slows| [slows.asked, slows.hinted];
        let all = self.slows.as_deref().map_or([None; 2], each);
        all.into_iter().flatten().filter(move |slow| slot < slow.until)
    }

    pub(super) fn is_slow(&self, now: At) -> bool {
        self.slows(now).next().is_some()
    }

    /// Whether a new schedule would behave as this one does.
    pub(super) fn is_fresh(&self, now: At) -> bool {
        self.full_at <= now && !self.is_slow(now)
    }

    /// When nothing that was charged counts any more.
    pub(super) fn full_at(&self) -> At {
        self.full_at
    }

    /// `slot`, or as much later as the site was slowed.
    fn not_before(&self, slot: At) -> At {
        let Some(started) = self.started.filter(|_| self.slows.is_some()) else { return slot };
        self.slows(slot).map(|slow| started.plus(slow.delay).min(slow.until)).fold(slot, At::max)
    }
}
