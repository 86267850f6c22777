//! What every store refuses before it changes anything.

use std::collections::HashSet;
use std::time::Duration;

use super::{
    AcquireRequest, MAX_ASSIGNMENTS, MAX_BATCH, MAX_WEIGHT, Member, PoolConfig, ReleaseRequest,
};
use crate::error::Error;
use crate::id::PoolName;
use crate::secret::Token;

pub(crate) fn acquire(request: &AcquireRequest, config: &PoolConfig) -> Result<(), Error> {
    tokens(&request.tokens)?;
    ttl(request.ttl, config)
}

pub(crate) fn tokens(tokens: &[Token]) -> Result<(), Error> {
    batch(tokens.len(), "an acquire", "tokens")?;
    if tokens.iter().enumerate().any(|(nth, token)| tokens[..nth].contains(token)) {
        return Err(invalid("an acquire names a token twice"));
    }
    Ok(())
}

pub(crate) fn release(request: &ReleaseRequest) -> Result<(), Error> {
    batch(request.releases.len(), "a release", "leases")
}

pub(crate) fn ttl(ttl: Duration, config: &PoolConfig) -> Result<(), Error> {
    some_ttl(ttl)?;
    match ttl > config.largest_ttl {
        true => Err(large_ttl(ttl, config.largest_ttl)),
        false => Ok(()),
    }
}

pub(crate) fn some_ttl(ttl: Duration) -> Result<(), Error> {
    match ttl.is_zero() {
        true => Err(invalid("a ttl must be above zero")),
        false => Ok(()),
    }
}

pub(crate) fn large_ttl(ttl: Duration, largest: Duration) -> Error {
    invalid(format!("the ttl {ttl:?} is over the pool's largest, {largest:?}"))
}

/// Sums of times and instants stay representable.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

pub(crate) fn config(config: &PoolConfig) -> Result<(), Error> {
    let PoolConfig { largest_ttl, largest_lifetime, .. } = *config;
    if largest_ttl.is_zero() {
        return Err(invalid("a pool's largest ttl must be above zero"));
    }
    if largest_lifetime > LONGEST {
        return Err(invalid("a pool's largest lifetime is over 365 days"));
    }
    if largest_lifetime < largest_ttl {
        return Err(invalid(format!(
            "the largest lifetime {largest_lifetime:?} is below the largest ttl {largest_ttl:?}"
        )));
    }
    Ok(())
}

pub(crate) fn members(members: &[Member]) -> Result<(), Error> {
    let mut seen = HashSet::with_capacity(members.len());
    for Member { endpoint, weight, assignments } in members {
        if !(1..=MAX_WEIGHT).contains(weight) {
            return Err(invalid(format!(
                "endpoint {endpoint} has weight {weight}; weights go from 1 to {MAX_WEIGHT}"
            )));
        }
        if assignments.is_some_and(|count| count > MAX_ASSIGNMENTS) {
            return Err(invalid(format!(
                "endpoint {endpoint} starts with more than {MAX_ASSIGNMENTS} assignments"
            )));
        }
        if !seen.insert(endpoint) {
            return Err(invalid(format!("endpoint {endpoint} is named twice")));
        }
    }
    Ok(())
}

pub(crate) fn unknown(pool: &PoolName, endpoint: &str) -> Error {
    invalid(format!("pool {pool} has no endpoint {endpoint}"))
}

pub(crate) fn exists(pool: &PoolName) -> Error {
    invalid(format!("pool {pool} has been set up before"))
}

/// What is left of a pool that has lost its configuration, by the names of its parts.
#[cfg(feature = "redis")]
pub(crate) fn leftovers(pool: &PoolName, parts: &[String]) -> Error {
    invalid(format!(
        "pool {pool} is not set up and has state ({}): restore it, or erase it with DestroyPool and \
         set the pool up after a loss",
        parts.join(", ")
    ))
}

pub(crate) fn open(pool: &PoolName) -> Error {
    invalid(format!("pool {pool} is open: what it lacks can be added, not loaded"))
}

pub(crate) fn begun_otherwise(pool: &PoolName) -> Error {
    invalid(format!(
        "pool {pool} is being loaded with other settings: go on with those, or erase it with \
         DestroyPool"
    ))
}

pub(crate) fn in_use(pool: &PoolName) -> Error {
    invalid(format!("pool {pool} is in use: only a paused pool can be destroyed"))
}

pub(crate) fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::invalid_call(message)
}

pub(crate) fn uninitialised(pool: &PoolName) -> Error {
    Error::pool_uninitialised(pool)
}

fn batch(number: usize, call: &str, what: &str) -> Result<(), Error> {
    if (1..=MAX_BATCH).contains(&number) {
        return Ok(());
    }
    Err(invalid(format!("{call} has 1 to {MAX_BATCH} {what}, not {number}")))
}
