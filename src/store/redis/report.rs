//! What a pool tells about itself.

use super::RedisStore;
use crate::error::Error;
use crate::id::{EndpointId, Fence, PoolName};
use crate::redis::commands::{CHECK, LIST, STATUS};
use crate::redis::words::{head, order, place};
use crate::redis::{Arguments, Reply, reply::senseless};
use crate::store::{
    ListRequest, MemberState, Mode, Policy, PoolConfig, StandingOrder, State, Status, Violation,
};
use crate::verdict::QuarantineCode;

impl RedisStore {
    /// Looks for contradictions in what is stored of a pool. It is meant for a pool that nobody
    /// else is using: it reads a page at a time.
    ///
    /// # Errors
    /// As [`LeaseStore::list`](crate::LeaseStore::list).
    ///
    /// # Cancel safety
    /// It changes nothing.
    pub async fn check(&self, pool: &PoolName) -> Result<Vec<Violation>, Error> {
        let pool = self.pool(pool);
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let arguments = Arguments::of(&CHECK)
                .text("orders", &pool.keys.orders())
                .text("after", &after)
                .number("limit", CHECKED);
            let keys = pool.keys_of(&CHECK);
            let mut reply = self.expect(&pool, &keys, arguments, head::CHECKED).await?;
            after = reply.text()?;
            while !reply.is_empty() {
                let (finding, id) = (reply.text()?.replace('_', " "), reply.text()?);
                found.push(Violation::new(format!("{id} {finding}").trim().to_owned()));
            }
            if after.is_empty() {
                // What is said of the whole pool is said on each page.
                found.sort_by_key(ToString::to_string);
                found.dedup();
                return Ok(found);
            }
        }
    }

    pub(super) async fn count(&self, pool: &PoolName) -> Result<Status, Error> {
        let pool = self.pool(pool);
        let arguments = Arguments::of(&STATUS).text("orders", &pool.keys.orders());
        let keys = pool.keys_of(&STATUS);
        let mut reply = self.expect(&pool, &keys, arguments, head::STATUS).await?;
        let mut status = Status::empty(config(&mut reply)?);
        status.fence = Fence(reply.parse()?);
        status.paused = reply.flag()?;
        status.hold = Some(reply.time()?).filter(|left| !left.is_zero());
        for count in [
            &mut status.ready,
            &mut status.cooling,
            &mut status.leased,
            &mut status.expired,
            &mut status.disabled,
            &mut status.quarantined,
        ] {
            *count = reply.parse()?;
        }
        status.next = reply.maybe_time()?;
        status.loading = reply.flag()?;
        status.config_version = reply.maybe()?;
        Ok(status)
    }

    pub(super) async fn page(&self, request: &ListRequest) -> Result<Vec<MemberState>, Error> {
        let pool = self.pool(&request.pool);
        let mut members = Vec::new();
        let mut after = request.after.clone();
        loop {
            let limit = PAGE.min(request.limit - members.len());
            let arguments = Arguments::of(&LIST)
                .text("orders", &pool.keys.orders())
                .text("after", after.as_ref().map_or("", EndpointId::as_str))
                .number("limit", limit as u64);
            let keys = pool.keys_of(&LIST);
            let mut reply = self.expect(&pool, &keys, arguments, head::MEMBERS).await?;
            let before = members.len();
            while !reply.is_empty() {
                members.push(member(&mut reply)?);
            }
            if members.len() - before < PAGE || members.len() == request.limit {
                return Ok(members);
            }
            after = members.last().map(|member| member.endpoint.clone());
        }
    }
}

fn config(reply: &mut Reply) -> Result<PoolConfig, Error> {
    Ok(PoolConfig {
        mode: match reply.text()?.as_str() {
            "exclusive" => Mode::Exclusive,
            "shared" => Mode::Shared,
            _ => return Err(senseless()),
        },
        policy: match reply.text()?.as_str() {
            "earliest" => Policy::Earliest,
            "least_assigned" => Policy::LeastAssigned,
            "random" => Policy::Random,
            _ => return Err(senseless()),
        },
        largest_ttl: reply.time()?,
        largest_lifetime: reply.time()?,
        failover_hold: reply.text()? == "on",
    })
}

fn member(reply: &mut Reply) -> Result<MemberState, Error> {
    let endpoint = reply.parse()?;
    let (place, left, order) = (reply.text()?, reply.time()?, reply.text()?);
    let mut member = MemberState::new(endpoint, reply.parse()?);
    member.state = match place.as_str() {
        place::READY => State::Ready,
        place::COOLING => State::Cooling(left),
        place::LEASED if left.is_zero() => State::Expired,
        place::LEASED => State::Leased(left),
        place::DISABLED => State::Disabled,
        place::LOST => State::Lost,
        place => State::Quarantined(code(place.strip_prefix(place::QUARANTINED))?),
    };
    member.order = match order.as_str() {
        "" => None,
        order::DISABLE => Some(StandingOrder::Disable),
        order::DRAIN => Some(StandingOrder::Drain),
        order::REMOVE => Some(StandingOrder::Remove),
        order => Some(StandingOrder::Quarantine(code(order.strip_prefix(order::QUARANTINE))?)),
    };
    member.assignments = reply.parse()?;
    member.strikes = reply.count()?;
    Ok(member)
}

fn code(word: Option<&str>) -> Result<QuarantineCode, Error> {
    let known = [QuarantineCode::Credentials, QuarantineCode::Probe, QuarantineCode::Administrator];
    known.into_iter().find(|code| Some(code.as_str()) == word).ok_or_else(senseless)
}

/// Members read by one call.
const PAGE: usize = 500;

/// Members checked by one call, which looks at each of them in more places.
const CHECKED: u64 = 250;
