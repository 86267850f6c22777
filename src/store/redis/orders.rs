//! An administrator's orders.

use super::{Known, RedisStore};
use crate::error::Error;
use crate::id::{AdminName, EndpointId};
use crate::redis::commands::{
    ADD, DESTROY, DISABLE, ENABLE, END_QUARANTINE, INIT, LOAD, OPEN, PAUSE, QUARANTINE, REMOVE,
    RESUME,
};
use crate::redis::words::{head, order};
use crate::redis::{Arguments, Command};
use crate::store::{AdminReply, AdminRequest, Member, Mode, Order, Policy, Setup, check};

/// Where an order goes and whose it is.
struct Desk<'a> {
    store: &'a RedisStore,
    pool: &'a Known,
    by: Option<AdminName>,
    config_version: Option<u64>,
}

impl RedisStore {
    pub(super) async fn carry_out(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        let AdminRequest { pool, order, by, config_version } = request;
        let pool = self.pool(&pool);
        let desk = Desk { store: self, pool: &pool, by, config_version };
        let changed = desk.carry_out(order).await?;
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
}

impl Desk<'_> {
    async fn carry_out(&self, order: Order) -> Result<usize, Error> {
        match order {
            Order::Init(setup) => self.init(&setup).await,
            Order::Load(members) => self.load(&members).await,
            Order::Open => self.changed(self.order(&OPEN)).await,
            Order::Add(members) => self.add(&members).await,
            Order::Remove(ids) => self.each(&REMOVE, None, &ids).await,
            Order::Disable(ids) => self.each(&DISABLE, Some(("order", order::DISABLE)), &ids).await,
            Order::Drain(ids) => self.each(&DISABLE, Some(("order", order::DRAIN)), &ids).await,
            Order::Enable(ids) => self.each(&ENABLE, None, &ids).await,
            Order::Quarantine(ids, code) => {
                self.each(&QUARANTINE, Some(("code", code.as_str())), &ids).await
            }
            Order::EndQuarantine(ids, code) => {
                self.each(&END_QUARANTINE, Some(("code", code.as_str())), &ids).await
            }
            Order::Pause => self.changed(self.whole(&PAUSE)).await,
            Order::Resume => self.changed(self.whole(&RESUME).text("what", "pause")).await,
            Order::EndHold => self.changed(self.whole(&RESUME).text("what", "hold")).await,
            Order::DestroyPool => self.changed(self.order(&DESTROY)).await,
        }
    }

    async fn init(&self, setup: &Setup) -> Result<usize, Error> {
        let config = &setup.config;
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
        let arguments = self
            .order(&INIT)
            .text("mode", mode)
            .text("policy", policy)
            .micros("largest_ttl_us", config.largest_ttl)
            .micros("largest_lifetime_us", config.largest_lifetime)
            .text("failover_hold", if config.failover_hold { "on" } else { "off" })
            .text("start", if setup.loading { "loading" } else { "open" })
            .text("loss", if setup.after_loss { "after_loss" } else { "none" });
        self.changed(arguments).await
    }

    async fn load(&self, members: &[Member]) -> Result<usize, Error> {
        check::members(members)?;
        let mut changed = 0;
        let mut number = members.len().to_string();
        for page in pages(members, LOADED) {
            let arguments = self.order(&LOAD).text("number", &number);
            changed += self.changed(with_members(arguments, page)).await?;
            // The whole order has been recorded.
            number.clear();
        }
        Ok(changed)
    }

    async fn add(&self, members: &[Member]) -> Result<usize, Error> {
        check::members(members)?;
        let mut changed = 0;
        for page in pages(members, PAGE) {
            changed += self.changed(with_members(self.order(&ADD), page)).await?;
        }
        Ok(changed)
    }

    /// Carries an order out on each member.
    async fn each(
        &self,
        command: &'static Command,
        first: Option<(&'static str, &str)>,
        ids: &[EndpointId],
    ) -> Result<usize, Error> {
        let mut changed = 0;
        for page in pages(ids, PAGE) {
            let mut arguments = self.order(command);
            if let Some((name, word)) = first {
                arguments = arguments.text(name, word);
            }
            for id in page {
                arguments = arguments.text("id", id.as_str());
            }
            changed += self.changed(arguments).await?;
        }
        Ok(changed)
    }

    /// The arguments of an order on the pool.
    fn whole(&self, command: &'static Command) -> Arguments {
        self.order(command).text("orders", &self.pool.keys.orders())
    }

    /// What the arguments of all orders begin with.
    fn order(&self, command: &'static Command) -> Arguments {
        let version = self.config_version.map_or_else(String::new, |version| version.to_string());
        Arguments::of(command)
            .text("by", self.by.as_ref().map_or("", AdminName::as_str))
            .text("config_version", &version)
    }

    async fn changed(&self, arguments: Arguments) -> Result<usize, Error> {
        let keys = self.pool.keys_of(arguments.command());
        self.store.expect(self.pool, &keys, arguments, head::CHANGED).await?.parse()
    }
}

fn with_members(mut arguments: Arguments, members: &[Member]) -> Arguments {
    for Member { endpoint, weight, assignments } in members {
        let weighted = arguments.text("id", endpoint.as_str()).number("weight", u64::from(*weight));
        arguments = match assignments {
            Some(count) => weighted.number("assignments", *count),
            None => weighted.text("assignments", ""),
        };
    }
    arguments
}

/// Pages of what an order names; one that names nothing is asked for all the same.
fn pages<T>(all: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let nothing = all.is_empty().then_some(all);
    all.chunks(most).chain(nothing)
}

/// Endpoints in one call.
const PAGE: usize = 500;

/// The same of a load: in a pool of a million each takes the server about 13 microseconds.
const LOADED: usize = 100;
