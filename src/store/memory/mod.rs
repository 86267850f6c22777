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
mod trail;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch;

use self::pool::Pool;
use self::trail::Trail;
use super::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, LeaseStore, ListRequest, MAX_SWEEP, MemberState, Order, ReapReply, ReapRequest,
    ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Status, check,
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
/// for order in [Order::Init(PoolConfig::default().into()), Order::Add(members)] {
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
    pools: Arc<RwLock<HashMap<PoolName, Mutex<Kept>>>>,
    /// Counts hints; they are for all pools of the store.
    hints: watch::Sender<u64>,
}

/// A pool, and the trail of its orders, which outlasts it.
#[derive(Default)]
struct Kept {
    pool: Option<Pool>,
    trail: Trail,
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
        self.with_kept(name, |kept| match &mut kept.pool {
            Some(pool) => call(pool),
            None => Err(check::uninitialised(name)),
        })
    }

    /// Tells those who wait that something may have come free.
    fn hint(&self) {
        self.hints.send_modify(|hints| *hints += 1);
    }

    fn with_kept<T>(
        &self,
        name: &PoolName,
        call: impl FnOnce(&mut Kept) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let kept = pools.get(name).ok_or_else(|| check::uninitialised(name))?;
        call(&mut kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes room for a pool that an order may set up.
    fn know(&self, name: &PoolName) {
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        pools.entry(name.clone()).or_default();
    }
}

impl Kept {
    /// Carries an order out and records it, if it is not refused.
    fn administer(&mut self, request: &AdminRequest) -> Result<AdminReply, Error> {
        let AdminRequest { pool: name, order, by, config_version } = request;
        let mut entry = AuditEntry::new(self.trail.next(), order);
        entry.by.clone_from(by);
        entry.config_version = *config_version;
        let changed = match (order, &mut self.pool) {
            (Order::Init(_), Some(_)) => return Err(check::exists(name)),
            (Order::Init(setup), none) => {
                *none = Some(Pool::new(setup));
                1
            }
            (_, None) => return Err(check::uninitialised(name)),
            (Order::DestroyPool, Some(pool)) if pool.is_in_use() => {
                return Err(check::in_use(name));
            }
            (Order::DestroyPool, pool) => {
                *pool = None;
                1
            }
            (order, Some(pool)) => pool.carry_out(name, order)?,
        };
        if let (Some(pool), Some(_)) = (&mut self.pool, config_version) {
            pool.config_version = *config_version;
        }
        self.trail.record(entry);
        Ok(AdminReply::new(changed))
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

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        self.with_kept(&request.pool, |kept| match (&kept.pool, kept.trail.is_empty()) {
            (None, true) => Err(check::uninitialised(&request.pool)),
            _ => Ok(kept.trail.page(request.before, request.limit)),
        })
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        if let Order::Init(setup) = &request.order {
            check::config(&setup.config)?;
            self.know(&request.pool);
        }
        let reply = self.with_kept(&request.pool, |kept| kept.administer(&request));
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
