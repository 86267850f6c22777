//! One bucket: its books, those who wait for it, and what it may grant now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::clock::At;
use super::limit::Limit;
use super::line::Line;
use super::local::{Limiter, Local, Slot};
use super::pause::{Pause, Probe};
use super::remote::Remote;
use super::schedule::{By, Schedule};
use super::stay::{Flights, Stay};
use super::turn::Cause;

/// One bucket and those who wait for it. Only the head of its line asks the limiter.
pub(super) struct Queue {
    pub(super) limit: Arc<Limit>,
    pub(super) limiter: Limits,
    /// Whether names without room for a bucket of their own share it.
    pub(super) is_overflow: bool,
    state: Mutex<State>,
}

/// Who decides on slots.
pub(super) enum Limits {
    /// Nobody: there is no rate.
    None,
    Local(Local),
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis is asked"))]
    Remote(Arc<dyn Limiter>),
}

pub(super) struct State {
    pub(super) schedule: Schedule,
    /// Those who have entered and not gone out yet.
    pub(super) waiting: u32,
    /// Those of them who wait for another bucket meanwhile, and for some time.
    pub(super) aside: u32,
    pub(super) flights: Flights,
    pub(super) line: Option<Box<Line>>,
    pub(super) pause: Option<Box<Pause>>,
    pub(super) remote: Option<Box<Remote>>,
}

/// What the head can do next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// A slot is due and kept for it.
    Go,
    /// A slot is kept for it, and due then.
    Sleep(At),
    /// Reserve the next slot from then on.
    Reserve(At),
    /// Nothing before the end of the pause that began then.
    Paused { began: Option<At>, until: At },
    /// Nothing before a signal, or before then.
    Look(Cause, Option<At>),
    /// The site went on refusing; it may be asked again then.
    Refuses(At),
}

impl Queue {
    /// The bucket of this name: no other rule's has it.
    pub(super) fn new(name: &str, limit: Arc<Limit>) -> Self {
        #[cfg(feature = "redis")]
        if let Some(sharing) = &limit.sharing {
            return Self::with(Limits::Remote(sharing.limiter(name, &limit)), limit);
        }
        let _ = name;
        let limiter = Local::new(&limit.pace).map_or(Limits::None, Limits::Local);
        Self::with(limiter, limit)
    }

    /// The bucket of those for whom there is no room.
    pub(super) fn overflow(limit: Arc<Limit>) -> Self {
        #[cfg(feature = "redis")]
        if let Some(sharing) = &limit.sharing {
            let limits = Limits::Remote(sharing.overflow(&limit));
            return Self { is_overflow: true, ..Self::with(limits, limit) };
        }
        Self { is_overflow: true, ..Self::new("", limit) }
    }

    pub(super) fn with(limiter: Limits, limit: Arc<Limit>) -> Self {
        let state = State {
            schedule: Schedule::new(&limit.pace),
            waiting: 0,
            aside: 0,
            flights: Flights::default(),
            line: None,
            pause: None,
            remote: None,
        };
        Self { limiter, limit, is_overflow: false, state: Mutex::new(state) }
    }

    /// Whether nobody is queued and a slot is due now.
    pub(super) fn would_pass(&self, state: &mut State, now: At) -> bool {
        state.queued() == 0
            && self.barred(state, now).is_none()
            && (state.schedule.kept().is_some() || !matches!(self.limiter, Limits::Remote(_)))
            && state.schedule.forecast(now, 0, 0) <= now
    }

    /// What one can do who becomes the head now, or was kept from going out: a slot may have
    /// become too old meanwhile.
    pub(super) fn look(&self, state: &mut State, joined: At, now: At) -> Step {
        self.lapse(state, now);
        self.step(state, joined, now)
    }

    /// Lets the kept slot go if it has become too old; whether it did.
    pub(super) fn lapse(&self, state: &mut State, now: At) -> bool {
        let lapses = self.lapses(state).is_some_and(|at| at <= now);
        let lapsed = if lapses { state.schedule.forget_kept() } else { None };
        lapsed.into_iter().for_each(|slot| self.lapsed(slot));
        lapsed.is_some()
    }

    /// When the kept slot becomes too old. While a pause's probe is kept here no other worker
    /// may find out whether the pause is over.
    pub(super) fn lapses(&self, state: &State) -> Option<At> {
        let remote = matches!(self.limiter, Limits::Remote(_));
        let probe = |pause: &Pause| pause.probe == Probe::Due;
        state.schedule.lapses(remote && state.pause.as_deref().is_some_and(probe))
    }

    /// What the head can do next; a slot that is due is kept for it.
    pub(super) fn step(&self, state: &mut State, joined: At, now: At) -> Step {
        if let Some(barred) = self.barred(state, now) {
            return barred;
        }
        let slot = match state.schedule.kept() {
            Some(kept) => kept,
            None => match self.slot_now(&mut state.schedule, joined, now) {
                Ok(slot) => slot,
                Err(from) => return Step::Reserve(from),
            },
        };
        if slot <= now { Step::Go } else { Step::Sleep(slot) }
    }

    /// A slot that is due already; else from when to reserve.
    fn slot_now(&self, schedule: &mut Schedule, joined: At, now: At) -> Result<At, At> {
        let from = schedule.from(joined, now);
        if from > now || !schedule.is_due(now) {
            return Err(from);
        }
        let at = match &self.limiter {
            Limits::None => from,
            Limits::Local(limiter) => limiter.try_reserve(from, now).ok_or(from)?,
            Limits::Remote(_) => return Err(from),
        };
        Ok(schedule.reserved(Slot { at, place: None }))
    }

    /// What keeps the head from a slot, apart from the rate.
    fn barred(&self, state: &mut State, now: At) -> Option<Step> {
        if state.pause.is_some()
            && let Some(paused) = self.paused(state, now)
        {
            return Some(paused);
        }
        if let Some(remote) = &mut state.remote
            && let Some(again) = remote.barred(now)
        {
            return Some(again);
        }
        let full = state.flights.count >= self.limit.pace.in_flight && self.counts_places();
        full.then_some(Step::Look(Cause::InFlight, None))
    }

    fn paused(&self, state: &mut State, now: At) -> Option<Step> {
        let pause = state.pause.as_deref()?;
        if pause.gives_up(now, self.limit.common.pauses.most) {
            return Some(Step::Refuses(pause.until));
        }
        if pause.is_on(now) {
            return Some(Step::Paused { began: pause.began, until: pause.until });
        }
        match pause.probe {
            Probe::Out => return Some(Step::Look(Cause::Pause, None)),
            Probe::Due => self.restart(&mut state.schedule, now),
            Probe::Answered if pause.is_forgotten(now) => state.pause = None,
            Probe::Answered => {}
        }
        None
    }

    /// Takes away what was stored up, if it is a slot or more.
    pub(super) fn restart(&self, schedule: &mut Schedule, now: At) {
        let pace = &self.limit.pace;
        if schedule.full_at().plus(pace.interval) <= now.plus(pace.tolerance()) {
            schedule.restart(now);
            if let Limits::Local(limiter) = &self.limiter {
                limiter.restart(now);
            }
        }
    }

    /// Makes a new bucket no fuller than one that stood in for it.
    pub(super) fn resume_from(&self, other: &Self, now: At) {
        let full_at = other.state().schedule.full_at();
        let pace = &self.limit.pace;
        if full_at > now {
            self.restart(&mut self.state().schedule, full_at.minus(pace.tolerance()));
        }
    }

    /// Uses the kept slot up, and tells what has to be given back when the exchange ends.
    pub(super) fn spend(self: &Arc<Self>, state: &mut State, now: At) -> Option<Stay> {
        let place = state.schedule.spend(now);
        let admission = match &self.limiter {
            Limits::Remote(limiter) => limiter.spent(),
            Limits::None | Limits::Local(_) => None,
        };
        let probe = match state.pause.as_deref_mut() {
            Some(pause) if pause.probe == Probe::Due => {
                pause.probe = Probe::Out;
                pause.began
            }
            _ => None,
        };
        let counted = self.limit.pace.in_flight != u32::MAX && self.counts_places();
        state.flights.count += u32::from(counted);
        let stays = counted || probe.is_some() || place.is_some() || admission.is_some();
        stays.then(|| Stay {
            queue: Arc::clone(self),
            since: now,
            counted,
            probe,
            place,
            admission,
        })
    }

    /// A server counts the places itself.
    fn counts_places(&self) -> bool {
        !matches!(self.limiter, Limits::Remote(_))
    }

    pub(super) fn lapsed(&self, slot: Slot) {
        if let Limits::Remote(limiter) = &self.limiter {
            limiter.lapsed(slot);
        }
    }

    /// When one who finds `ahead` others before it may go, as far as can be said, and why not
    /// sooner.
    pub(super) fn forecast(&self, state: &State, now: At, ahead: usize) -> (At, Cause) {
        let pace = &self.limit.pace;
        let pause = state.pause.as_deref();
        if let Some(pause) = pause.filter(|pause| pause.is_on(now)) {
            let after = pace.interval.saturating_mul(ahead as u64);
            return (pause.until.plus(after), Cause::Pause);
        }
        let at = state.schedule.forecast(now, ahead, pace.jitter / 2);
        if pause.is_some_and(|pause| pause.probe == Probe::Out) {
            return (at, Cause::Pause);
        }
        if let Some(cause) = state.remote.as_deref().and_then(|remote| remote.looks_for(now)) {
            return (at, cause);
        }
        let full =
            state.remote.is_none() && state.flights.count >= pace.in_flight && self.counts_places();
        (at, if full { Cause::InFlight } else { Cause::Rate })
    }

    /// When a place in flight comes free for one who finds `ahead` others before it, going by
    /// how long the last ones were taken.
    pub(super) fn guess(&self, state: &State, now: At, ahead: usize) -> At {
        let rounds = 1 + ahead as u64 / u64::from(self.limit.pace.in_flight);
        let each = u64::from(state.flights.mean_ms).saturating_mul(1_000_000);
        now.plus(each.saturating_mul(rounds))
    }

    pub(super) fn slow(&self, by: By, delay: Duration, how_long: Duration) {
        let now = self.now();
        let waker = {
            let mut state = self.state();
            state.schedule.slow(by, delay, now, now.after(how_long));
            state.line.as_deref_mut().and_then(Line::signal)
        };
        wake(waker);
    }

    /// Whether requests need not queue here at this moment.
    pub(super) fn is_open(&self, now: At) -> bool {
        if self.limit.budget.is_some() {
            return false;
        }
        let state = self.state();
        !state.schedule.is_slow(now)
            && state.pause.as_deref().is_none_or(|pause| !pause.is_on(now) && !pause.is_open())
    }

    pub(super) fn now(&self) -> At {
        self.limit.common.epoch.now()
    }

    /// Whether a new bucket would behave as this one does.
    pub(super) fn is_fresh(&self, now: At) -> bool {
        let state = self.state();
        state.waiting == 0
            && state.flights.count == 0
            && state.schedule.is_fresh(now)
            && state.pause.as_deref().is_none_or(|pause| pause.is_forgotten(now))
    }

    /// How many have entered, and whether nobody is in the line.
    #[cfg(test)]
    pub(super) fn idle(&self) -> (u32, bool) {
        let state = self.state();
        (state.waiting, state.line.as_deref().is_none_or(Line::is_empty))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many a newcomer finds before it.
    pub(super) fn queued(&self) -> u32 {
        self.waiting - self.aside
    }

    pub(super) fn line(&mut self) -> &mut Line {
        self.line.get_or_insert_default()
    }
}

pub(super) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
