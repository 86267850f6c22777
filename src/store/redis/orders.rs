//! An administrator's orders.

use super::{Known, RedisStore};
use crate::error::Error;
use crate::id::EndpointId;
use crate::redis::commands::{ADD, DISABLE, ENABLE, INIT, PAUSE, QUARANTINE, REMOVE, RESUME};
use crate::redis::words::{head, order};
use crate::redis::{Arguments, Command};
use crate::store::{AdminReply, AdminRequest, Member, Mode, Order, Policy, PoolConfig, check};

impl RedisStore {
    pub(super) async fn carry_out(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        let pool = self.pool(&request.pool);
        let changed = match request.order {
            Order::Init(config) => self.init(&pool, &config).await?,
            Order::Add(members) => self.add(&pool, &members).await?,
            Order::Remove(ids) => self.each(&pool, &REMOVE, None, &ids).await?,
            Order::Disable(ids) => {
                self.each(&pool, &DISABLE, Some(("order", order::DISABLE)), &ids).await?
            }
            Order::Drain(ids) => {
                self.each(&pool, &DISABLE, Some(("order", order::DRAIN)), &ids).await?
            }
            Order::Enable(ids) => self.each(&pool, &ENABLE, None, &ids).await?,
            Order::Quarantine(ids, code) => {
                self.each(&pool, &QUARANTINE, Some(("code", code.as_str())), &ids).await?
            }
            Order::Pause => self.whole(&pool, &PAUSE, None).await?,
            Order::Resume => self.whole(&pool, &RESUME, Some("pause")).await?,
            Order::EndHold => self.whole(&pool, &RESUME, Some("hold")).await?,
        };
        self.hint(&pool).await;
        Ok(AdminReply::new(changed))
    }

    /// Tells those who wait that an order may have readied something; they ask now and then anyway.
    async fn hint(&self, pool: &Known) {
        let channel = pool.keys.hints();
        let mut hint = redis::cmd("SPUBLISH");
        hint.arg(&channel).arg("");
        if let Err(fault) = self.0.connection.send_to(&channel, hint).await {
            tracing::debug!(pool = %pool.name, reason = %fault, "no hint was given");
        }
    }

    async fn init(&self, pool: &Known, config: &PoolConfig) -> Result<usize, Error> {
        check::config(config)?;
        let mode = match config.mode {
            Mode::Exclusive => "exclusive",
            Mode::Shared => "shared",
        };
        let policy = match config.policy {
            Policy::Earliest => "earliest",
            Policy::LeastAssigned => "least_assigned",
            Policy::Random => "random",
        };
        let arguments = Arguments::of(&INIT)
            .text("mode", mode)
            .text("policy", policy)
            .micros("largest_ttl_us", config.largest_ttl)
            .micros("largest_lifetime_us", config.largest_lifetime)
            .text("failover_hold", if config.failover_hold { "on" } else { "off" });
        self.changed(pool, &pool.keys_of(&INIT), arguments).await
    }

    async fn add(&self, pool: &Known, members: &[Member]) -> Result<usize, Error> {
        check::members(members)?;
        let mut changed = 0;
        for page in pages(members) {
            let mut arguments = Arguments::of(&ADD);
            for Member { endpoint, weight, assignments } in page {
                let arguments_with =
                    arguments.text("id", endpoint.as_str()).number("weight", u64::from(*weight));
                arguments = match assignments {
                    Some(count) => arguments_with.number("assignments", *count),
                    None => arguments_with.text("assignments", ""),
                };
            }
            changed += self.changed(pool, pool.keys.state(), arguments).await?;
        }
        Ok(changed)
    }

    /// Carries an order out on each member.
    async fn each(
        &self,
        pool: &Known,
        command: &'static Command,
        first: Option<(&'static str, &str)>,
        ids: &[EndpointId],
    ) -> Result<usize, Error> {
        let mut changed = 0;
        for page in pages(ids) {
            let mut arguments = Arguments::of(command);
            if let Some((name, word)) = first {
                arguments = arguments.text(name, word);
            }
            for id in page {
                arguments = arguments.text("id", id.as_str());
            }
            changed += self.changed(pool, pool.keys.state(), arguments).await?;
        }
        Ok(changed)
    }

    /// Carries an order out on the pool.
    async fn whole(
        &self,
        pool: &Known,
        command: &'static Command,
        what: Option<&str>,
    ) -> Result<usize, Error> {
        let mut arguments = Arguments::of(command).text("orders", &pool.keys.orders());
        if let Some(what) = what {
            arguments = arguments.text("what", what);
        }
        self.changed(pool, &pool.keys_of(command), arguments).await
    }

    async fn changed(
        &self,
        pool: &Known,
        keys: &[String],
        arguments: Arguments,
    ) -> Result<usize, Error> {
        self.expect(pool, keys, arguments, head::CHANGED).await?.parse()
    }
}

/// Pages of what an order names; one that names nothing is asked for all the same.
fn pages<T>(all: &[T]) -> impl Iterator<Item = &[T]> {
    let nothing = all.is_empty().then_some(all);
    all.chunks(PAGE).chain(nothing)
}

/// Endpoints in one call.
const PAGE: usize = 500;
