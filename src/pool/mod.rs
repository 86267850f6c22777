//! A pool as this process sees it: leases that are waited for, held and given back.

mod alone;
mod answers;
mod asker;
mod attendance;
mod builder;
mod caught;
#[cfg(feature = "metrics")]
mod gauges;
mod held;
mod hints;
mod lease;
mod ledger;
mod question;
mod queue;
mod releaser;
mod set_up;
mod strangers;
mod timed;
mod verdicts;
mod waiting;
mod wants;
#[cfg(feature = "watch")]
mod watch;
mod watchdog;
mod withheld;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;

pub use builder::PoolBuilder;
pub use held::HeldLease;
pub(crate) use lease::{Lease, Trust};
pub(crate) use question::{Doubt, Patience};
pub(crate) use waiting::Now;
pub(crate) use wants::Wants;
pub(crate) use watchdog::{Expire, Key, Watchdog};

use crate::endpoint::Endpoint;
use crate::error::{Error, Kind};
use crate::id::{AdminName, EndpointId, PoolName};
use crate::inventory::{Inventory, Reloaded, Snapshot};
use crate::store::{
    AdminReply, AdminRequest, AuditEntry, AuditId, AuditRequest, LeaseStore, ListRequest, Member,
    MemberState, Order, StandingOrder, Status,
};
use crate::telemetry::{Counters, Counts, Times};
#[cfg(feature = "metrics")]
use crate::telemetry::{Flag, table};
use crate::verdict::Judge;

use ledger::Ledger;
use releaser::Releaser;
use strangers::Strangers;
use waiting::Waiting;
use withheld::Withheld;

/// A shared handle to a pool of endpoints.
///
/// ```
/// use reqwest_lease::{Endpoint, EndpointId, Inventory, Pool, PoolName};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::new(EndpointId::new("a")?, "http://127.0.0.1:8080", None)?;
/// let inventory = Inventory::from_endpoints([endpoint])?;
/// let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
/// assert_eq!(pool.status().await?.ready, 1);
/// pool.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    core: Arc<Core>,
    inventory: Inventory,
    strangers: Strangers,
    settings: Settings,
    /// This process owns the pool's membership: the embedded default.
    embedded: bool,
    /// In whose name this process gives orders.
    administrator: Option<AdminName>,
    judge: Arc<dyn Judge>,
    ledger: Ledger,
    releaser: Releaser,
    watchdog: Arc<Watchdog>,
    closed: AtomicBool,
    /// One reload at a time, so that members never follow an older inventory.
    reloading: tokio::sync::Mutex<()>,
    tasks: Vec<AbortHandle>,
    /// What tells the gauges.
    #[cfg(feature = "metrics")]
    teller: Option<AbortHandle>,
    #[cfg(feature = "watch")]
    watching: std::sync::Mutex<Option<watch::Watching>>,
}

/// What outlives the last handle until all releases are made.
struct Core {
    name: PoolName,
    store: Arc<dyn LeaseStore>,
    waiting: Waiting,
    withheld: Withheld,
    counters: Counters,
    times: Times,
    /// Whether the inventory is older than what could not be read.
    #[cfg(feature = "metrics")]
    stale: Flag,
    /// Whether releases give hints to those who wait elsewhere.
    hints: bool,
    /// What the store said of itself: it is not asked in a drop.
    at_once: bool,
}

impl Core {
    fn new(name: PoolName, store: Arc<dyn LeaseStore>, hints: bool) -> Arc<Self> {
        Arc::new(Self {
            counters: Counters::of(name.as_str()),
            times: Times::of(name.as_str()),
            #[cfg(feature = "metrics")]
            stale: Flag::new(&table::STALE, &[("pool", name.as_str())]),
            name,
            waiting: Waiting::default(),
            withheld: Withheld::default(),
            hints,
            at_once: store.answers_at_once(),
            store,
        })
    }

    #[cfg(test)]
    fn in_memory() -> Arc<Self> {
        let store = Arc::new(crate::store::MemoryStore::new());
        Self::new(PoolName::new("vn").unwrap(), store, false)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        #[cfg(feature = "metrics")]
        self.teller.iter().for_each(AbortHandle::abort);
    }
}

/// What a lease of this pool is like unless a request says otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) ttl: Duration,
    pub(crate) expiry_cooldown: Duration,
    pub(crate) max_wait: Duration,
    pub(crate) renew: bool,
    pub(crate) poll_every: Duration,
    pub(crate) wakeups: bool,
}

impl Pool {
    /// Starts a pool of the inventory's endpoints.
    pub fn builder(name: PoolName, inventory: Inventory) -> PoolBuilder {
        PoolBuilder::new(name, inventory)
    }

    /// Whether both are handles to one pool of this process.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The pool's name.
    pub fn name(&self) -> &PoolName {
        &self.0.core.name
    }

    /// The inventory that endpoint ids are resolved with.
    pub fn inventory(&self) -> &Inventory {
        &self.0.inventory
    }

    /// Counts of what this process did.
    pub fn counts(&self) -> Counts {
        self.0.core.counters.snapshot()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.core.counters
    }

    /// Counts and logs a request that came to nothing before it was one.
    pub(crate) fn refused(&self, error: &Error) {
        let code = error.kind().as_str();
        self.counters().requests_failed.add_one(code);
        tracing::debug!(pool = %self.name(), code, "request refused");
    }

    pub(crate) fn times(&self) -> &Times {
        &self.0.core.times
    }

    /// Whether its store is never waited for.
    pub(crate) fn answers_at_once(&self) -> bool {
        self.0.core.at_once
    }

    /// Counts of the pool's states. Changes nothing, dropped or not.
    ///
    /// # Errors
    /// Those of [`LeaseStore::status`].
    pub async fn status(&self) -> Result<Status, Error> {
        self.0.core.noted(self.0.core.store.status(&self.0.core.name).await)
    }

    /// All members with their states, in order of their ids. Changes nothing, dropped or not.
    ///
    /// # Errors
    /// Those of [`LeaseStore::list`].
    pub async fn list(&self) -> Result<Vec<MemberState>, Error> {
        let mut members: Vec<MemberState> = Vec::new();
        loop {
            let request = ListRequest {
                pool: self.0.core.name.clone(),
                after: members.last().map(|member| member.endpoint.clone()),
                limit: PAGE,
            };
            let page = self.0.core.noted(self.0.core.store.list(request).await)?;
            let last = page.len() < PAGE;
            members.extend(page);
            if last {
                return Ok(members);
            }
        }
    }

    /// One member, which costs as much in a large pool as in a small one.
    pub(crate) async fn member(&self, id: &EndpointId) -> Result<Option<MemberState>, Error> {
        let request = ListRequest::new(self.0.core.name.clone(), id.before(), 1);
        let next = self.0.core.noted(self.0.core.store.list(request).await)?;
        Ok(next.into_iter().find(|member| member.endpoint == *id))
    }

    /// The newest entries of the pool's trail of orders, or those before one; it outlasts the pool.
    /// Changes nothing, dropped or not.
    ///
    /// # Errors
    /// Those of [`LeaseStore::audit`].
    pub async fn audit(
        &self,
        before: Option<AuditId>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        let request = AuditRequest::new(self.0.core.name.clone(), before, limit);
        self.0.core.noted(self.0.core.store.audit(request).await)
    }

    /// Carries out an administrator's order, in the name that
    /// [`PoolBuilder::administrator`] was given.
    ///
    /// # Errors
    /// Those of [`LeaseStore::administer`].
    ///
    /// # Cancel safety
    /// A dropped future leaves it unknown whether the order was carried out; orders can be
    /// repeated.
    pub async fn administer(&self, order: Order) -> Result<AdminReply, Error> {
        self.send(order, None).await
    }

    pub(crate) fn has_administrator(&self) -> bool {
        self.0.administrator.is_some()
    }

    /// Sends an order, from an inventory of this version.
    async fn send(&self, order: Order, version: Option<u64>) -> Result<AdminReply, Error> {
        let request = AdminRequest::new(self.0.core.name.clone(), order)
            .by(self.0.administrator.clone())
            .with_config_version(version);
        let reply = self.0.core.noted(self.0.core.store.administer(request).await);
        // What was enabled, added or resumed may be what somebody waits for.
        self.0.core.waiting.something_came_free();
        reply
    }

    /// Reads the inventory again. In the embedded default the pool's members follow it: new
    /// ones are added, missing ones removed once their lease ends.
    ///
    /// # Errors
    /// [`Inventory`](Kind::Inventory) when the new inventory is refused, and the old one stays;
    /// those of [`LeaseStore::administer`].
    ///
    /// # Cancel safety
    /// A dropped future may leave members behind the inventory; calling again mends it.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        let _turn = self.0.reloading.lock().await;
        let reloaded = self.reload_in_turn().await;
        match &reloaded {
            Ok(_) => self.0.core.counters.reloads.add_one(),
            Err(_) => self.0.core.counters.reloads_failed.add_one(),
        }
        #[cfg(feature = "metrics")]
        self.0.core.stale.set(reloaded.is_err());
        reloaded
    }

    async fn reload_in_turn(&self) -> Result<Reloaded, Error> {
        let reloaded = self.0.inventory.reload().await?;
        // What the pool has and the inventory had not may be what somebody waits for.
        self.0.core.waiting.something_came_free();
        if self.0.embedded {
            self.follow_inventory().await?;
        }
        Ok(reloaded)
    }

    /// Makes the pool's members those of the inventory.
    async fn follow_inventory(&self) -> Result<(), Error> {
        let snapshot = self.0.inventory.snapshot();
        let gone: Vec<EndpointId> = self
            .list()
            .await?
            .into_iter()
            // One that is on its way out already may be gone by now.
            .filter(|member| member.order != Some(StandingOrder::Remove))
            .map(|member| member.endpoint)
            .filter(|id| snapshot.get(id).is_none())
            .collect();
        if !gone.is_empty() {
            self.send(Order::Remove(gone), snapshot.version()).await?;
        }
        self.send(Order::Add(members(&snapshot)), snapshot.version()).await?;
        Ok(())
    }

    /// Takes a lease to keep for several requests: a login, a paged list.
    ///
    /// Waits as a request would, at most the pool's `max_wait`, in the same queue.
    ///
    /// # Errors
    /// [`PoolExhausted`](Kind::PoolExhausted), [`PoolPaused`](Kind::PoolPaused),
    /// [`PoolLoading`](Kind::PoolLoading), [`PoolClosed`](Kind::PoolClosed) and those of [`LeaseStore::acquire`].
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue up; a lease that was just granted is
    /// given back.
    pub async fn hold(&self) -> Result<HeldLease, Error> {
        let Settings { ttl, max_wait, .. } = self.0.settings;
        let wants = Wants { ttl, site: None, exclude: Vec::new(), prefer: None };
        let (mut lease, _) = self.lease(wants, max_wait).await?;
        lease.keep_alive();
        Ok(HeldLease::new(lease))
    }

    /// Ends the pool in this process: no more leases, and waits until all releases are made. A
    /// store that does not answer is tried for 5 s; the leases' deadlines end what is left then.
    ///
    /// Leases that are still held are released when they end; a store that many processes share
    /// gets those releases as long as the runtime lives.
    ///
    /// # Cancel safety
    /// The pool is closed at the first poll; a dropped future only stops the waiting.
    pub async fn shutdown(&self) {
        self.0.closed.store(true, Ordering::Release);
        #[cfg(feature = "watch")]
        self.watch_no_more();
        self.0.core.waiting.close(&self.closed());
        self.left_alone().await;
        self.0.releaser.drained().await;
        #[cfg(feature = "metrics")]
        self.0.teller.iter().for_each(AbortHandle::abort);
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    fn closed(&self) -> Error {
        Error::new(Kind::PoolClosed, format!("pool {} has been shut down", self.0.core.name))
    }

    pub(crate) fn watchdog(&self) -> &Arc<Watchdog> {
        &self.0.watchdog
    }

    fn endpoint(&self, id: &EndpointId) -> Option<Arc<Endpoint>> {
        self.0.inventory.snapshot().get(id).cloned()
    }

    /// Notes that the inventory lacks an endpoint; whether that helps to get another.
    fn lacks(&self, id: &EndpointId) -> bool {
        let generation = self.0.inventory.generation();
        self.endpoint(id).is_some() || self.0.strangers.note(generation, id)
    }
}

impl Core {
    /// Counts what a call to the store failed with.
    fn noted<T>(&self, reply: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &reply {
            self.counters.store_errors.add_one(error.kind().as_str());
        }
        reply
    }
}

const PAGE: usize = 1000;

/// The endpoints of an inventory as members.
fn members(snapshot: &Snapshot) -> Vec<Member> {
    let member = |endpoint: &Arc<Endpoint>| {
        Member::new(endpoint.id().clone()).with_weight(endpoint.labels().weight)
    };
    snapshot.iter().map(member).collect()
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.0.core.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
