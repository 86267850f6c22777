//! Waiting for a lease, first in, first out.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout_at};

use super::question::Question;
use super::{Lease, Pool, random_number};
use crate::error::{Error, Kind};
use crate::id::EndpointId;
use crate::site::Site;

/// The pool's queue in this process. Whoever holds the turn asks the store; the others wait
/// behind it in order.
#[derive(Default)]
pub(super) struct Waiting {
    turn: Mutex<()>,
    freed: Notify,
    /// Grows when something may have come free, so that nothing between a question and the
    /// waiting for the next one is missed.
    changes: AtomicU64,
    /// What whoever has the turn knows, for those who give up behind it.
    known: std::sync::Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Why there was no lease, and when there is the next chance.
    why: Option<(Error, Option<Instant>)>,
    /// Since when the store has left a question unanswered.
    unanswered: Option<Instant>,
}

impl Waiting {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why somebody who has queued since `started` had no turn.
    fn reason(&self, pool: &Pool, started: Instant) -> Error {
        let known = self.known();
        if known.unanswered.is_some_and(|since| since <= started) {
            return Error::store_unavailable(UNANSWERED);
        }
        let exhausted = Later::exhausted(pool);
        let later = known.why.clone().map_or(exhausted, |(why, next)| Later {
            after: next.map(|next| next.saturating_duration_since(Instant::now())),
            ..Later::new(why)
        });
        later.into()
    }

    /// Tells those behind why there is no lease; what holds for one request alone does not.
    pub(super) fn note(&self, later: &Later) {
        let next = later.after.and_then(|after| Instant::now().checked_add(after));
        self.known().why = (!later.restricted).then(|| (later.why.clone(), next));
    }

    pub(super) fn note_a_lease(&self) {
        self.known().why = None;
    }

    /// Tells those behind that the store has been asked, until it has answered.
    pub(super) fn asking(&self, since: Instant) -> Asking<'_> {
        self.known().unanswered = Some(since);
        Asking(self)
    }

    /// How often something may have come free so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Wakes whoever waits for an endpoint here.
    pub(super) fn something_came_free(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.freed.notify_waiters();
    }

    /// Sleeps until `until`, or until something changed since `seen`.
    async fn change(&self, seen: u64, until: Instant) {
        let freed = self.freed.notified();
        tokio::pin!(freed);
        freed.as_mut().enable();
        if self.changes() == seen {
            let _ = timeout_at(until, freed).await;
        }
    }
}

/// A question without an answer yet.
pub(super) struct Asking<'a>(&'a Waiting);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.known().unanswered = None;
    }
}

/// What a request needs of a lease.
#[derive(Debug, Clone)]
pub(crate) struct Wants {
    pub(crate) ttl: Duration,
    pub(crate) site: Option<Site>,
    pub(crate) exclude: Vec<EndpointId>,
    pub(crate) prefer: Option<EndpointId>,
}

/// Why there is no lease yet, and when to ask again.
pub(super) struct Later {
    pub(super) after: Option<Duration>,
    /// Others in the queue might be served.
    pub(super) restricted: bool,
    pub(super) why: Error,
    /// The pool's changes when it was asked.
    pub(super) seen: u64,
}

impl Later {
    pub(super) fn new(why: Error) -> Self {
        Self { after: None, restricted: false, why, seen: 0 }
    }

    pub(super) fn exhausted(pool: &Pool) -> Self {
        let message = format!("no endpoint of pool {} came free in time", pool.name());
        Self::new(Error::new(Kind::PoolExhausted, message))
    }

    pub(super) fn paused(pool: &Pool) -> Self {
        Self::new(Error::new(Kind::PoolPaused, format!("pool {} is paused", pool.name())))
    }

    pub(super) fn after(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    /// With some excluded and no other on its way back, waiting is for nothing.
    pub(super) fn is_hopeless(&self, wants: &Wants) -> bool {
        self.after.is_none() && self.why.kind() == Kind::PoolExhausted && !wants.exclude.is_empty()
    }
}

impl From<Later> for Error {
    fn from(later: Later) -> Self {
        match later.after {
            Some(after) if later.why.kind() == Kind::PoolExhausted => {
                later.why.with_retry_after(after)
            }
            _ => later.why,
        }
    }
}

impl Pool {
    /// Waits for a lease, at most so long.
    ///
    /// # Cancel safety
    /// The place in the queue is given up; a lease that the store granted, or may still grant,
    /// is cancelled in the background.
    pub(crate) async fn lease(&self, mut wants: Wants, patience: Duration) -> Result<Lease, Error> {
        let waiting = &self.0.core.waiting;
        let mut question = Question::new(self);
        // A lease that comes at once needs no clock.
        let mut end = End { patience, at: None };
        let mut last = None;
        loop {
            let turn = match waiting.turn.try_lock() {
                Ok(turn) => turn,
                Err(_) => match timeout_at(end.at(), waiting.turn.lock()).await {
                    Ok(turn) => turn,
                    Err(_) => {
                        let reason = || waiting.reason(self, end.at() - patience);
                        return Err(last.map_or_else(reason, Error::from));
                    }
                },
            };
            let later = match question.ask_on(&mut wants, &mut end).await? {
                Ok(lease) => return Ok(lease),
                Err(later) => later,
            };
            // Only this request is not served: the others may ask meanwhile.
            drop(turn);
            self.look_again(&later, &mut end).await;
            last = Some(later);
        }
    }

    /// Sleeps until it is worth asking again.
    pub(super) async fn look_again(&self, later: &Later, end: &mut End) {
        let longest = self.0.settings.poll_every;
        let pause = jittered(later.after.map_or(longest, |after| after.min(longest)));
        let until = end.at().min(Instant::now() + pause);
        self.0.core.waiting.change(later.seen, until).await;
    }
}

/// When the waiting ends, known once there is any.
pub(super) struct End {
    patience: Duration,
    at: Option<Instant>,
}

impl End {
    pub(super) fn at(&mut self) -> Instant {
        *self.at.get_or_insert_with(|| Instant::now() + self.patience)
    }

    pub(super) fn has_come(&mut self) -> bool {
        Instant::now() >= self.at()
    }
}

/// Up to an eighth longer, so that workers do not ask in step.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(random_number().to_le_bytes()[0]);
    pause + pause / 8 * share / 255
}

pub(super) const UNANSWERED: &str = "the store has not answered in time";
