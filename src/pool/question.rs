//! Asking the store for a lease, also when its answers get lost.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::waiting::{Later, UNANSWERED, Wants};
use super::{Lease, Pool};
use crate::error::{Error, Kind};
use crate::secret::Token;
use crate::store::{AcquireReply, AcquireRequest};

/// What one question to the store came to.
enum Answer {
    Lease(Lease),
    Later(Later),
    /// What was granted is of no use here; the next may be.
    Again,
}

/// After a lost answer the store is asked again this soon.
const REPEAT_LOST: Duration = Duration::from_millis(50);

/// A store may take this long for an answer, whoever asks.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// One acquire with its token, which is cancelled if the question is dropped unanswered.
pub(super) struct Question<'a> {
    pool: &'a Pool,
    token: Token,
    open: bool,
    /// A call with this token was not answered, and may still take place.
    stray: bool,
    patience: Duration,
    took: Duration,
}

impl<'a> Question<'a> {
    pub(super) fn new(pool: &'a Pool, patience: Duration) -> Self {
        let (token, took) = (Token::random(), Duration::ZERO);
        Self { pool, token, open: false, stray: false, patience, took }
    }

    pub(super) fn pool(&self) -> &'a Pool {
        self.pool
    }

    /// How long the store may take for its next answer.
    pub(super) fn patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// How long the store has taken for its answers, if it did not answer at once.
    pub(super) fn took(&self) -> Duration {
        self.took
    }

    /// Asks, and asks on past what is of no use here.
    pub(super) async fn ask(&mut self, wants: &mut Wants) -> Result<Result<Lease, Later>, Error> {
        loop {
            if self.pool.is_closed() {
                return Err(self.pool.closed());
            }
            let seen = self.pool.0.core.waiting.changes();
            match self.ask_once(wants).await? {
                Answer::Lease(lease) => return Ok(Ok(lease)),
                Answer::Later(later) => return Ok(Err(Later { seen, ..later })),
                Answer::Again => {}
            }
        }
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
        let reply = self.answer(shared.core.store.acquire(request), asked).await;
        self.open = false;
        match reply {
            // The answer is lost: the same token must be asked with again.
            Err(why) if why.kind() == Kind::StoreUnavailable => {
                self.stray = true;
                Ok(Answer::Later(Later::new(why).after(REPEAT_LOST)))
            }
            reply => self.read(reply?, wants, asked),
        }
    }

    /// The store's answer, waited for no longer than the caller does, but for long enough that
    /// one who would not wait at all can be answered.
    async fn answer(
        &mut self,
        call: impl Future<Output = Result<AcquireReply, Error>>,
        asked: Instant,
    ) -> Result<AcquireReply, Error> {
        let mut call = pin!(call);
        // Most stores in memory answer at once, which needs no clock.
        if let Poll::Ready(reply) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            return reply;
        }
        let answer = timeout_at(asked + self.patience.max(LEAST_PATIENCE), call).await;
        self.took += asked.elapsed();
        answer.unwrap_or_else(|_| Err(Error::store_unavailable(UNANSWERED)))
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
                    Ok(mut lease) => {
                        if std::mem::take(&mut self.stray) {
                            lease.cancel_at_the_end();
                        }
                        return Ok(Answer::Lease(lease));
                    }
                    Err(unknown) => {
                        wants.exclude.push(unknown);
                        self.draw_anew();
                        return Ok(Answer::Again);
                    }
                }
            }
            AcquireReply::Empty { next, restricted } => {
                Later { after: next, restricted, ..Later::exhausted(self.pool) }
            }
            AcquireReply::Loading => Later::loading(self.pool),
            AcquireReply::Paused => Later::paused(self.pool),
            AcquireReply::Hold(rest) => Later::exhausted(self.pool).after(rest),
            AcquireReply::Cancelled => {
                self.draw_anew();
                return Ok(Answer::Again);
            }
        };
        Ok(Answer::Later(later))
    }

    /// The token has had its lease, or must not have one.
    fn draw_anew(&mut self) {
        self.give_up();
        self.token = Token::random();
    }

    fn give_up(&mut self) {
        if std::mem::take(&mut self.open) | std::mem::take(&mut self.stray) {
            self.pool.0.releaser.cancel(&self.pool.0.core, self.token);
        }
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}
