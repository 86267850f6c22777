//! What a pool tells about itself.

use super::{Known, RedisStore};
use crate::error::Error;
use crate::id::{EndpointId, Fence, PoolName};
use crate::redis::commands::{CHECK, LIST, STATUS, STRAY};
use crate::redis::words::{head, order, place};
use crate::redis::{Arguments, Reply, reply::senseless};
use crate::store::{
    ListRequest, MemberState, Mode, Policy, PoolConfig, StandingOrder, State, Status, Violation,
};
use crate::verdict::QuarantineCode;

impl RedisStore {
    /// Looks for contradictions in what is stored of a pool, and for what is stored of no member
    /// ([`strays`](Self::strays)). It is meant for a pool that nobody else is using: it reads a page
    /// at a time.
    ///
    /// # Errors
    /// As [`LeaseStore::list`](crate::LeaseStore::list).
    ///
    /// # Cancel safety
    /// It changes nothing.
    pub async fn check(&self, pool: &PoolName) -> Result<Vec<Violation>, Error> {
        let mut found = Vec::new();
        let known = self.pool(pool);
        let mut after = String::new();
        loop {
            let arguments = Arguments::of(&CHECK)
                .text("orders", &known.keys.orders())
                .text("after", &after)
                .number("limit", CHECKED);
            after = self.look(&known, arguments, &mut found).await?;
            if after.is_empty() {
                break;
            }
        }
        found.extend(self.strays(pool).await?);
        // What is said of the whole pool is said on each page.
        found.sort_by_key(ToString::to_string);
        found.dedup();
        Ok(found)
    }

    /// Looks for what is stored of no member: orders, weights and strikes; and for counts of former
    /// members that are none. An observer may look too.
    ///
    /// # Errors
    /// As [`LeaseStore::list`](crate::LeaseStore::list).
    ///
    /// # Cancel safety
    /// It changes nothing.
    pub async fn strays(&self, pool: &PoolName) -> Result<Vec<Violation>, Error> {
        let (mut found, pool) = (Vec::new(), self.pool(pool));
        for part in KEPT {
            let mut cursor = "0".to_owned();
            while !cursor.is_empty() {
                let arguments = Arguments::of(&STRAY)
                    .text("orders", &pool.keys.orders())
                    .text("part", part)
                    .text("cursor", &cursor);
                cursor = self.look(&pool, arguments, &mut found).await?;
            }
        }
        found.sort_by_key(ToString::to_string);
        found.dedup();
        Ok(found)
    }

    /// Reads a page of findings; says from where the next one is.
    async fn look(
        &self,
        pool: &Known,
        arguments: Arguments,
        found: &mut Vec<Violation>,
    ) -> Result<String, Error> {
        let keys = pool.keys_of(arguments.command());
        let mut reply = self.expect(pool, &keys, arguments, head::CHECKED).await?;
        let next = reply.text()?;
        while !reply.is_empty() {
            let (finding, id) = (reply.text()?.replace('_', " "), reply.text()?);
            found.push(Violation::new(format!("{id} {finding}").trim().to_owned()));
        }
        Ok(next)
    }

    pub(super) async fn count(&self, pool: &PoolName) -> Result<Status, Error> {
        let pool = self.pool(pool);
        let mut reply = self.ask_status(&pool, "", head::STATUS).await?;
        let mut status = Status::empty(config(&mut reply)?);
        status.fence = Fence(reply.parse()?);
        status.paused = reply.flag()?;
        status.hold = Some(reply.time()?).filter(|left| !left.is_zero());
        for count in
            [&mut status.ready, &mut status.cooling, &mut status.leased, &mut status.expired]
        {
            *count = reply.parse()?;
        }
        let (parked, quarantined): (usize, _) = (reply.parse()?, reply.maybe()?);
        status.next = reply.maybe_time()?;
        status.loading = reply.flag()?;
        status.config_version = reply.maybe()?;
        status.quarantined = match quarantined {
            Some(quarantined) => quarantined,
            None => self.quarantined(&pool).await?.min(parked),
        };
        status.disabled = parked.saturating_sub(status.quarantined);
        Ok(status)
    }

    /// Counts the quarantined of many that are parked, some at a time.
    async fn quarantined(&self, pool: &Known) -> Result<usize, Error> {
        let (mut cursor, mut quarantined) = ("0".to_owned(), 0);
        while !cursor.is_empty() {
            let mut reply = self.ask_status(pool, &cursor, head::PARKED).await?;
            cursor = reply.text()?;
            quarantined += reply.parse::<usize>()?;
        }
        Ok(quarantined)
    }

    async fn ask_status(&self, pool: &Known, cursor: &str, head: &str) -> Result<Reply, Error> {
        let orders = pool.keys.orders();
        let arguments = Arguments::of(&STATUS).text("orders", &orders).text("cursor", cursor);
        self.expect(pool, &pool.keys_of(&STATUS), arguments, head).await
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

/// What is kept of members under their ids, beside where they are.
const KEPT: [&str; 4] = ["orders", "weights", "strikes", "former"];

/// Members read by one call.
const PAGE: usize = 250;

/// Members checked by one call, which looks at each of them in more places.
const CHECKED: u64 = 100;
