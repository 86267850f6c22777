//! A request's place before one bucket, from entering to going out.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use compact_str::CompactString;
use tokio::time::{Instant, sleep_until};

use super::clock::At;
use super::entry::Refusal;
use super::line::Line;
use super::local::Slot;
use super::queue::{Limits, Queue, State, Step, wake};
use super::stay::Stay;
use super::turn::Cause;
use crate::error::Error;
use crate::random;

/// A place in a queue; dropping it leaves the queue and makes the next one the head.
pub(super) struct Place {
    queue: Arc<Queue>,
    name: CompactString,
    ticket: u64,
    joined: At,
    leads: bool,
    /// It waits for another bucket, and does not count here meanwhile.
    aside: bool,
    /// A slot that it had waited for lapsed while it waited for a lease.
    owed: bool,
    /// When the last pause that it met began.
    paused: Option<At>,
    pub(super) pauses: usize,
}

/// What a request holds while it waits for a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Holding {
    Nothing,
    /// Earlier buckets.
    Buckets,
    /// The slot of a later one, that had been far.
    FarSlot,
    Lease,
}

impl Holding {
    /// For how long it may hold up those who want the same.
    fn patience(self) -> u64 {
        match self {
            Self::Nothing => u64::MAX,
            Self::Buckets => NEAR,
            // Shorter, so that of two that wait for each other only one gives way.
            Self::FarSlot => NEAR / 10,
            Self::Lease => AT_ONCE,
        }
    }
}

/// What waiting for a slot came to.
#[derive(Debug, PartialEq)]
pub(super) enum Readiness {
    /// It is the head, and a slot is due and kept for it.
    Ready,
    /// It would take so long that nothing else should be held meanwhile.
    Far,
}

impl Place {
    /// Enters, unless the wait would be too long or too many wait already; also when it may go on
    /// from here. `comes` is when the buckets before this one let it come.
    pub(super) fn enter(
        queue: &Arc<Queue>,
        name: &str,
        ticket: u64,
        now: At,
        (comes, max_wait): (At, Duration),
    ) -> Result<(Self, At), Error> {
        let entered = queue.enter(now, max_wait, comes);
        let (goes, aside) = entered.map_err(|refused| refused.of(name))?;
        let (queue, name) = (Arc::clone(queue), name.into());
        let place = Self {
            queue,
            name,
            ticket,
            joined: now,
            leads: false,
            aside,
            owed: false,
            paused: None,
            pauses: 0,
        };
        Ok((place, goes))
    }

    /// Counts here again: it waits for this bucket now.
    fn come_back(&mut self) {
        self.queue.state().aside -= u32::from(std::mem::take(&mut self.aside));
    }

    /// Becomes the head if nobody is before it.
    pub(super) fn take_up(&mut self) {
        self.leads = self.queue.state().line().try_lead(self.ticket);
    }

    pub(super) fn now(&self) -> At {
        self.queue.now()
    }

    pub(super) fn ticket(&self) -> u64 {
        self.ticket
    }

    pub(super) fn is_before(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    /// When it may go, as far as can be said.
    pub(super) fn forecast(&self) -> At {
        let mut state = self.queue.state();
        let ahead = state.line().ahead_of(self.ticket);
        self.queue.forecast(&state, self.queue.now(), ahead).0
    }

    /// Becomes the head and sleeps to the slot that is kept or reserved for it.
    ///
    /// With a lease in hand it sleeps to none. A slot that is later is used at once if one lapsed
    /// for want of a lease: else a busy pool would starve a site whose other slots all workers
    /// reserve ahead.
    pub(super) async fn ready(&mut self, holding: Holding) -> Result<Readiness, Error> {
        let mut anew = true;
        let hastens = holding == Holding::Lease;
        self.come_back();
        let end = self.queue.now().plus(holding.patience());
        loop {
            let now = self.queue.now();
            if !self.leads {
                if hastens || self.is_far(end, now) {
                    return Ok(Readiness::Far);
                }
                self.refused(now)?;
                match self.lead(end).await {
                    Some(leads) => self.leads = leads,
                    None => return Ok(Readiness::Far),
                }
                continue;
            }
            let step = {
                let mut state = self.queue.state();
                if let Some(fault) = state.take_fault(self.joined) {
                    return Err(fault);
                }
                if std::mem::take(&mut anew) && self.queue.lapse(&mut state, now) {
                    self.owed = true;
                }
                if hastens && self.owed {
                    state.schedule.hasten(now);
                }
                self.queue.step(&mut state, self.joined, now)
            };
            let near = match step {
                Step::Go => return Ok(Readiness::Ready),
                Step::Refuses(until) => {
                    return Err(self.queue.refuses(until.since(now)).of(&self.name));
                }
                Step::Reserve(from) => {
                    let from = if hastens { from } else { self.queue.jittered(from, now) };
                    self.queue.reserve(from, hastens && self.owed);
                    true
                }
                Step::Paused { began, until } => {
                    if std::mem::replace(&mut self.paused, began) != began {
                        self.pauses += 1;
                    }
                    self.wait(Some(until), end).await
                }
                Step::Sleep(at) => self.wait(Some(at), end).await,
                // A server's answer is on its way.
                Step::Look(Cause::Rate, until) => self.wait(until, end.max(now.plus(NEAR))).await,
                Step::Look(_, until) => self.wait(until, end).await,
            };
            if !near {
                return Ok(Readiness::Far);
            }
        }
    }

    /// Whether it is the head, or becomes it now, and a slot is due.
    pub(super) fn try_ready(&mut self, now: At) -> bool {
        let mut state = self.queue.state();
        self.leads = self.leads || state.line().try_lead(self.ticket);
        if !self.leads {
            return false;
        }
        state.aside -= u32::from(std::mem::take(&mut self.aside));
        self.owed |= self.queue.lapse(&mut state, now);
        self.queue.step(&mut state, self.joined, now) == Step::Go
    }

    /// When a slot that a server keeps for it lapses.
    pub(super) fn lapses(&self) -> Option<Instant> {
        let at = self.is_remote().then(|| self.queue.lapses(&self.queue.state()))??;
        Some(self.queue.limit.common.epoch.instant(at))
    }

    /// Gives a slot back that has lapsed.
    pub(super) fn lapse(&mut self) {
        let now = self.queue.now();
        self.owed |= self.leads && self.queue.lapse(&mut self.queue.state(), now);
    }

    /// Whether a server is asked for slots.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self.queue.limiter, Limits::Remote(_))
    }

    /// Lets those behind pass, and keeps its place among them. A server's slot that nobody is
    /// there for goes back.
    pub(super) fn step_aside(&mut self) {
        let (lapsed, waker) = {
            let mut state = self.queue.state();
            let led = std::mem::take(&mut self.leads);
            let waker = state.line().leave(self.ticket);
            state.aside += u32::from(!std::mem::replace(&mut self.aside, true));
            let empty = led && state.line().is_empty();
            (if empty { self.queue.unwanted(&mut state) } else { None }, waker)
        };
        if let Some(slot) = lapsed {
            self.queue.lapsed(slot);
        }
        wake(waker);
    }

    /// Whether its turn comes later than that, or waits behind another's for what has no end
    /// that can be told.
    fn is_far(&self, end: At, now: At) -> bool {
        if end == At::NEVER {
            return false;
        }
        let mut state = self.queue.state();
        let ahead = state.line().ahead_of(self.ticket);
        let (at, cause) = self.queue.forecast(&state, now, ahead);
        at > end || ahead > 0 && cause != Cause::Rate
    }

    fn refused(&self, now: At) -> Result<(), Error> {
        let most = self.queue.limit.common.pauses.most;
        let state = self.queue.state();
        match state.pause.as_deref() {
            Some(pause) if pause.gives_up(now, most) => {
                Err(self.queue.refuses(pause.until.since(now)).of(&self.name))
            }
            _ => Ok(()),
        }
    }

    /// Waits to be the head; `false` when there is something to look at first, and nothing if
    /// neither comes before `end`.
    async fn lead(&self, end: At) -> Option<bool> {
        self.until(end, |line, cx| line.poll_lead(self.ticket, cx)).await
    }

    /// Waits for a signal, at the longest until then; `false` if `end` comes first.
    async fn wait(&self, until: Option<At>, end: At) -> bool {
        if until.is_some_and(|until| until > end) {
            return false;
        }
        let signal = self.until(until.unwrap_or(end), |line, cx| line.poll_signal(self.ticket, cx));
        signal.await.is_some() || until.is_some()
    }

    /// Polls the line, at the longest until then.
    async fn until<T>(
        &self,
        end: At,
        mut poll: impl FnMut(&mut Line, &mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        let mut poll = |cx: &mut Context<'_>| poll(self.queue.state().line(), cx).map(Some);
        if end == At::NEVER {
            return poll_fn(poll).await;
        }
        let mut sleep = pin!(sleep_until(self.queue.limit.common.epoch.instant(end)));
        poll_fn(|cx| match poll(cx) {
            Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
            ready => ready,
        })
        .await
    }

    /// What a wait that has lasted too long was for, and how long it would still take.
    pub(super) fn overdue(&self) -> Error {
        let now = self.queue.now();
        let (wait, cause) = {
            let mut state = self.queue.state();
            let ahead = state.line().ahead_of(self.ticket);
            self.queue.wait(&state, now, ahead)
        };
        self.queue.limit.common.counters.too_long.add_one();
        Refusal::TooLong { wait, max_wait: None, cause }.of(&self.name)
    }

    /// Until when the slot is good for the site that has not seen what used it.
    pub(super) fn good_until(&self) -> At {
        self.queue.state().schedule.good_until()
    }

    #[cfg(test)]
    pub(super) fn grace(&self) -> Duration {
        Duration::from_nanos(self.queue.state().schedule.grace())
    }

    /// Uses the slot up; the next one becomes the head.
    pub(super) fn spend(self, now: At) -> Option<Stay> {
        let queue = &self.queue;
        queue.spend(&mut queue.state(), now)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (lapsed, waker) = {
            let mut state = self.queue.state();
            state.waiting -= 1;
            state.aside -= u32::from(self.aside);
            let waker = state.line().leave(self.ticket);
            let empty = state.waiting == 0;
            if empty {
                state.line = None;
            }
            (if empty { self.queue.unwanted(&mut state) } else { None }, waker)
        };
        if let Some(slot) = lapsed {
            self.queue.lapsed(slot);
        }
        wake(waker);
    }
}

impl Queue {
    /// The moment to reserve from: later than the next slot by the budget's jitter.
    fn jittered(&self, from: At, now: At) -> At {
        let jitter = self.limit.pace.jitter;
        if jitter == 0 {
            return from;
        }
        let next = self.state().schedule.next();
        if next <= now { from } else { from.max(next.plus(random::number() % (jitter + 1))) }
    }

    /// The kept slot, if nobody is left for whom a server should keep it.
    fn unwanted(&self, state: &mut State) -> Option<Slot> {
        match self.limiter {
            Limits::Remote(ref limiter) => {
                limiter.unwanted();
                state.schedule.forget_kept()
            }
            _ => None,
        }
    }
}

/// How long a request holds up one bucket while it waits for another.
pub(super) const NEAR: u64 = 1_000_000_000;

/// How long a request keeps an endpoint from others for a slot that is almost due.
const AT_ONCE: u64 = 5_000_000;
