//! A store in this process's memory.

mod acquire;
mod end;
mod members;
mod moment;
mod orders;
mod pool;
mod ready;
mod report;
mod shuns;
mod slot;
mod tombstones;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch;

use self::pool::Pool;
use super::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, CancelReply, CancelRequest, LeaseStore,
    ListRequest, MAX_SWEEP, MemberState, Order, PoolConfig, ReapReply, ReapRequest, ReleaseReply,
    ReleaseRequest, RenewReply, RenewRequest, Status, check,
};
use crate::error::Error;
use crate::id::PoolName;

/// Pools of one process.
///
/// Leases are exact among the tasks of this process, and unknown to every other one; they end
/// with it. Clones share their pools. Time is tokio's, so that tests can pause it.
///
/// Every call answers at its first poll. A grant takes time in the number of endpoints that are
/// ready but excluded or shunned for the request, and otherwise in its logarithm at most.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use reqwest_lease::{
///     AcquireReply, AcquireRequest, AdminRequest, EndpointId, LeaseStore, Member, MemoryStore,
///     Order, PoolConfig, PoolName, Token,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let pool = PoolName::new("vn")?;
/// let members = vec![Member::new(EndpointId::new("vn-a01")?)];
/// for order in [Order::Init(PoolConfig::default()), Order::Add(members)] {
///     store.administer(AdminRequest::new(pool.clone(), order)).await?;
/// }
///
/// let ttl = Duration::from_secs(30);
/// let reply = store.acquire(AcquireRequest::new(pool, Token::random(), ttl)).await?;
/// let AcquireReply::Granted(grants) = reply else { panic!("{reply:?}") };
/// assert_eq!(grants[0].endpoint.as_str(), "vn-a01");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    pools: Arc<RwLock<HashMap<PoolName, Mutex<Pool>>>>,
    /// Counts hints; they are for all pools of the store.
    hints: watch::Sender<u64>,
}

impl MemoryStore {
    /// A store without pools.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(
        &self,
        name: &PoolName,
        call: impl FnOnce(&mut Pool) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.get(name).ok_or_else(|| check::uninitialised(name))?;
        call(&mut pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells those who wait that something may have come free.
    fn hint(&self) {
        self.hints.send_modify(|hints| *hints += 1);
    }

    fn init(&self, name: PoolName, config: PoolConfig) -> Result<AdminReply, Error> {
        check::config(&config)?;
        match self.pools.write().unwrap_or_else(PoisonError::into_inner).entry(name) {
            Entry::Occupied(entry) => Err(check::exists(entry.key())),
            Entry::Vacant(entry) => {
                entry.insert(Mutex::new(Pool::new(config)));
                Ok(AdminReply::new(1))
            }
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error> {
        self.with(&request.pool, |pool| pool.acquire(&request))
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        self.with(&request.pool, |pool| pool.renew(&request))
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        let replies = self.with(&request.pool, |pool| pool.release(&request));
        if request.hint {
            self.hint();
        }
        replies
    }

    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
        self.with(&request.pool, |pool| Ok(pool.cancel(&request)))
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        self.with(&request.pool, |pool| Ok(pool.reap()))
    }

    async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
        self.with(pool, |pool| Ok(pool.status()))
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        self.with(&request.pool, |pool| Ok(pool.list(&request)))
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        let reply = match request.order {
            Order::Init(config) => self.init(request.pool, config),
            order => self.with(&request.pool, |pool| pool.carry_out(&request.pool, order)),
        };
        self.hint();
        reply
    }

    fn hints(&self, _: &PoolName) -> Option<BoxStream<'static, ()>> {
        let next = |mut hints: watch::Receiver<u64>| async {
            hints.changed().await.ok()?;
            Some(((), hints))
        };
        Some(stream::unfold(self.hints.subscribe(), next).boxed())
    }

    fn answers_at_once(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
pub(super) mod random;
#[cfg(test)]
mod tests;
