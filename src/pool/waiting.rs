//! Waiting for a lease, first in, first out.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
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
#[derive(Default)]
pub(super) struct Waiting {
    turn: Mutex<()>,
    freed: Notify,
    /// Grows when something may have come free, so that nothing between a question and the
    /// waiting for the next one is missed.
    changes: AtomicU64,
}

impl Waiting {
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
    /// Ask again after this time; `restricted` when others in the queue might be served.
    Later {
        after: Option<Duration>,
        restricted: bool,
        why: Kind,
    },
    /// The store's answer is lost: the same token must be asked with again.
    Unknown(Error),
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
        let mut last = Later { after: None, why: Kind::PoolExhausted };
        // A lease that comes at once needs no clock.
        let mut end = None;
        loop {
            let turn = match waiting.turn.try_lock() {
                Ok(turn) => turn,
                Err(_) => {
                    let until = *end.get_or_insert_with(|| Instant::now() + patience);
                    match timeout_at(until, waiting.turn.lock()).await {
                        Ok(turn) => turn,
                        Err(_) => return Err(self.gave_up(last)),
                    }
                }
            };
            // The turn is kept until a lease comes, unless only this request is not served.
            loop {
                if self.is_closed() {
                    return Err(self.closed());
                }
                let seen = waiting.changes.load(Ordering::Acquire);
                let answer = question.ask(&mut wants).await?;
                let now = Instant::now();
                let until = *end.get_or_insert(now + patience);
                let (pause, restricted) = match answer {
                    Answer::Lease(lease) => return Ok(lease),
                    Answer::Unknown(error) if now >= until => return Err(error),
                    Answer::Unknown(_) => (REPEAT_LOST, false),
                    Answer::Later { after, restricted, why } => {
                        last = Later { after, why };
                        (after.unwrap_or(Duration::MAX), restricted)
                    }
                };
                if now >= until {
                    return Err(self.gave_up(last));
                }
                let wake = now + jittered(pause.min(self.0.settings.poll_every));
                if restricted {
                    drop(turn);
                    waiting.change(seen, wake.min(until)).await;
                    break;
                }
                waiting.change(seen, wake.min(until)).await;
            }
        }
    }

    fn gave_up(&self, last: Later) -> Error {
        let message = match last.why {
            Kind::PoolPaused => format!("pool {} is paused", self.0.core.name),
            _ => format!("no endpoint of pool {} came free in time", self.0.core.name),
        };
        let error = Error::new(last.why, message);
        match last.after {
            Some(after) => error.with_retry_after(after),
            None => error,
        }
    }
}

/// Why the last question got no lease.
struct Later {
    after: Option<Duration>,
    why: Kind,
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
        let shared = &self.pool.0;
        let mut request = AcquireRequest::new(shared.core.name.clone(), self.token, wants.ttl);
        request.expiry_cooldown = shared.settings.expiry_cooldown;
        request.site.clone_from(&wants.site);
        request.exclude.clone_from(&wants.exclude);
        request.prefer.clone_from(&wants.prefer);
        request.random = LOTS.hash_one(self.token);
        let asked = Instant::now();
        self.open = true;
        let reply = match shared.core.store.acquire(request).await {
            Err(error) if error.kind() == Kind::StoreUnavailable => {
                return Ok(Answer::Unknown(error));
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
        let later = |after, restricted, why| Ok(Answer::Later { after, restricted, why });
        match reply {
            AcquireReply::Granted(grants) => {
                let grant = grants.into_iter().next().ok_or_else(|| {
                    Error::store_unavailable("the store granted nothing and did not say so")
                })?;
                match Lease::new(self.pool.clone(), grant, wants, asked) {
                    Ok(lease) => Ok(Answer::Lease(lease)),
                    Err(unknown) => {
                        wants.exclude.push(unknown);
                        self.token = Token::random();
                        later(Some(Duration::ZERO), false, Kind::PoolExhausted)
                    }
                }
            }
            AcquireReply::Empty { next, restricted } => {
                later(next, restricted, Kind::PoolExhausted)
            }
            AcquireReply::Paused => later(None, false, Kind::PoolPaused),
            AcquireReply::Hold(rest) => later(Some(rest), false, Kind::PoolExhausted),
            AcquireReply::Cancelled => {
                self.token = Token::random();
                later(Some(Duration::ZERO), false, Kind::PoolExhausted)
            }
        }
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.open {
            self.pool.0.releaser.cancel(&self.pool.0.core, self.token);
        }
    }
}

/// Makes lots of tokens without giving any part of them away.
static LOTS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
