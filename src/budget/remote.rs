//! The queue's side of a limiter that asks a server.

use std::sync::Arc;

use super::clock::At;
use super::line::Line;
use super::local::{Known, Limiter, Reply, Reservation, Slot};
use super::pause::Pause;
use super::queue::{Limits, Queue, State, Step, wake};
use super::turn::Cause;
use crate::error::Error;

/// What is known of the server.
#[derive(Default)]
pub(super) struct Remote {
    /// Since when a reservation is under way.
    asking: Option<At>,
    /// What the server has nothing to grant for, and when to ask again.
    look: Option<(Cause, At)>,
    /// What the last reservation failed with, and when; the head is told if it waited then.
    fault: Option<(At, Error)>,
}

impl Remote {
    /// What keeps the head from asking.
    pub(super) fn barred(&mut self, now: At) -> Option<Step> {
        if self.asking.is_some() {
            return Some(Step::Look(Cause::Rate, None));
        }
        let (cause, until) = self.look.filter(|(_, until)| *until > now)?;
        Some(Step::Look(cause, Some(until)))
    }

    /// What the server has nothing to grant for, as far as is known.
    pub(super) fn looks_for(&self, now: At) -> Option<Cause> {
        self.look.filter(|(_, until)| *until > now).map(|(cause, _)| cause)
    }
}

impl State {
    /// A place of this process came free, which the server may grant again.
    pub(super) fn ask_again(&mut self) {
        if let Some(remote) = &mut self.remote {
            remote.look = remote.look.filter(|(cause, _)| *cause != Cause::InFlight);
        }
    }

    /// What the server said last is not true any more.
    pub(super) fn ask_anew(&mut self) {
        if let Some(remote) = &mut self.remote {
            remote.look = None;
        }
    }

    /// What the last reservation failed with, for a head that has been waiting since `joined`.
    pub(super) fn take_fault(&mut self, joined: At) -> Option<Error> {
        let (told, fault) = self.remote.as_mut()?.fault.take()?;
        (joined <= told).then_some(fault)
    }
}

impl Queue {
    /// Reserves the next slot for the queue, from `from` on; `early` as in [`Limiter::reserve`].
    pub(super) fn reserve(self: &Arc<Self>, from: At, early: bool) {
        let reservation = match &self.limiter {
            Limits::None => Reservation::Now(Slot { at: from, place: None }),
            Limits::Local(limiter) => limiter.reserve(from, early),
            Limits::Remote(limiter) => limiter.reserve(from, early),
        };
        let reply = match reservation {
            Reservation::Now(slot) => {
                self.state().schedule.reserved(slot);
                return;
            }
            Reservation::Asked(reply) => reply,
        };
        {
            let mut state = self.state();
            let remote = state.remote.get_or_insert_default();
            (remote.asking, remote.fault) = (Some(self.now()), None);
        }
        let mut asking = Asking(Some(Arc::clone(self)));
        tokio::spawn(async move {
            let reply = reply.await;
            if let Some(queue) = asking.0.take() {
                queue.told(reply);
            }
        });
    }

    /// Books what the server said, whoever asked.
    fn told(&self, reply: Result<Reply, Error>) {
        let now = self.now();
        if matches!(reply, Ok(Reply::Paused { .. } | Reply::Slot(_, Known::Ended { .. }))) {
            // Answers count from now on, whoever was refused.
            self.limit.common.watch();
        }
        let (unused, waker) = {
            let mut state = self.state();
            let unused = state.told(reply, now);
            (unused, state.line.as_deref_mut().and_then(Line::signal))
        };
        if let Some(slot) = unused {
            self.lapsed(slot);
        }
        wake(waker);
    }
}

impl State {
    /// Returns a slot that nobody is there for.
    fn told(&mut self, reply: Result<Reply, Error>, now: At) -> Option<Slot> {
        let nobody = self.queued() == 0;
        let remote = self.remote.get_or_insert_default();
        let asked = remote.asking.take();
        remote.look = None;
        match reply {
            Ok(Reply::Slot(slot, _)) if nobody => return Some(slot),
            Ok(Reply::Slot(slot, known)) => {
                self.schedule.reserved(slot);
                match (known, self.pause.as_deref_mut()) {
                    (Known::Ended { nth }, _) => self.pause().lets_probe(nth, now),
                    (Known::NoPause, Some(pause)) => pause.is_over(asked.unwrap_or(now)),
                    (Known::NoPause, None) | (Known::Nothing, _) => {}
                }
            }
            Ok(Reply::Full { again }) => remote.look = Some((Cause::InFlight, again)),
            Ok(Reply::Probing { again }) => remote.look = Some((Cause::Pause, again)),
            Ok(Reply::Paused { until, nth }) => self.pause().told(until, nth, now),
            Err(fault) => remote.fault = (self.waiting > 0).then_some((now, fault)),
        }
        None
    }

    /// What is known of the site's pauses.
    pub(super) fn pause(&mut self) -> &mut Pause {
        self.pause.get_or_insert_with(|| Box::new(Pause::none()))
    }
}

/// A reservation under way; one that vanishes with its runtime or a panic is a fault.
struct Asking(Option<Arc<Queue>>);

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.told(Err(Error::store_unavailable("the budget's server was not asked")));
        }
    }
}
