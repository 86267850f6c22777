//! A pool as this process sees it: leases that are waited for, held and given back.

mod admin;
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
use crate::inventory::Inventory;
use crate::store::LeaseStore;
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

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.0.core.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
