//! Granting.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use super::{Known, RedisStore, large_ttl};
use crate::error::Error;
use crate::id::{EndpointId, Fence};
use crate::redis::commands::{ACQUIRE, ASSIGN};
use crate::redis::words::head;
use crate::redis::{Arguments, Reply, reply::senseless};
use crate::store::{AcquireReply, AcquireRequest, Grant, Term, check};

impl RedisStore {
    /// Grants by the script for the pool's mode, which is known after the first call.
    pub(super) async fn grant(&self, request: &AcquireRequest) -> Result<AcquireReply, Error> {
        check::tokens(&request.tokens)?;
        check::some_ttl(request.ttl)?;
        let pool = self.pool(&request.pool);
        let (word, reply) = self.ask(&pool, request).await?;
        if !matches!(word.as_str(), head::SHARED | head::EXCLUSIVE) {
            return read(&word, reply, request, pool.is_shared());
        }
        pool.shared.store(word == head::SHARED, Ordering::Relaxed);
        let (word, reply) = self.ask(&pool, request).await?;
        read(&word, reply, request, pool.is_shared())
    }

    async fn ask(&self, pool: &Known, request: &AcquireRequest) -> Result<(String, Reply), Error> {
        let mut keys = Cow::Borrowed(pool.keys.state());
        if let Some(site) = &request.site {
            keys.to_mut().push(pool.keys.shun(site));
        }
        self.call(pool, &keys, arguments(request, pool.is_shared())).await
    }
}

fn arguments(request: &AcquireRequest, shared: bool) -> Arguments {
    let command = if shared { &ASSIGN } else { &ACQUIRE };
    let mut arguments = Arguments::of(command)
        .micros("ttl_us", request.ttl)
        .micros("cooldown_us", request.expiry_cooldown);
    let prefer = request.prefer.as_ref().map_or("", EndpointId::as_str);
    arguments = arguments
        .number("random", request.random >> 32)
        .text("prefer", prefer)
        .number("tokens", request.tokens.len() as u64);
    for token in &request.tokens {
        arguments = arguments.token("token", token);
    }
    let first = request.exclude.len().saturating_sub(MOST_EXCLUSIONS);
    for id in &request.exclude[first..] {
        arguments = arguments.text("exclude", id.as_str());
    }
    arguments
}

fn read(
    word: &str,
    mut reply: Reply,
    request: &AcquireRequest,
    shared: bool,
) -> Result<AcquireReply, Error> {
    Ok(match word {
        head::GRANTED => AcquireReply::Granted(grants(reply, request, shared)?),
        head::EMPTY => AcquireReply::Empty { next: reply.maybe_time()?, restricted: reply.flag()? },
        head::LOADING => AcquireReply::Loading,
        head::PAUSED => AcquireReply::Paused,
        head::HOLD => AcquireReply::Hold(reply.time()?),
        head::CANCELLED => AcquireReply::Cancelled,
        head::TTL_TOO_LARGE => return Err(large_ttl(request.ttl, &mut reply)),
        _ => return Err(senseless()),
    })
}

fn grants(mut reply: Reply, request: &AcquireRequest, shared: bool) -> Result<Vec<Grant>, Error> {
    let mut grants = Vec::with_capacity(request.tokens.len());
    while !reply.is_empty() {
        let nth: usize = reply.parse()?;
        let endpoint = reply.parse()?;
        let (fence, strikes, remaining) = (Fence(reply.parse()?), reply.count()?, reply.time()?);
        let token =
            *nth.checked_sub(1).and_then(|nth| request.tokens.get(nth)).ok_or_else(senseless)?;
        let term = (!shared).then_some(Term { token, remaining });
        grants.push(Grant::new(endpoint, fence, strikes, term));
    }
    Ok(grants)
}

const MOST_EXCLUSIONS: usize = 256;
