//! The roles of Redis users: a pool works under them, and each does no more than it is for.

mod refused;

use std::time::Duration;

use reqwest_lease::conformance::{self, Fixture};
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, Error, LeaseStore, ListRequest, MemberState, PoolName, ReapReply, ReapRequest,
    RedisRole, RedisStore, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Status,
};

use crate::support::redis::{PATIENCE, Redis};

/// A store that asks as a worker, an administrator or an observer, by what is asked.
pub(crate) struct Roles {
    pub(crate) redis: Redis,
    pub(crate) worker: RedisStore,
    administrator: RedisStore,
    observer: RedisStore,
}

impl Roles {
    pub(crate) async fn new() -> Self {
        let redis = Redis::new().await;
        let worker = store(&redis, RedisRole::Worker).await;
        let administrator = store(&redis, RedisRole::Administrator).await;
        let observer = store(&redis, RedisRole::Observer).await;
        Self { redis, worker, administrator, observer }
    }
}

/// The server's URL with the login of a user of this role, who is made.
pub(crate) async fn login(redis: &Redis, role: RedisRole) -> String {
    let user = format!("{role:?}-{}", redis.namespace).to_lowercase();
    let mut command = redis::cmd("ACL");
    command.arg("SETUSER").arg(&user).arg(role.rules(&redis.namespace)).arg(">word");
    command.exec_async(&mut redis.connection.clone()).await.unwrap();
    redis.server.url().replace("redis://", &format!("redis://{user}:word@"))
}

async fn store(redis: &Redis, role: RedisRole) -> RedisStore {
    let url = login(redis, role).await;
    let builder = RedisStore::builder(url).namespace(&redis.namespace);
    builder.call_timeout(PATIENCE).build().await.unwrap()
}

#[async_trait::async_trait]
impl Fixture for Roles {
    fn store(&self) -> &dyn LeaseStore {
        self
    }

    async fn advance(&self, by: Duration) {
        self.redis.advance(by).await;
    }

    fn pool(&self) -> PoolName {
        self.redis.pool()
    }
}

#[async_trait::async_trait]
impl LeaseStore for Roles {
    async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error> {
        self.worker.acquire(request).await
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        self.worker.renew(request).await
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        self.worker.release(request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
        self.worker.cancel(request).await
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        self.worker.reap(request).await
    }

    async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
        let seen = self.observer.status(pool).await?;
        self.worker.status(pool).await?;
        Ok(seen)
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        self.observer.list(request).await
    }

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        self.observer.audit(request).await
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        self.administrator.administer(request).await
    }
}

macro_rules! hold_under_roles {
    ($($property:ident)*) => { $(
        #[tokio::test]
        async fn $property() {
            let fixture = Roles::new().await;
            conformance::$property(&fixture).await;
            let found = fixture.administrator.check(&fixture.pool()).await;
            if let Ok(found) = found {
                assert!(found.is_empty(), "{found:?}");
            }
        }
    )* };
}
reqwest_lease::for_each_property!(hold_under_roles);
