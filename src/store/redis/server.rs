//! What a server tells of itself, for those who look after it.

use std::time::{Duration, SystemTime};

use super::RedisStore;
use crate::error::Error;
use crate::id::PoolName;
use crate::redis::Arguments;
use crate::redis::check::Info;
use crate::redis::commands::{REMAINS, REPORT, RIGHTS, SETTINGS};
use crate::redis::words::head;

/// What the server that keeps a pool tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// Make and version, `Redis 7.0.15`.
    pub version: String,
    /// Its clock.
    pub time: SystemTime,
    /// Whether it takes writes of its own.
    pub is_primary: bool,
    /// Whether it keeps an append-only file: without one it loses what came after its last snapshot
    /// when it is restarted.
    pub append_only: bool,
    /// Whether its last write to the append-only file failed.
    pub append_failed: bool,
    /// Whether its last snapshot failed. As it is set up by default, a server then refuses writes.
    pub snapshot_failed: bool,
    /// Its eviction policy, `noeviction`.
    pub eviction: String,
    /// Bytes that it uses.
    pub used_memory: u64,
    /// Most bytes that it may use; `None` when it has no limit of its own.
    pub memory_limit: Option<u64>,
    /// Its replicas.
    pub replicas: Vec<Replica>,
    /// How many of them follow closely enough for a server that takes writes only with some
    /// (`min-replicas-to-write`); `None` of one that takes them without.
    pub good_replicas: Option<u64>,
}

/// A replica, as its primary sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replica {
    /// Whether it follows; `false` while it is still being given a copy.
    pub online: bool,
    /// Time since it was heard of.
    pub lag: Duration,
    /// Bytes of writes that it has not confirmed.
    pub behind: u64,
}

/// What the store's user may do in a pool, by the server's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rights {
    /// Read the pool's state.
    pub read: bool,
    /// See the tokens of leases.
    pub tokens: bool,
    /// Take and give back leases.
    pub lease: bool,
    /// Write an administrator's orders.
    pub order: bool,
    /// Read the trail of orders.
    pub read_trail: bool,
    /// Write the trail of orders.
    pub write_trail: bool,
    /// Reach keys outside of the namespace.
    pub outside: bool,
    /// Administer the server itself: erase all of it, say.
    pub server: bool,
}

/// What a pool's settings look like, also those of a pool that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SettingsReport {
    /// The number of the layout; `None` where there is none.
    pub layout: Option<String>,
    /// The number of the layout that this version writes.
    pub known_layout: u32,
    /// Names of settings that are lost, or are what no version stores.
    pub damaged: Vec<String>,
}

/// The keys that there are of a pool, as far as the user may ask for them: those that hold tokens
/// are not for observers. The trail is told only when it is something else, for it outlasts the
/// pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Remains {
    /// Names of keys of the type that they should have.
    pub sound: Vec<String>,
    /// Names of keys that hold something else.
    pub foreign: Vec<String>,
}

impl Remains {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sound.is_empty() && self.foreign.is_empty()
    }
}

impl RedisStore {
    /// Asks the server that keeps the pool about itself. The pool need not be set up.
    ///
    /// # Errors
    /// As [`LeaseStore::status`](crate::LeaseStore::status).
    ///
    /// # Cancel safety
    /// It changes nothing.
    pub async fn report(&self, pool: &PoolName) -> Result<ServerReport, Error> {
        let pool = self.pool(pool);
        let keys = pool.keys_of(&REPORT);
        let mut reply = self.expect(&pool, &keys, Arguments::of(&REPORT), head::SERVER).await?;
        let time = SystemTime::UNIX_EPOCH + reply.time()?;
        Ok(ServerReport::new(time, &Info::parse(&reply.text()?)))
    }

    /// Asks what this store's user may do in the pool. The pool need not be set up.
    ///
    /// # Errors
    /// As [`LeaseStore::status`](crate::LeaseStore::status); a user who may not even ask is refused.
    ///
    /// # Cancel safety
    /// It changes nothing.
    pub async fn rights(&self, pool: &PoolName) -> Result<Rights, Error> {
        let pool = self.pool(pool);
        let keys = pool.keys_of(&RIGHTS);
        let mut reply = self.expect(&pool, &keys, Arguments::of(&RIGHTS), head::RIGHTS).await?;
        Ok(Rights {
            read: reply.flag()?,
            tokens: reply.flag()?,
            lease: reply.flag()?,
            order: reply.flag()?,
            read_trail: reply.flag()?,
            write_trail: reply.flag()?,
            outside: reply.flag()?,
            server: reply.flag()?,
        })
    }

    /// Tells which settings of a pool are damaged, also of one in another layout.
    ///
    /// # Errors
    /// As [`LeaseStore::status`](crate::LeaseStore::status).
    ///
    /// # Cancel safety
    /// It changes nothing.
    pub async fn settings(&self, pool: &PoolName) -> Result<SettingsReport, Error> {
        let pool = self.pool(pool);
        let keys = pool.keys_of(&SETTINGS);
        let arguments = Arguments::of(&SETTINGS);
        let mut reply = self.expect(&pool, &keys, arguments, head::SETTINGS).await?;
        let layout = Some(reply.text()?).filter(|layout| !layout.is_empty());
        Ok(SettingsReport { layout, known_layout: LAYOUT, damaged: reply.all()? })
    }

    /// Tells which keys there are of a pool, also of one that is not set up.
    ///
    /// # Errors
    /// As [`LeaseStore::status`](crate::LeaseStore::status).
    ///
    /// # Cancel safety
    /// It changes nothing.
    pub async fn remains(&self, pool: &PoolName) -> Result<Remains, Error> {
        let pool = self.pool(pool);
        let keys = pool.keys_of(&REMAINS);
        let mut reply = self.expect(&pool, &keys, Arguments::of(&REMAINS), head::REMAINS).await?;
        let mut remains = Remains::default();
        while !reply.is_empty() {
            let (name, kind) = (reply.text()?, reply.text()?);
            let expected = match name.as_str() {
                TRAIL => "stream",
                name if HASHES.contains(&name) => "hash",
                _ => "zset",
            };
            if kind != expected {
                remains.foreign.push(name);
            } else if name != TRAIL {
                remains.sound.push(name);
            }
        }
        Ok(remains)
    }
}

/// Those of a pool's keys that are hashes; the others are sorted sets.
const HASHES: [&str; 7] = ["meta", "parked", "weights", "strikes", "former", "orders", "requests"];

const TRAIL: &str = "audit";

/// `SCHEMA` of the scripts.
const LAYOUT: u32 = 1;

impl ServerReport {
    fn new(time: SystemTime, info: &Info) -> Self {
        let number = |name: &str| info.field(name).parse::<u64>().ok();
        let offset = number("master_repl_offset").unwrap_or(0);
        let replica = |nth: u64| Replica::parse(info.field(&format!("slave{nth}")), offset);
        Self {
            version: info.name().unwrap_or_default(),
            time,
            is_primary: info.is_primary(),
            append_only: info.field("aof_enabled") != "0",
            append_failed: info.field("aof_last_write_status") == "err",
            snapshot_failed: info.field("rdb_last_bgsave_status") == "err",
            eviction: info.field("maxmemory_policy").to_owned(),
            used_memory: number("used_memory").unwrap_or(0),
            memory_limit: number("maxmemory").filter(|limit| *limit > 0),
            good_replicas: number("min_slaves_good_slaves"),
            replicas: (0..number("connected_slaves").unwrap_or(0)).map(replica).collect(),
        }
    }
}

impl Replica {
    /// A replica, for tests of what looks at it.
    pub const fn new(online: bool, lag: Duration, behind: u64) -> Self {
        Self { online, lag, behind }
    }

    /// Reads `ip=..,port=..,state=online,offset=123,lag=0`.
    fn parse(text: &str, primary: u64) -> Self {
        let field = |name: &str| {
            text.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name| field(name).and_then(|text| text.parse().ok());
        Self {
            online: field("state") == Some("online"),
            lag: Duration::from_secs(number("lag").unwrap_or(0)),
            behind: primary.saturating_sub(number("offset").unwrap_or(primary)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_from_what_servers_say() {
        let info = Info::parse(
            "redis_version:7.0.15\r\nrole:master\r\naof_enabled:0\r\naof_last_write_status:ok\r\n\
             rdb_last_bgsave_status:err\r\nmaxmemory_policy:volatile-lru\r\nused_memory:900\r\n\
             maxmemory:1000\r\nconnected_slaves:2\r\nmaster_repl_offset:500\r\n\
             slave0:ip=10.0.0.1,port=1,state=online,offset=480,lag=1\r\n\
             slave1:ip=10.0.0.2,port=1,state=wait_bgsave,offset=0,lag=0\r\n",
        );
        let report = ServerReport::new(SystemTime::UNIX_EPOCH, &info);
        assert_eq!(report.version, "Redis 7.0.15");
        assert!(report.is_primary && !report.append_only && !report.append_failed);
        assert!(report.snapshot_failed);
        assert_eq!((report.used_memory, report.memory_limit), (900, Some(1000)));
        let lag = Duration::from_secs(1);
        let (first, second) = (&report.replicas[0], &report.replicas[1]);
        assert_eq!((first.online, first.lag, first.behind), (true, lag, 20));
        assert_eq!((second.online, second.behind), (false, 500));
    }
}
