//! One call for leases, and what becomes of its tokens when its answer is lost.

use std::borrow::Borrow;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::wants::{Later, Wants};
use super::{Core, Lease, Pool};
use crate::error::Error;
use crate::secret::Token;
use crate::store::{AcquireReply, AcquireRequest};

/// A store may take this long for an answer, whoever asks.
pub(super) const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// How long somebody waits: for so long, and for one answer of the store even if that takes longer;
/// but by no means past the deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) wait: Duration,
    pub(crate) deadline: Option<Instant>,
}

impl From<Duration> for Patience {
    fn from(wait: Duration) -> Self {
        Self { wait, deadline: None }
    }
}

impl Patience {
    /// When one who came at `started` has waited for long enough.
    pub(super) fn until(self, started: Instant) -> Instant {
        self.cut(started + self.wait)
    }

    /// When it does not even wait for an answer any more.
    fn end(self, started: Instant) -> Instant {
        self.cut(started + self.wait.max(LEAST_PATIENCE))
    }

    pub(super) fn cut(self, end: Instant) -> Instant {
        self.deadline.map_or(end, |deadline| deadline.min(end))
    }

    /// Resolves at the deadline.
    pub(super) async fn over(self) {
        match self.deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => pending().await,
        }
    }
}

pub(super) const UNANSWERED: &str = "the store has not answered in time";

/// Tokens of a call that may still take place; cancelled when it is dropped.
pub(super) struct Unanswered<P: Borrow<Pool>> {
    pub(super) pool: P,
    pub(super) tokens: SmallVec<[Token; 1]>,
}

impl<P: Borrow<Pool>> Unanswered<P> {
    pub(super) fn new(pool: P, tokens: impl Into<SmallVec<[Token; 1]>>) -> Self {
        Self { pool, tokens: tokens.into() }
    }

    /// Asks the store, until an end that is looked up when it does not answer at once.
    pub(super) async fn ask(
        &self,
        wants: &Wants,
        end: impl FnOnce(Instant) -> Instant,
    ) -> Result<AcquireReply, Error> {
        let shared = &self.pool.borrow().0;
        let request = AcquireRequest {
            tokens: self.tokens.to_vec(),
            expiry_cooldown: shared.settings.expiry_cooldown,
            site: wants.site.clone(),
            exclude: shared.strangers.and(&shared.inventory, &wants.exclude),
            prefer: wants.prefer.clone(),
            random: shared.core.waiting.lot(),
            pool: shared.core.name.clone(),
            ttl: wants.ttl,
        };
        let mut call = pin!(shared.core.called(async { shared.core.store.acquire(request).await }));
        // Most stores in memory answer at once, which needs no clock.
        if let Poll::Ready(reply) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            return shared.core.taken_in(reply);
        }
        let reply = timeout_at(end(Instant::now()), call).await;
        let reply = reply.unwrap_or_else(|_| Err(Error::store_unavailable(UNANSWERED)));
        shared.core.taken_in(reply)
    }
}

impl Core {
    fn taken_in(&self, reply: Result<AcquireReply, Error>) -> Result<AcquireReply, Error> {
        self.noted(checked(reply)).inspect(|reply| self.heard(reply))
    }
}

fn checked(reply: Result<AcquireReply, Error>) -> Result<AcquireReply, Error> {
    match reply {
        Ok(AcquireReply::Granted(grants)) if grants.is_empty() => {
            Err(Error::store_unavailable("the store granted nothing and did not say so"))
        }
        reply => reply,
    }
}

impl<P: Borrow<Pool>> Drop for Unanswered<P> {
    fn drop(&mut self) {
        for token in self.tokens.drain(..) {
            self.pool.borrow().cancel(token);
        }
    }
}

/// A token whose lease may exist, on its way to the wait in which it is repeated; cancelled when
/// it is dropped.
pub(crate) struct Doubt {
    pool: Pool,
    wants: Wants,
    token: Option<Token>,
}

impl Doubt {
    pub(super) fn new(pool: &Pool, wants: &Wants, token: Token) -> Self {
        Self { pool: pool.clone(), wants: wants.clone(), token: Some(token) }
    }

    /// Whether it is for a wait for the same: what it has may be for nobody else.
    pub(super) fn is_for(&self, pool: &Pool, wants: &Wants) -> bool {
        self.pool.is(pool) && self.wants == *wants
    }

    /// The token, once somebody else sees to it.
    pub(super) fn into_token(mut self) -> Option<Token> {
        self.token.take()
    }
}

impl Drop for Doubt {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.pool.cancel(token);
        }
    }
}

impl Pool {
    /// Gives a token up in the background; a lease that it has lasts no longer than this.
    pub(super) fn cancel(&self, token: Token) {
        let shared = &self.0;
        shared.releaser.cancel(&shared.core, token, Instant::now() + shared.settings.ttl);
    }

    /// Asks for one lease past the queue, and asks on past what is of no use here.
    pub(super) async fn take(
        &self,
        wants: &Wants,
        patience: Patience,
    ) -> Result<Result<Lease, (Later, Option<Doubt>)>, Error> {
        loop {
            if self.is_closed() {
                return Err(self.closed());
            }
            let mut call = Unanswered::new(self, [Token::random()]);
            let asked = Instant::now();
            let reply = call.ask(wants, |now| patience.end(now)).await;
            if reply.is_ok() {
                call.tokens.clear();
            }
            match reply {
                Ok(AcquireReply::Granted(grants)) => {
                    // One token has one grant.
                    for grant in grants {
                        match Lease::new(self.clone(), grant, wants, asked) {
                            Ok(lease) => return Ok(Ok(lease)),
                            Err(true) => {}
                            Err(false) => {
                                let later = Later::exhausted(self).after(self.rest());
                                return Ok(Err((later, None)));
                            }
                        }
                    }
                }
                Ok(reply) => {
                    return Ok(Err((Later::of(&reply, self), None)));
                }
                Err(why) => {
                    let stray = call.tokens.pop().filter(|_| why.may_have_run());
                    let doubt = stray.map(|token| Doubt::new(self, wants, token));
                    if !why.is_of_an_outage() {
                        return Err(why);
                    }
                    return Ok(Err((Later::new(why), doubt)));
                }
            }
        }
    }
}
