//! Putting a damaged pool in order, and erasing the trail of one that is gone.

use super::{Known, RedisStore};
use crate::error::Error;
use crate::id::{AdminName, PoolName};
use crate::redis::commands::{ADOPT, FORGET, MEND};
use crate::redis::words::head;
use crate::redis::{Arguments, Command};

impl RedisStore {
    /// Mends what [`check`](Self::check) finds, as far as that is safe while the pool is in use, and
    /// records it in the trail; says how many repairs it made.
    ///
    /// A lease before its deadline that its holder can give back stays. An endpoint that somebody
    /// could still be using rests for the largest ttl; one that no member stands behind becomes a
    /// member that is disabled; what contradicts a standing order follows it. Numbers and words that
    /// no call stores become the safe ones: a time the end of a rest, an order one to disable, a
    /// reason a quarantine. What is kept of no member is erased.
    ///
    /// # Errors
    /// As [`LeaseStore::administer`](crate::LeaseStore::administer).
    ///
    /// # Cancel safety
    /// Repairs are made some at a time; a dropped future leaves those that were made, and calling
    /// again goes on.
    pub async fn repair(&self, pool: &PoolName, by: Option<AdminName>) -> Result<usize, Error> {
        let pool = self.pool(pool);
        let mut mended = 0;
        for part in PLACES {
            mended += self.adopt(&pool, by.as_ref(), part).await?;
        }
        mended += self.mend(&pool, by.as_ref()).await?;
        for part in REST {
            mended += self.adopt(&pool, by.as_ref(), part).await?;
        }
        Ok(mended)
    }

    /// Goes through one key for what nothing stands behind.
    async fn adopt(
        &self,
        pool: &Known,
        by: Option<&AdminName>,
        part: &str,
    ) -> Result<usize, Error> {
        let (mut mended, mut cursor) = (0, "0".to_owned());
        while !cursor.is_empty() {
            let arguments = begin(&ADOPT, by).text("part", part).text("cursor", &cursor);
            (cursor, mended) = self.step(pool, arguments, mended).await?;
        }
        Ok(mended)
    }

    /// Goes through the members.
    async fn mend(&self, pool: &Known, by: Option<&AdminName>) -> Result<usize, Error> {
        let (mut mended, mut after) = (0, String::new());
        loop {
            let arguments = begin(&MEND, by).text("after", &after).number("limit", PAGE);
            (after, mended) = self.step(pool, arguments, mended).await?;
            if after.is_empty() {
                return Ok(mended);
            }
        }
    }

    async fn step(
        &self,
        pool: &Known,
        arguments: Arguments,
        mended: usize,
    ) -> Result<(String, usize), Error> {
        let keys = pool.keys_of(arguments.command());
        let mut reply = self.expect(pool, &keys, arguments, head::MENDED).await?;
        Ok((reply.text()?, mended + reply.parse::<usize>()?))
    }

    /// Erases the trail of a pool that is not set up: of one that was only there for a trial. Says
    /// whether there was one.
    ///
    /// # Errors
    /// [`InvalidCall`](crate::Kind::InvalidCall) while the pool is set up, else as
    /// [`LeaseStore::administer`](crate::LeaseStore::administer).
    ///
    /// # Cancel safety
    /// A dropped future leaves it unknown whether it was erased.
    pub async fn forget_trail(&self, pool: &PoolName) -> Result<bool, Error> {
        let pool = self.pool(pool);
        let keys = pool.keys_of(&FORGET);
        let mut reply = self.expect(&pool, &keys, Arguments::of(&FORGET), head::CHANGED).await?;
        reply.flag()
    }
}

/// What the arguments of a repair begin with.
fn begin(command: &'static Command, by: Option<&AdminName>) -> Arguments {
    let by = by.map_or("", AdminName::as_str);
    Arguments::of(command).text("by", by).text("config_version", "")
}

/// Where members are, and who holds them, before members are looked at.
const PLACES: [&str; 5] = ["ready", "cooling", "leases", "parked", "claims"];

/// What goes by members and leases, after they are in order.
const REST: [&str; 7] = ["uses", "strikes", "weights", "orders", "former", "requests", "cancelled"];

/// Members mended by one call.
const PAGE: u64 = 100;
