//! Waiting for a lease, first in, first out.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout_at};

use super::{Lease, Pool, random_number};
use crate::error::{Error, Kind};
use crate::id::EndpointId;
use crate::secret::Token;
use crate::site::Site;
use crate::store::{AcquireReply, AcquireRequest};

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
            lots: AtomicU64::new(random_number()),
        }
    }
}

impl Waiting {
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
    fn lot(&self) -> u64 {
        // One step of splitmix64, from a start that differs between processes.
        let mut lot = self.lots.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        lot = (lot ^ (lot >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        lot = (lot ^ (lot >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        lot ^ (lot >> 31)
    }

    /// Sleeps until `until`, or until something changed since `seen`.
    async fn change(&self, seen: u64, until: Instant) {
        let freed = self.freed.notified();
        tokio::pin!(freed);
        freed.as_mut().enable();
        if self.changes.load(Ordering::Acquire) == seen {
            let _ = timeout_at(until, freed).await;
        }
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

/// What one question to the store came to.
enum Answer {
    Lease(Lease),
    Later(Later),
}

/// Why there is no lease yet, and when to ask again.
struct Later {
    after: Option<Duration>,
    /// Others in the queue might be served.
    restricted: bool,
    why: Error,
    /// The pool's changes when it was asked.
    seen: u64,
}

impl Later {
    fn new(why: Error) -> Self {
        Self { after: None, restricted: false, why, seen: 0 }
    }

    fn exhausted(pool: &Pool) -> Self {
        let message = format!("no endpoint of pool {} came free in time", pool.name());
        Self::new(Error::new(Kind::PoolExhausted, message))
    }

    fn paused(pool: &Pool) -> Self {
        Self::new(Error::new(Kind::PoolPaused, format!("pool {} is paused", pool.name())))
    }

    fn after(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    /// With some excluded and no other on its way back, waiting is for nothing.
    fn is_hopeless(&self, wants: &Wants) -> bool {
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
        let question = Question::new(self);
        let queued = self.0.core.waiting.enter();
        let waiter = Waiter { question, wants, until: started + patience, _queued: queued };
        // Most requests need not wait, and should not carry a waiter's state with them.
        let lease = Box::pin(waiter.wait()).await?;
        Ok((lease, started.elapsed()))
    }

    /// Takes a lease if nobody waits for one and the store grants it at the first question.
    ///
    /// # Cancel safety
    /// A lease that the store granted, or may still grant, is cancelled in the background.
    pub(crate) async fn lease_now(&self, mut wants: Wants) -> Result<Option<Lease>, Error> {
        if self.0.core.waiting.queued.load(Ordering::Acquire) > 0 {
            return Ok(None);
        }
        match Question::new(self).ask(&mut wants).await? {
            Answer::Lease(lease) => Ok(Some(lease)),
            Answer::Later(_) => Ok(None),
        }
    }
}

/// A request in the queue.
struct Waiter<'a> {
    question: Question<'a>,
    wants: Wants,
    until: Instant,
    _queued: Queued<'a>,
}

impl<'a> Waiter<'a> {
    /// Waits for the turn again and again until there is a lease.
    async fn wait(mut self) -> Result<Lease, Error> {
        let pool = self.question.pool;
        let mut last = None;
        loop {
            let Ok(turn) = timeout_at(self.until, pool.0.core.waiting.turn.lock()).await else {
                return Err(last.unwrap_or_else(|| Later::exhausted(pool)).into());
            };
            match self.ask_on().await? {
                Answer::Lease(lease) => return Ok(lease),
                Answer::Later(later) => {
                    // Only this request is not served: the others may ask meanwhile.
                    drop(turn);
                    self.look_again(&later).await;
                    last = Some(later);
                }
            }
        }
    }

    /// Asks until there is a lease, or a reason to let others ask.
    async fn ask_on(&mut self) -> Result<Answer, Error> {
        loop {
            let later = match self.question.ask(&mut self.wants).await? {
                Answer::Lease(lease) => return Ok(Answer::Lease(lease)),
                Answer::Later(later) => later,
            };
            if Instant::now() >= self.until || later.is_hopeless(&self.wants) {
                return Err(later.into());
            }
            if later.restricted {
                return Ok(Answer::Later(later));
            }
            self.look_again(&later).await;
        }
    }

    /// Sleeps until it is worth asking again.
    async fn look_again(&self, later: &Later) {
        let pool = &self.question.pool.0;
        let longest = pool.settings.poll_every;
        let pause = jittered(later.after.map_or(longest, |after| after.min(longest)));
        pool.core.waiting.change(later.seen, self.until.min(Instant::now() + pause)).await;
    }
}

/// After a lost answer the store is asked again this soon.
const REPEAT_LOST: Duration = Duration::from_millis(50);

/// Up to an eighth longer, so that workers do not ask in step.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(random_number().to_le_bytes()[0]);
    pause + pause / 8 * share / 255
}

/// One acquire with its token, which is cancelled if the question is dropped unanswered.
struct Question<'a> {
    pool: &'a Pool,
    token: Token,
    open: bool,
}

impl<'a> Question<'a> {
    fn new(pool: &'a Pool) -> Self {
        Self { pool, token: Token::random(), open: false }
    }

    async fn ask(&mut self, wants: &mut Wants) -> Result<Answer, Error> {
        if self.pool.is_closed() {
            return Err(self.pool.closed());
        }
        let seen = self.pool.0.core.waiting.changes.load(Ordering::SeqCst);
        Ok(match self.ask_once(wants).await? {
            Answer::Later(later) => Answer::Later(Later { seen, ..later }),
            lease => lease,
        })
    }

    async fn ask_once(&mut self, wants: &mut Wants) -> Result<Answer, Error> {
        let shared = &self.pool.0;
        let mut request = AcquireRequest::new(shared.core.name.clone(), self.token, wants.ttl);
        request.expiry_cooldown = shared.settings.expiry_cooldown;
        request.site.clone_from(&wants.site);
        request.exclude.clone_from(&wants.exclude);
        request.prefer.clone_from(&wants.prefer);
        request.random = shared.core.waiting.lot();
        let asked = Instant::now();
        self.open = true;
        let reply = match shared.core.store.acquire(request).await {
            // The answer is lost: the same token must be asked with again.
            Err(why) if why.kind() == Kind::StoreUnavailable => {
                return Ok(Answer::Later(Later::new(why).after(REPEAT_LOST)));
            }
            reply => reply,
        };
        self.open = false;
        self.read(reply?, wants, asked)
    }

    fn read(
        &mut self,
        reply: AcquireReply,
        wants: &mut Wants,
        asked: Instant,
    ) -> Result<Answer, Error> {
        let later = match reply {
            AcquireReply::Granted(grants) => {
                let grant = grants.into_iter().next().ok_or_else(|| {
                    Error::store_unavailable("the store granted nothing and did not say so")
                })?;
                match Lease::new(self.pool.clone(), grant, wants, asked) {
                    Ok(lease) => return Ok(Answer::Lease(lease)),
                    Err(unknown) => {
                        wants.exclude.push(unknown);
                        self.with_new_token()
                    }
                }
            }
            AcquireReply::Empty { next, restricted } => {
                Later { after: next, restricted, ..Later::exhausted(self.pool) }
            }
            AcquireReply::Paused => Later::paused(self.pool),
            AcquireReply::Hold(rest) => Later::exhausted(self.pool).after(rest),
            AcquireReply::Cancelled => self.with_new_token(),
        };
        Ok(Answer::Later(later))
    }

    /// Asks again at once, for what was granted or cancelled is of no use.
    fn with_new_token(&mut self) -> Later {
        self.token = Token::random();
        Later::exhausted(self.pool).after(Duration::ZERO)
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.open {
            self.pool.0.releaser.cancel(&self.pool.0.core, self.token);
        }
    }
}
