//! A request's place before one bucket, from entering to going out.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use compact_str::CompactString;
use tokio::time::sleep_until;

use super::clock::At;
use super::local::Slot;
use super::queue::{Limits, Queue, State, Stay, Step, wake};
use super::turn::Cause;
use crate::error::{Error, Kind};
use crate::random;

/// A place in a queue; dropping it leaves the queue and makes the next one the head.
pub(super) struct Place {
    queue: Arc<Queue>,
    name: CompactString,
    ticket: u64,
    joined: At,
    leads: bool,
    /// When the last pause that it met began.
    paused: Option<At>,
    pub(super) pauses: usize,
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
    /// Enters, unless the wait would be too long or too many wait already.
    pub(super) fn enter(
        queue: &Arc<Queue>,
        name: &str,
        ticket: u64,
        now: At,
        max_wait: Duration,
    ) -> Result<Self, Error> {
        queue.enter(now, max_wait).map_err(|refused| refused.of(name))?;
        let (queue, name) = (Arc::clone(queue), name.into());
        Ok(Self { queue, name, ticket, joined: now, leads: false, paused: None, pauses: 0 })
    }

    /// Becomes the head if nobody is before it.
    pub(super) fn take_up(&mut self) {
        self.leads = self.queue.state().line().try_lead(self.ticket);
    }

    pub(super) fn now(&self) -> At {
        self.queue.now()
    }

    /// When it may go, as far as can be said.
    pub(super) fn forecast(&self) -> At {
        let mut state = self.queue.state();
        let ahead = state.line().ahead_of(self.ticket);
        self.queue.forecast(&state, self.queue.now(), ahead).0
    }

    /// Becomes the head and sleeps to the slot that is kept or reserved for it.
    pub(super) async fn ready(&mut self, holding: bool) -> Result<Readiness, Error> {
        let mut anew = true;
        loop {
            let now = self.queue.now();
            if !self.leads {
                if holding && self.is_far(now) {
                    return Ok(Readiness::Far);
                }
                self.refused(now)?;
                self.leads = self.lead().await;
                continue;
            }
            let step = {
                let mut state = self.queue.state();
                if let Some(fault) = state.take_fault(self.joined) {
                    return Err(fault);
                }
                match std::mem::take(&mut anew) {
                    true => self.queue.look(&mut state, self.joined, now),
                    false => self.queue.step(&mut state, self.joined, now),
                }
            };
            match step {
                Step::Go => return Ok(Readiness::Ready),
                Step::Refuses(until) => {
                    return Err(self.queue.refuses(until.since(now)).of(&self.name));
                }
                Step::Reserve(from) => self.queue.reserve(self.queue.jittered(from, now)),
                Step::Paused { began, until } => {
                    if std::mem::replace(&mut self.paused, began) != began {
                        self.pauses += 1;
                    }
                    if holding && until.nanos_since(now) > NEAR {
                        return Ok(Readiness::Far);
                    }
                    self.wait(Some(until)).await;
                }
                Step::Sleep(at) => self.wait(Some(at)).await,
                Step::Look(_, until) => self.wait(until).await,
            }
        }
    }

    /// Whether it is the head, or becomes it now, and a slot is due.
    pub(super) fn try_ready(&mut self, now: At) -> bool {
        let mut state = self.queue.state();
        self.leads = self.leads || state.line().try_lead(self.ticket);
        self.leads && self.queue.look(&mut state, self.joined, now) == Step::Go
    }

    /// Lets those behind pass, and keeps its place among them.
    pub(super) fn step_aside(&mut self) {
        if std::mem::take(&mut self.leads) {
            let waker = self.queue.state().line().leave(self.ticket);
            wake(waker);
        }
    }

    /// Whether the wait for the head and its slot is longer than it may hold others up.
    fn is_far(&self, now: At) -> bool {
        let mut state = self.queue.state();
        let ahead = state.line().ahead_of(self.ticket);
        let (at, _) = self.queue.forecast(&state, now, ahead);
        at.nanos_since(now) > NEAR.max(self.queue.limit.pace.interval.saturating_mul(2))
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

    /// Waits to be the head; `false` when there is something to look at first.
    async fn lead(&self) -> bool {
        poll_fn(|cx| self.queue.state().line().poll_lead(self.ticket, cx)).await
    }

    /// Waits for a signal, at the longest until then.
    async fn wait(&self, until: Option<At>) {
        let signal = || poll_fn(|cx| self.queue.state().line().poll_signal(self.ticket, cx));
        let Some(until) = until else { return signal().await };
        let mut sleep = pin!(sleep_until(self.queue.limit.common.epoch.instant(until)));
        let mut signal = pin!(signal());
        poll_fn(|cx| match signal.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => sleep.as_mut().poll(cx),
        })
        .await;
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

/// Why a request may not wait.
pub(super) enum Refusal {
    /// `max_wait` is `None` where it has waited that long already.
    TooLong {
        wait: Duration,
        max_wait: Option<Duration>,
        cause: Cause,
    },
    Crowded {
        wait: Duration,
        most: usize,
    },
    Refuses {
        wait: Duration,
        pauses: u32,
    },
}

impl Refusal {
    fn of(self, name: &str) -> Error {
        let (kind, message, wait) = match self {
            Self::TooLong { wait, max_wait: Some(max_wait), cause } => {
                let what = cause.of(name);
                let message = format!("{what} is longer than the {max_wait:.1?} allowed");
                (Kind::BudgetExceeded, message, wait)
            }
            Self::TooLong { wait, max_wait: None, cause } => {
                (Kind::BudgetExceeded, format!("{} lasted too long", cause.of(name)), wait)
            }
            Self::Crowded { wait, most } => {
                (Kind::BudgetExceeded, format!("{most} requests wait for {name} already"), wait)
            }
            Self::Refuses { wait, pauses } => {
                let message = format!("{name} refused again after {pauses} pauses in a row");
                (Kind::SiteRefuses, message, wait)
            }
        };
        Error::new(kind, message).with_retry_after(wait)
    }
}

impl Queue {
    /// Counts a newcomer in, unless it would wait too long or too many wait already.
    fn enter(&self, now: At, max_wait: Duration) -> Result<(), Refusal> {
        let common = &self.limit.common;
        let longest = self.limit.budget.and_then(|budget| budget.longest_wait());
        let max_wait = longest.map_or(max_wait, |longest| longest.min(max_wait));
        let mut state = self.state();
        let ahead = state.waiting as usize;
        if let Some(pause) = state.pause.as_deref().filter(|p| p.gives_up(now, common.pauses.most))
        {
            return Err(self.refuses(pause.until.since(now)));
        }
        let (at, cause) = self.forecast(&state, now, ahead);
        let no_wait = max_wait.is_zero() && cause == Cause::InFlight;
        if at.since(now) > max_wait || no_wait {
            common.counters.too_long.add_one();
            let (wait, cause) = self.wait(&state, now, ahead);
            return Err(Refusal::TooLong { wait, max_wait: Some(max_wait), cause });
        }
        if ahead >= common.most_waiting {
            common.counters.crowded_out.add_one();
            return Err(Refusal::Crowded { wait: at.since(now), most: common.most_waiting });
        }
        state.waiting += 1;
        Ok(())
    }

    /// How long a wait would be, and what for: what can be said of it.
    fn wait(&self, state: &State, now: At, ahead: usize) -> (Duration, Cause) {
        let (at, cause) = self.forecast(state, now, ahead);
        let at = match cause {
            Cause::InFlight => at.max(self.guess(state, now, ahead)),
            Cause::Rate | Cause::Pause => at,
        };
        (at.since(now), cause)
    }

    fn refuses(&self, wait: Duration) -> Refusal {
        self.limit.common.counters.refused_by_site.add_one();
        Refusal::Refuses { wait, pauses: self.limit.common.pauses.most }
    }

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
const NEAR: u64 = 1_000_000_000;
