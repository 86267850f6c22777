//! A store in Redis or Valkey, for any number of processes.

mod acquire;
mod audit;
mod builder;
mod end;
mod orders;
mod repair;
mod report;
mod server;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

pub use self::builder::RedisStoreBuilder;
pub use self::server::{Remains, Replica, Rights, ServerReport, SettingsReport};
use super::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, LeaseStore, ListRequest, MemberState, ReapReply, ReapRequest, ReleaseReply,
    ReleaseRequest, RenewReply, RenewRequest, Status, check,
};
use crate::error::{Error, Kind};
use crate::id::PoolName;
use crate::redis::handle::Handle;
use crate::redis::hints;
use crate::redis::words::head;
use crate::redis::{Arguments, Call, ConnectOptions, Connection, Namespace, PoolKeys, Reply};
use crate::secret::Secret;

/// Pools in Redis 7.0 or newer, or in Valkey 7.2 or newer.
///
/// Any number of processes share a pool. Each call is one script, so that it takes place wholly or
/// not at all, by the server's clock. The store keeps ids, tokens and times; never a URL or a
/// password of an endpoint.
///
/// It is safe on one primary. After a failover or a restart that lost the last grants, the pool
/// grants nothing for its largest ttl ([`PoolConfig::failover_hold`](crate::PoolConfig)), so that
/// they have run out. It is not safe on servers with several writers (active-active replication).
///
/// Leases end by the clock of the server: a step of it ends them early or late by as much, so it is
/// to be slewed and not set. In a cluster, while the slot of a pool moves, calls that meet only a part
/// of it wait and then fail as unavailable; the node that it has moved to begins with the same hold,
/// which [`Order::EndHold`](crate::Order::EndHold) ends: all leases have moved along.
///
/// What differs from [`MemoryStore`](crate::MemoryStore):
/// - Times are whole microseconds, rounded up, and at most 142 years.
/// - An acquire, of one token or a batch, looks at no more than 256 ready endpoints while they are
///   excluded or shunned: half of them from the head and half from a place drawn by the request's
///   number, in a pool of random order all from such places; and at no more than 256 exclusions, the
///   last ones.
/// - An order on more than 500 endpoints takes place 500 at a time, and is recorded as often; a load
///   100 at a time, recorded once, at its start.
/// - The trail of orders keeps a little more than the last 10,000.
/// - The shuns of an endpoint outlast its removal.
/// - A cancel takes back a lease of its token that has run out.
///
/// Clones share one connection.
///
/// # Examples
/// ```no_run
/// use reqwest_lease::{Inventory, Pool, PoolName, RedisStore};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::connect("redis://127.0.0.1").await?;
/// let inventory = Inventory::from_file("proxies.toml").await?;
/// let pool = Pool::builder(PoolName::new("vn")?, inventory).store(store).build().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    connection: Connection,
    namespace: Namespace,
    pools: RwLock<HashMap<PoolName, Arc<Known>>>,
}

/// What is known of a pool without asking.
struct Known {
    name: PoolName,
    keys: PoolKeys,
    /// Its mode as far as it was told.
    shared: AtomicBool,
}

impl RedisStore {
    /// Connects to the server of this URL, with default settings.
    ///
    /// # Errors
    /// As [`RedisStoreBuilder::build`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(url: impl Into<String>) -> Result<Self, Error> {
        Self::builder(url).build().await
    }

    /// Settings for a connection to the server of this URL: `redis://user:password@host:port/db`.
    pub fn builder(url: impl Into<String>) -> RedisStoreBuilder {
        RedisStoreBuilder::new(ConnectOptions::new(Secret::new(url)))
    }

    /// Settings for a connection to the primary that Sentinels name, asked for again at every
    /// reconnect: their URLs, the name that they watch the primary by, and the primary's own URL,
    /// of which they replace host and port.
    #[cfg(feature = "redis-sentinel")]
    pub fn sentinel(
        sentinels: impl IntoIterator<Item = impl Into<String>>,
        service: impl Into<String>,
        primary: impl Into<String>,
    ) -> RedisStoreBuilder {
        let sentinels = sentinels.into_iter().map(Secret::new).collect();
        RedisStoreBuilder::new(ConnectOptions::sentinel(sentinels, service, Secret::new(primary)))
    }

    /// Settings for a connection to a cluster of which these are some nodes. A pool is in one
    /// slot, so each call goes to one node.
    #[cfg(feature = "redis-cluster")]
    pub fn cluster(nodes: impl IntoIterator<Item = impl Into<String>>) -> RedisStoreBuilder {
        let seeds = nodes.into_iter().map(Secret::new).collect();
        RedisStoreBuilder::new(ConnectOptions::cluster(seeds))
    }

    /// The connection with its namespace, for [`SharedLimits`](crate::SharedLimits): site budgets
    /// in the same Redis.
    pub fn connection(&self) -> Handle {
        let Inner { connection, namespace, .. } = &*self.0;
        Handle { connection: connection.clone(), namespace: namespace.clone() }
    }

    fn new(connection: Connection, namespace: Namespace) -> Self {
        Self(Arc::new(Inner { connection, namespace, pools: RwLock::default() }))
    }

    fn pool(&self, name: &PoolName) -> Arc<Known> {
        let pools = self.0.pools.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(name) {
            return Arc::clone(pool);
        }
        drop(pools);
        let mut pools = self.0.pools.write().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.entry(name.clone()).or_insert_with(|| {
            let keys = PoolKeys::new(&self.0.namespace, name);
            Arc::new(Known { name: name.clone(), keys, shared: AtomicBool::new(false) })
        });
        Arc::clone(pool)
    }

    /// Calls a script; gives the first word of its reply and the rest.
    async fn call(
        &self,
        pool: &Known,
        keys: &[String],
        arguments: Arguments,
    ) -> Result<(String, Reply), Error> {
        let (command, args) = arguments.finish();
        let call = Call { script: &command.script, keys, args: &args };
        let mut reply = Reply::new(self.0.connection.call(call).await?)?;
        let word = reply.text()?;
        match word.as_str() {
            head::UNINITIALISED => Err(check::uninitialised(&pool.name)),
            head::TOO_NEW => Err(too_new(&pool.name)),
            head::UNKNOWN => Err(check::unknown(&pool.name, &reply.text()?)),
            head::EXISTS => Err(check::exists(&pool.name)),
            head::LEFTOVERS => Err(check::leftovers(&pool.name, &reply.all()?)),
            head::OPEN => Err(check::open(&pool.name)),
            head::IN_USE => Err(check::in_use(&pool.name)),
            _ => Ok((word, reply)),
        }
    }

    /// Calls a script whose only good reply begins with this word.
    async fn expect(
        &self,
        pool: &Known,
        keys: &[String],
        arguments: Arguments,
        head: &str,
    ) -> Result<Reply, Error> {
        match self.call(pool, keys, arguments).await? {
            (word, reply) if word == head => Ok(reply),
            _ => Err(crate::redis::reply::senseless()),
        }
    }
}

impl Known {
    fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    fn keys_of(&self, command: &crate::redis::Command) -> Vec<String> {
        command.keys.iter().map(|name| self.keys.key(name)).collect()
    }
}

fn too_new(pool: &PoolName) -> Error {
    Error::new(
        Kind::PoolTooNew,
        format!("the state of pool {pool} is in a layout that this version does not know"),
    )
}

/// A ttl that the pool does not allow.
fn large_ttl(ttl: Duration, reply: &mut Reply) -> Error {
    reply.time().map_or_else(|error| error, |largest| check::large_ttl(ttl, largest))
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("namespace", &self.0.namespace).finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseStore for RedisStore {
    async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error> {
        self.grant(&request).await
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        self.extend(&request).await
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        self.end(&request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
        self.give_up(&request).await
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        self.sweep(&request.pool).await
    }

    async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
        self.count(pool).await
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        self.page(&request).await
    }

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        self.trail(&request).await
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        self.carry_out(request).await
    }

    fn hints(&self, pool: &PoolName) -> Option<BoxStream<'static, ()>> {
        let channel = self.pool(pool).keys.hints();
        Some(hints::listen(self.0.connection.clone(), channel))
    }
}

#[cfg(test)]
mod tests;
