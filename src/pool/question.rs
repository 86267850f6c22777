//! One call for leases, and what becomes of its tokens when its answer is lost.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::{Instant, timeout_at};

use super::wants::{Later, Wants};
use super::{Lease, Pool};
use crate::error::{Error, Kind};
use crate::secret::Token;
use crate::store::{AcquireReply, AcquireRequest};

/// A store may take this long for an answer, whoever asks.
pub(super) const LEAST_PATIENCE: Duration = Duration::from_secs(1);

pub(super) const UNANSWERED: &str = "the store has not answered in time";

/// Tokens of a call that may still take place; cancelled when it is dropped.
pub(super) struct Unanswered<'a> {
    pool: &'a Pool,
    pub(super) tokens: SmallVec<[Token; 1]>,
}

impl<'a> Unanswered<'a> {
    pub(super) fn new(pool: &'a Pool, tokens: impl Into<SmallVec<[Token; 1]>>) -> Self {
        Self { pool, tokens: tokens.into() }
    }

    /// Asks the store, for no longer than `patience`, but for long enough that one who would not
    /// wait at all can be answered.
    pub(super) async fn ask(
        &self,
        wants: &Wants,
        patience: Duration,
    ) -> Result<AcquireReply, Error> {
        let shared = &self.pool.0;
        let request = AcquireRequest {
            tokens: self.tokens.to_vec(),
            expiry_cooldown: shared.settings.expiry_cooldown,
            site: wants.site.clone(),
            exclude: wants.exclude.clone(),
            prefer: wants.prefer.clone(),
            random: shared.core.waiting.lot(),
            pool: shared.core.name.clone(),
            ttl: wants.ttl,
        };
        let mut call = pin!(shared.core.store.acquire(request));
        // Most stores in memory answer at once, which needs no clock.
        if let Poll::Ready(reply) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            return shared.core.noted(checked(reply));
        }
        let until = Instant::now() + patience.max(LEAST_PATIENCE);
        let reply = timeout_at(until, call).await;
        let reply = reply.unwrap_or_else(|_| Err(Error::store_unavailable(UNANSWERED)));
        shared.core.noted(checked(reply))
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

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        for token in self.tokens.drain(..) {
            self.pool.cancel(token);
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

    /// The token, for a wait for the same: what it has may be for nobody else.
    pub(super) fn token_for(mut self, pool: &Pool, wants: &Wants) -> Option<Token> {
        self.token.take_if(|_| self.pool.is(pool) && self.wants == *wants)
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
        wants: &mut Wants,
        patience: Duration,
    ) -> Result<Result<Lease, (Later, Option<Doubt>)>, Error> {
        loop {
            if self.is_closed() {
                return Err(self.closed());
            }
            let mut call = Unanswered::new(self, [Token::random()]);
            let asked = Instant::now();
            let reply = call.ask(wants, patience).await;
            if reply.is_ok() {
                call.tokens.clear();
            }
            match reply {
                Ok(AcquireReply::Granted(grants)) => {
                    // One token has one grant.
                    for grant in grants {
                        match Lease::new(self.clone(), grant, wants, asked) {
                            Ok(lease) => return Ok(Ok(lease)),
                            Err(unknown) => wants.exclude.push(unknown),
                        }
                    }
                }
                Ok(reply) => {
                    if let Some(later) = Later::of(&reply, self) {
                        return Ok(Err((later, None)));
                    }
                }
                Err(why) => {
                    let stray = call.tokens.pop().filter(|_| why.may_have_run());
                    let doubt = stray.map(|token| Doubt::new(self, wants, token));
                    if why.kind() != Kind::StoreUnavailable {
                        return Err(why);
                    }
                    return Ok(Err((Later::new(why), doubt)));
                }
            }
        }
    }
}
