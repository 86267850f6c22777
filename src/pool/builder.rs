//! Starting a pool.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::ledger::Ledger;
use super::releaser::Releaser;
use super::strangers::Strangers;
use super::watchdog::Watchdog;
use super::{Core, Pool, Settings, Shared};
use crate::error::{Error, Kind};
use crate::guard::Guard;
use crate::id::{AdminName, PoolName};
use crate::inventory::Inventory;
use crate::random;
use crate::store::{LeaseStore, MemoryStore, Mode, Order, Policy, PoolConfig, ReapRequest};
use crate::verdict::{DefaultJudge, Judge};

/// Chooses how a pool works; [`Pool::builder`] makes one.
///
/// Without a [`store`](Self::store) the pool is kept in the memory of this process, and its
/// members are those of the inventory.
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::{Endpoint, EndpointId, Inventory, Policy, Pool, PoolName};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let endpoint = Endpoint::new(EndpointId::new("a")?, "http://127.0.0.1:1", None)?;
/// # let inventory = Inventory::from_endpoints([endpoint])?;
/// let pool = Pool::builder(PoolName::new("vn")?, inventory)
///     .policy(Policy::LeastAssigned)
///     .ttl(Duration::from_secs(30))
///     .max_wait(Duration::from_secs(5))
///     .build()
///     .await?;
/// assert_eq!(pool.status().await?.ready, 1);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct PoolBuilder {
    name: PoolName,
    inventory: Inventory,
    store: Option<Arc<dyn LeaseStore>>,
    judge: Arc<dyn Judge>,
    guard: Guard,
    config: PoolConfig,
    settings: Settings,
    administrator: Option<AdminName>,
    #[cfg(feature = "metrics")]
    gauges_every: Option<Duration>,
}

impl PoolBuilder {
    pub(super) fn new(name: PoolName, inventory: Inventory) -> Self {
        Self {
            name,
            inventory,
            store: None,
            judge: Arc::new(DefaultJudge::default()),
            guard: Guard::default(),
            config: PoolConfig::default(),
            administrator: None,
            #[cfg(feature = "metrics")]
            gauges_every: None,
            settings: Settings {
                ttl: Duration::from_secs(60),
                expiry_cooldown: Duration::from_secs(30),
                max_wait: Duration::from_secs(30),
                renew: false,
                poll_every: Duration::from_millis(250),
                wakeups: false,
            },
        }
    }

    /// Keeps leases in this store, in which an administrator has set the pool up.
    ///
    /// Default: a [`MemoryStore`] of this pool's own, set up from [`mode`](Self::mode),
    /// [`policy`](Self::policy) and the limits below; with a store of yours those are the
    /// administrator's.
    pub fn store(mut self, store: impl LeaseStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Whether endpoints are reserved. Default [`Mode::Exclusive`].
    pub fn mode(mut self, mode: Mode) -> Self {
        self.config.mode = mode;
        self
    }

    /// Which of the ready endpoints is leased. Default [`Policy::Earliest`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.config.policy = policy;
        self
    }

    /// Time from grant to deadline. Default 60 s: longer than nearly all pages take, short
    /// enough that a dead worker's endpoints come back soon.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// Longest ttl that a request may ask for. Default 10 min.
    pub fn largest_ttl(mut self, ttl: Duration) -> Self {
        self.config.largest_ttl = ttl;
        self
    }

    /// Longest life of a lease with all its renewals. Default 1 h.
    pub fn largest_lifetime(mut self, lifetime: Duration) -> Self {
        self.config.largest_lifetime = lifetime;
        self
    }

    /// Cooldown of an endpoint whose lease was never released. Default 30 s: its holder may
    /// still be on the wire.
    pub fn expiry_cooldown(mut self, cooldown: Duration) -> Self {
        self.settings.expiry_cooldown = cooldown;
        self
    }

    /// Longest wait for budget and lease together. Default 30 s.
    ///
    /// A store that is asked is given at least 1 s for its answer, also when less of the wait is
    /// left. A request's own timeout is kept to the moment: what was asked for is given up then.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.settings.max_wait = wait;
        self
    }

    /// Whether leases are renewed while a response's body is read. Default `false`: an exchange
    /// ends when its lease does.
    pub fn renew(mut self, renew: bool) -> Self {
        self.settings.renew = renew;
        self
    }

    /// Longest pause between two questions to the store while a request waits. Default 250 ms;
    /// releases in this process, and the moment that the store names, end it sooner.
    pub fn poll_every(mut self, pause: Duration) -> Self {
        self.settings.poll_every = pause;
        self
    }

    /// Whether pools elsewhere on the same store are told when an endpoint becomes ready by a
    /// release of this one, and this one is told by theirs, instead of waiting for the next
    /// question to the store. Default `false`: under load the store has one more message for each
    /// listening process with every call that gives leases back, and one more connection for each
    /// process.
    ///
    /// Set it in all processes: each hears only of those that tell. An administrator's orders are
    /// told always. A hint makes each process that has waiters ask once, for up to 16 of them; a
    /// process that finds nothing left hears the next hint a little later, up to 64 ms, so that
    /// many processes do not ask at each of many hints. Hints may be lost, so
    /// [`poll_every`](Self::poll_every) goes on. A store without
    /// [hints](crate::LeaseStore::hints) has none to give.
    pub fn wakeups(mut self, wakeups: bool) -> Self {
        self.settings.wakeups = wakeups;
        self
    }

    /// Asks the store so often for the pool's state, and tells it in gauges. Default: never.
    ///
    /// One process of the many that share a store is enough; in several it does no harm. Each time
    /// is one call of [`LeaseStore::status`], which looks at all parked endpoints: in Redis about 0.1 ms
    /// of the server's time, and 0.3 ms more for each thousand of those. Every 15 s, say, is as often
    /// as most scrapers come. How many requests wait is told too, and is of this
    /// process. When the store does not answer twice in a row, or the pool ends in this process, the
    /// gauges are NaN, so that nobody takes an old state for the present one;
    /// `reqwest_lease_status_timestamp_seconds` tells since when, until the pool ends. Pools of one
    /// process need names of their own, or their gauges are one.
    #[cfg(feature = "metrics")]
    pub fn gauges_every(mut self, pause: Duration) -> Self {
        self.gauges_every = Some(pause);
        self
    }

    /// Turns outcomes into verdicts. Default [`DefaultJudge`].
    pub fn judge(mut self, judge: impl Judge) -> Self {
        self.judge = Arc::new(judge);
        self
    }

    /// What keeps the pool from being emptied by evidence that may be wrong. Default
    /// [`Guard::new`].
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// In whose name this process gives orders, as the trail of orders shows it. Default: nobody's.
    pub fn administrator(mut self, name: AdminName) -> Self {
        self.administrator = Some(name);
        self
    }

    /// Starts the pool.
    ///
    /// What works in the background lives on the runtime that this is called on: what gives leases
    /// back, what ends exchanges whose lease has run out, what takes ended leases back. That runtime
    /// must be driven as long as the pool is used, also by requests on others: a runtime of its own
    /// that ends sooner, as in a test or in `block_on` for the build alone, leaves leases to their
    /// deadlines.
    ///
    /// # Errors
    /// [`Config`](Kind::Config) for a zero or too long time or a share beyond 0 to 1; those of
    /// [`LeaseStore::administer`].
    ///
    /// # Panics
    /// Outside of a tokio runtime, which its background tasks need.
    ///
    /// # Cancel safety
    /// A dropped future leaves no pool; in a store of yours nothing was changed.
    pub async fn build(self) -> Result<Pool, Error> {
        self.check()?;
        let embedded = self.store.is_none();
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let (releaser, worker) = Releaser::new();
        let watchdog = Arc::new(Watchdog::default());
        let core = Core::new(self.name, store, self.settings.wakeups);
        // It ends by itself when the last handle is gone and all releases are made.
        tokio::spawn(worker.run(core.clone()));
        let mut tasks = vec![
            tokio::spawn(watchdog.clone().run(core.clone())).abort_handle(),
            tokio::spawn(core.clone().reap_now_and_then()).abort_handle(),
        ];
        if self.settings.wakeups
            && let Some(hints) = core.store.hints(&core.name)
        {
            tasks.push(tokio::spawn(core.clone().listen(hints)).abort_handle());
        }
        #[cfg(feature = "metrics")]
        let (is_set_up, teller) = core.tell_once_set_up(self.gauges_every);
        let pool = Pool(Arc::new(Shared {
            core,
            inventory: self.inventory,
            strangers: Strangers::default(),
            settings: self.settings,
            embedded,
            administrator: self.administrator,
            judge: self.judge,
            ledger: Ledger::new(self.guard),
            releaser,
            watchdog,
            closed: AtomicBool::new(false),
            reloading: tokio::sync::Mutex::default(),
            tasks,
            #[cfg(feature = "metrics")]
            teller,
            #[cfg(feature = "watch")]
            watching: std::sync::Mutex::default(),
        }));
        if embedded {
            pool.administer(Order::Init(self.config.into())).await?;
            pool.follow_inventory().await?;
        }
        #[cfg(feature = "metrics")]
        let _ = is_set_up.send(());
        Ok(pool)
    }

    fn check(&self) -> Result<(), Error> {
        let refuse =
            |what: &str| Err(Error::new(Kind::Config, format!("pool {}: {what}", self.name)));
        let settings = &self.settings;
        if settings.ttl.is_zero() {
            return refuse("ttl is zero");
        }
        if self.store.is_none() && settings.ttl > self.config.largest_ttl {
            return refuse("ttl is over the largest ttl");
        }
        if self.config.largest_lifetime < self.config.largest_ttl {
            return refuse("the largest lifetime is under the largest ttl");
        }
        if let Some(fault) = self.guard.fault() {
            return refuse(fault);
        }
        if settings.poll_every.is_zero() {
            return refuse("poll_every is zero");
        }
        #[cfg(feature = "metrics")]
        if self.gauges_every.is_some_and(|pause| pause.is_zero() || pause > LONGEST) {
            return refuse("gauges_every is zero or over 365 days");
        }
        let longest = [
            settings.ttl,
            settings.expiry_cooldown,
            settings.max_wait,
            settings.poll_every,
            self.config.largest_lifetime,
        ];
        if longest.into_iter().any(|time| time > LONGEST) {
            return refuse("a time is over 365 days");
        }
        Ok(())
    }
}

/// Sums of times and instants stay representable.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

const REAP_EVERY: Duration = Duration::from_secs(5);

impl Core {
    /// Takes back what acquires have not, a bounded step at a time.
    async fn reap_now_and_then(self: Arc<Self>) {
        let mut failing = false;
        loop {
            let jitter = Duration::from_millis(random::number() % 1000);
            sleep_until(Instant::now() + REAP_EVERY + jitter).await;
            loop {
                let request = ReapRequest { pool: self.name.clone() };
                match self.noted(self.called(async { self.store.reap(request).await }).await) {
                    Ok(reply) => {
                        failing = false;
                        if reply.reclaimed + reply.promoted > 0 {
                            self.waiting.something_came_free();
                        }
                        if !reply.more {
                            break;
                        }
                    }
                    Err(error) => {
                        // Told once, or a store that is away for a night fills the log.
                        if !failing {
                            tracing::warn!(pool = %self.name, code = %error.kind(), "reap failed");
                        }
                        failing = true;
                        break;
                    }
                }
            }
        }
    }
}
