//! A store that is written with the public parts of the crate alone.

use std::collections::HashSet;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use reqwest_lease::conformance::{self, Fixture};
use reqwest_lease::*;

/// Keeps its leases in another store; what comes and goes, and what it refuses, is of its own making.
#[derive(Default)]
struct Outside {
    inner: MemoryStore,
    pools: Mutex<HashSet<PoolName>>,
    /// Answers no acquire.
    hangs: AtomicBool,
}

impl Outside {
    fn known(&self, pool: &PoolName) -> Result<(), Error> {
        match self.pools.lock().unwrap().contains(pool) {
            true => Ok(()),
            false => Err(Error::pool_uninitialised(pool)),
        }
    }
}

fn batch(number: usize) -> Result<(), Error> {
    match (1..=MAX_BATCH).contains(&number) {
        true => Ok(()),
        false => Err(Error::invalid_call(format!("a call has 1 to {MAX_BATCH}, not {number}"))),
    }
}

/// The same error, made here.
fn told(error: Error, pool: &PoolName) -> Error {
    match error.kind() {
        Kind::InvalidCall => Error::invalid_call(error.to_string()),
        Kind::PoolUninitialised => Error::pool_uninitialised(pool),
        Kind::PoolTooNew => Error::pool_too_new(pool),
        Kind::StoreRefused => Error::store_refused(error.to_string()).without_effect(),
        Kind::StoreUnavailable => Error::store_unavailable(error.to_string()),
        kind => panic!("no store returns {kind}"),
    }
}

fn granted(grant: Grant) -> Grant {
    let term =
        grant.term.map(|term| Term::new(Token::from_bytes(term.token.expose()), term.remaining));
    Grant::new(grant.endpoint, grant.fence, grant.strikes, term)
}

#[async_trait]
impl LeaseStore for Outside {
    async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error> {
        self.known(&request.pool)?;
        if self.hangs.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
        batch(request.tokens.len())?;
        if request.ttl.is_zero() {
            return Err(Error::invalid_call("a ttl must be above zero"));
        }
        let mut asked = AcquireRequest::new(request.pool.clone(), request.tokens[0], request.ttl);
        asked.tokens = request.tokens;
        asked.expiry_cooldown = request.expiry_cooldown;
        (asked.site, asked.exclude, asked.prefer) = (request.site, request.exclude, request.prefer);
        asked.random = request.random;
        let reply = self.inner.acquire(asked).await.map_err(|error| told(error, &request.pool))?;
        Ok(match reply {
            AcquireReply::Granted(grants) => {
                AcquireReply::Granted(grants.into_iter().map(granted).collect())
            }
            AcquireReply::Empty { next, restricted } => AcquireReply::Empty { next, restricted },
            AcquireReply::Hold(rest) => AcquireReply::Hold(rest),
            other => other,
        })
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        self.known(&request.pool)?;
        let asked = RenewRequest::new(request.pool.clone(), request.token, request.ttl);
        self.inner.renew(asked).await.map_err(|error| told(error, &request.pool))
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        self.known(&request.pool)?;
        batch(request.releases.len())?;
        let one = |release: Release| Release::new(release.claim, release.verdict, release.site);
        let releases = request.releases.into_iter().map(one).collect();
        let asked = ReleaseRequest::new(request.pool.clone(), releases).with_hint(request.hint);
        self.inner.release(asked).await.map_err(|error| told(error, &request.pool))
    }

    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
        self.known(&request.pool)?;
        let asked = CancelRequest::new(request.pool.clone(), request.token, request.tombstone);
        self.inner.cancel(asked).await.map_err(|error| told(error, &request.pool))
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        self.known(&request.pool)?;
        let asked = ReapRequest::new(request.pool.clone());
        let done = self.inner.reap(asked).await.map_err(|error| told(error, &request.pool))?;
        Ok(ReapReply::new(done.reclaimed, done.promoted, done.more))
    }

    async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
        self.known(pool)?;
        let found = self.inner.status(pool).await.map_err(|error| told(error, pool))?;
        let mut status = Status::empty(found.config);
        status.config_version = found.config_version;
        (status.loading, status.paused, status.hold) = (found.loading, found.paused, found.hold);
        (status.ready, status.cooling) = (found.ready, found.cooling);
        (status.leased, status.expired) = (found.leased, found.expired);
        (status.disabled, status.quarantined) = (found.disabled, found.quarantined);
        (status.fence, status.next) = (found.fence, found.next);
        Ok(status)
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        self.known(&request.pool)?;
        let pool = request.pool.clone();
        let asked = ListRequest::new(request.pool, request.after, request.limit);
        let found = self.inner.list(asked).await.map_err(|error| told(error, &pool))?;
        let one = |member: MemberState| {
            let mut listed = MemberState::new(member.endpoint, member.weight);
            (listed.state, listed.order) = (member.state, member.order);
            (listed.assignments, listed.strikes) = (member.assignments, member.strikes);
            listed
        };
        Ok(found.into_iter().map(one).collect())
    }

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        let pool = request.pool.clone();
        self.inner.audit(request).await.map_err(|error| told(error, &pool))
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        let pool = request.pool.clone();
        let (begins, ends) = match &request.order {
            Order::Init(_) => (true, false),
            Order::DestroyPool => (false, true),
            _ => (false, false),
        };
        if !begins && !ends {
            self.known(&pool)?;
        }
        let asked = AdminRequest::new(request.pool, request.order)
            .by(request.by)
            .with_config_version(request.config_version);
        let done = self.inner.administer(asked).await.map_err(|error| told(error, &pool))?;
        let mut pools = self.pools.lock().unwrap();
        if begins {
            pools.insert(pool);
        } else if ends {
            pools.remove(&pool);
        }
        Ok(AdminReply::new(done.changed))
    }
}

struct Scene(Arc<dyn LeaseStore>);

#[async_trait]
impl Fixture for Scene {
    fn store(&self) -> &dyn LeaseStore {
        &self.0
    }

    async fn advance(&self, by: Duration) {
        tokio::time::advance(by).await;
    }
}

macro_rules! hold_outside {
    ($($property:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $property() {
            conformance::$property(&Scene(Arc::new(Outside::default()))).await;
        }
    )* };
}
reqwest_lease::for_each_property!(hold_outside);

fn builder() -> PoolBuilder {
    let id = EndpointId::new("a").unwrap();
    let endpoint = Endpoint::new(id, "http://127.0.0.1:1", None).unwrap();
    let inventory = Inventory::from_endpoints([endpoint]).unwrap();
    Pool::builder(PoolName::new("vn").unwrap(), inventory)
}

#[tokio::test]
async fn a_requests_timeout_is_kept_also_when_the_store_does_not_answer() {
    let store = Arc::new(Outside::default());
    let pool = builder().store(store.clone()).build().await.unwrap();
    pool.set_up(PoolConfig::default()).await.unwrap();
    store.hangs.store(true, Ordering::SeqCst);
    let client = LeaseMiddleware::builder(pool).build().unwrap().into_client();
    let (limit, began) = (Duration::from_millis(100), Instant::now());
    let error = client.get("http://a.test/").timeout(limit).send().await.unwrap_err();
    assert_eq!(Error::find_in(&error).unwrap().kind(), Kind::TimedOut, "{error:?}");
    // A store is given a second otherwise.
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_pool_works_over_a_store_and_a_judge_that_are_chosen_at_run_time() {
    let store: Arc<dyn LeaseStore> = Arc::new(Outside::default());
    let judge: Box<dyn Judge> = Box::new(DefaultJudge::default());
    let pool = builder().store(store).judge(judge).build().await.unwrap();
    assert_eq!(pool.hold().await.unwrap_err().kind(), Kind::PoolUninitialised);
    pool.set_up(PoolConfig::default()).await.unwrap();
    let held = pool.hold().await.unwrap();
    assert_eq!(held.endpoint().as_str(), "a");
    drop(held);
    pool.shutdown().await;
    assert_eq!(pool.status().await.unwrap().ready, 1);
}
