//! Waiting for a lease, first in, first out.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout_at};

use super::question::Question;
use super::{Lease, Pool};
use crate::error::{Error, Kind};
use crate::id::EndpointId;
use crate::random;
use crate::site::Site;

/// The pool's queue in this process. Whoever holds the turn asks the store; the others wait
/// behind it in order.
pub(super) struct Waiting {
    turn: Mutex<()>,
    freed: Notify,
    /// Grows when something may have come free, so that nothing between a question and the
    /// waiting for the next one is missed.
    changes: AtomicU64,
    /// Those who wait, so that nobody overtakes them.
    queued: AtomicUsize,
    lots: AtomicU64,
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

/// One of those who wait.
struct Queued<'a>(&'a Waiting);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            turn: Mutex::default(),
            freed: Notify::new(),
            changes: AtomicU64::new(0),
            queued: AtomicUsize::new(0),
            lots: AtomicU64::new(random::number()),
            known: std::sync::Mutex::default(),
        }
    }
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
        self.changes.load(Ordering::SeqCst)
    }

    /// Wakes whoever waits for an endpoint here.
    pub(super) fn something_came_free(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        // Whoever queues from now on asks after this change.
        if self.queued.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }

    fn enter(&self) -> Queued<'_> {
        self.queued.fetch_add(1, Ordering::SeqCst);
        Queued(self)
    }

    /// A number for policies that draw lots; it need not be a secret.
    pub(super) fn lot(&self) -> u64 {
        // From a start that differs between processes.
        random::mix(self.lots.fetch_add(random::STEP, Ordering::Relaxed))
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

    pub(super) fn loading(pool: &Pool) -> Self {
        let message = format!("pool {} is being loaded", pool.name());
        Self::new(Error::new(Kind::PoolLoading, message))
    }

    pub(super) fn after(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.why.kind() == Kind::StoreUnavailable
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
    /// Waits for a lease, at most so long, and says how long it was.
    ///
    /// # Cancel safety
    /// The place in the queue is given up; a lease that the store granted, or may still grant,
    /// is cancelled in the background.
    pub(crate) async fn lease(
        &self,
        wants: Wants,
        patience: Duration,
    ) -> Result<(Lease, Duration), Error> {
        let started = Instant::now();
        let question = Question::new(self, patience);
        let (queued, until) = (self.0.core.waiting.enter(), started + patience);
        let waiter = Waiter { question, wants, started, until, _queued: queued };
        // Most requests need not wait, and should not carry a waiter's state with them.
        let lease = Box::pin(waiter.wait()).await?;
        Ok((lease, started.elapsed()))
    }

    /// Takes a lease if nobody waits for one and the store grants it at the first question, and
    /// says how long the store took.
    ///
    /// # Cancel safety
    /// A lease that the store granted, or may still grant, is cancelled in the background.
    pub(crate) async fn lease_now(
        &self,
        mut wants: Wants,
        patience: Duration,
    ) -> Result<(Option<Lease>, Duration), Error> {
        if self.0.core.waiting.queued.load(Ordering::Acquire) > 0 {
            return Ok((None, Duration::ZERO));
        }
        let mut question = Question::new(self, patience);
        match question.ask(&mut wants).await? {
            Ok(lease) => Ok((Some(lease), question.took())),
            Err(later) if later.is_unanswered() && question.took() >= patience => Err(later.into()),
            Err(_) => Ok((None, question.took())),
        }
    }
}

/// A request in the queue.
struct Waiter<'a> {
    question: Question<'a>,
    wants: Wants,
    started: Instant,
    until: Instant,
    _queued: Queued<'a>,
}

impl<'a> Waiter<'a> {
    /// Waits for the turn again and again until there is a lease.
    async fn wait(mut self) -> Result<Lease, Error> {
        let pool = self.question.pool();
        let waiting = &pool.0.core.waiting;
        let mut last = None;
        loop {
            let Ok(turn) = timeout_at(self.until, waiting.turn.lock()).await else {
                let reason = || waiting.reason(pool, self.started);
                return Err(last.map_or_else(reason, Error::from));
            };
            match self.ask_on().await? {
                Ok(lease) => return Ok(lease),
                Err(later) => {
                    // Only this request is not served: the others may ask meanwhile.
                    drop(turn);
                    self.look_again(&later).await;
                    last = Some(later);
                }
            }
        }
    }

    /// Asks until there is a lease, or a reason to let others ask.
    async fn ask_on(&mut self) -> Result<Result<Lease, Later>, Error> {
        loop {
            let waiting = &self.question.pool().0.core.waiting;
            self.question.patience(self.until.saturating_duration_since(Instant::now()));
            let asking = waiting.asking(Instant::now());
            let answer = self.question.ask(&mut self.wants).await;
            drop(asking);
            let later = match answer? {
                Ok(lease) => {
                    waiting.note_a_lease();
                    return Ok(Ok(lease));
                }
                Err(later) => later,
            };
            waiting.note(&later);
            if Instant::now() >= self.until || later.is_hopeless(&self.wants) {
                return Err(later.into());
            }
            if later.restricted {
                return Ok(Err(later));
            }
            self.look_again(&later).await;
        }
    }

    /// Sleeps until it is worth asking again.
    async fn look_again(&self, later: &Later) {
        let pool = &self.question.pool().0;
        let longest = pool.settings.poll_every;
        let pause = jittered(later.after.map_or(longest, |after| after.min(longest)));
        pool.core.waiting.change(later.seen, self.until.min(Instant::now() + pause)).await;
    }
}

/// Up to an eighth longer, so that workers do not ask in step.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(random::number().to_le_bytes()[0]);
    pause + pause / 8 * share / 255
}

pub(super) const UNANSWERED: &str = "the store has not answered in time";
