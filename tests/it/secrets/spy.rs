//! A store that shows every call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, Claim, Error, Inventory, LeaseStore, ListRequest, Member, MemberState,
    MemoryStore, Order, Pool, PoolBuilder, PoolConfig, PoolName, ReapReply, ReapRequest,
    ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Status,
};

use super::tell;

/// A memory store whose tokens are noted and whose calls are told; it fails when told to.
#[derive(Clone, Default)]
pub(super) struct Spy {
    inner: MemoryStore,
    down: Arc<AtomicBool>,
}

impl Spy {
    /// A pool in this store, set up with the inventory's endpoints.
    pub(super) async fn pool(&self, inventory: Inventory) -> PoolBuilder {
        let name = PoolName::new("told").unwrap();
        let members = inventory.snapshot();
        let members = members.iter().map(|endpoint| Member::new(endpoint.id().clone())).collect();
        for order in [Order::Init(PoolConfig::default().into()), Order::Add(members)] {
            self.administer(AdminRequest::new(name.clone(), order)).await.unwrap();
        }
        Pool::builder(name, inventory).store(self.clone())
    }

    /// Whether all calls fail from now on.
    pub(super) fn goes_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    fn told<T: std::fmt::Debug>(&self, reply: Result<T, Error>) -> Result<T, Error> {
        let reply = match self.down.load(Ordering::SeqCst) {
            true => Err(Error::store_unavailable("the store is down")),
            false => reply,
        };
        tell::value("reply", &reply);
        reply
    }
}

#[async_trait]
impl LeaseStore for Spy {
    async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error> {
        request.tokens.iter().copied().for_each(tell::token);
        tell::value("acquire", &request);
        let reply = self.told(self.inner.acquire(request).await);
        if let Ok(AcquireReply::Granted(grants)) = &reply {
            for grant in grants {
                tell::value("grant", &(grant, grant.term, grant.claim()));
            }
        }
        reply
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        tell::value("renew", &request);
        self.told(self.inner.renew(request).await)
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        for release in &request.releases {
            if let Claim::Lease(token) = release.claim {
                tell::token(token);
            }
        }
        tell::value("release", &request);
        tell::value("store", &self.inner);
        self.told(self.inner.release(request).await)
    }

    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
        tell::value("cancel", &request);
        self.told(self.inner.cancel(request).await)
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        self.told(self.inner.reap(request).await)
    }

    async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
        self.told(self.inner.status(pool).await)
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        self.told(self.inner.list(request).await)
    }

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        self.told(self.inner.audit(request).await)
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        self.told(self.inner.administer(request).await)
    }
}
