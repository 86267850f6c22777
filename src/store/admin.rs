//! What an administrator asks of a store, and the replies.

use std::time::Duration;

use super::Setup;
pub use crate::endpoint::MAX_WEIGHT;
use crate::id::{AdminName, EndpointId, Fence, PoolName};
use crate::verdict::QuarantineCode;

/// Whether a pool reserves the endpoints it grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mode {
    /// An endpoint has at most one valid lease.
    #[default]
    Exclusive,
    /// An endpoint is granted to any number of holders at once; the grant is counted, not
    /// reserved.
    Shared,
}

/// Which of the ready endpoints is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// The one that has been available longest. Not for shared pools, which always go by
    /// [`LeastAssigned`](Self::LeastAssigned).
    #[default]
    Earliest,
    /// The one with the fewest assignments for its weight, exactly; ties go by id.
    LeastAssigned,
    /// One drawn at random.
    Random,
}

/// What holds for all of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolConfig {
    /// Default [`Mode::Exclusive`].
    pub mode: Mode,
    /// Default [`Policy::Earliest`].
    pub policy: Policy,
    /// Longest ttl that a lease may ask for. Default 10 min: a failover hold lasts as long.
    pub largest_ttl: Duration,
    /// Longest time from grant to last deadline, over all renewals. Default 1 h: a hung task
    /// cannot hold an endpoint for ever.
    pub largest_lifetime: Duration,
    /// Whether nothing is granted for the largest ttl after the store's server was restarted or
    /// replaced: it may lack grants of before. Default `true`. Of no effect in a shared pool, nor in
    /// a store that ends with its server.
    ///
    /// Without it nobody looks whether the server is another, and fences repeat after a failover
    /// that lost grants: two leases may have the same one. So they may in a shared pool.
    pub failover_hold: bool,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            policy: Policy::default(),
            largest_ttl: Duration::from_secs(600),
            largest_lifetime: Duration::from_secs(3600),
            failover_hold: true,
        }
    }
}

/// Counts of a pool at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Mode, policy and limits.
    pub config: PoolConfig,
    /// The inventory's version of the last order that named one.
    pub config_version: Option<u64>,
    /// Whether the pool is not open yet.
    pub loading: bool,
    /// Whether an administrator has paused the pool.
    pub paused: bool,
    /// Time to the end of a hold that is on, after a failover or a loss.
    pub hold: Option<Duration>,
    /// Endpoints that can be granted now: ready, and cooling ones whose time has come.
    pub ready: usize,
    /// Endpoints whose cooldown goes on.
    pub cooling: usize,
    /// Leases before their deadline.
    pub leased: usize,
    /// Leases past their deadline that nobody has taken back yet.
    pub expired: usize,
    /// Endpoints that an administrator has disabled or drained, and that are neither leased nor
    /// in quarantine.
    pub disabled: usize,
    /// Endpoints in quarantine.
    pub quarantined: usize,
    /// The fence of the last grant.
    pub fence: Fence,
    /// Time to the next deadline or end of a cooldown.
    pub next: Option<Duration>,
}

impl Status {
    /// An empty pool's counts, for implementors of stores.
    pub fn empty(config: PoolConfig) -> Self {
        Self {
            config,
            config_version: None,
            loading: false,
            paused: false,
            hold: None,
            ready: 0,
            cooling: 0,
            leased: 0,
            expired: 0,
            disabled: 0,
            quarantined: 0,
            fence: Fence(0),
            next: None,
        }
    }

    /// All endpoints of the pool.
    pub fn members(&self) -> usize {
        self.ready + self.cooling + self.leased + self.expired + self.disabled + self.quarantined
    }
}

/// Asks for a page of members.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListRequest {
    /// The pool.
    pub pool: PoolName,
    /// Only members after this id, which need not be one.
    pub after: Option<EndpointId>,
    /// Most members in the reply.
    pub limit: usize,
}

impl ListRequest {
    /// The first page, or the one after an id.
    pub const fn new(pool: PoolName, after: Option<EndpointId>, limit: usize) -> Self {
        Self { pool, after, limit }
    }
}

/// One member of a pool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MemberState {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Where it is.
    pub state: State,
    /// A standing order. Of one to disable and one to quarantine, on a leased endpoint, the former:
    /// the latter shows as the state when the lease has ended.
    pub order: Option<StandingOrder>,
    /// Its share of assignments beside the others'.
    pub weight: u32,
    /// Grants so far.
    pub assignments: u64,
    /// Failures in a row.
    pub strikes: u32,
}

impl MemberState {
    /// A member that is ready, for implementors of stores.
    pub fn new(endpoint: EndpointId, weight: u32) -> Self {
        Self { endpoint, state: State::Ready, order: None, weight, assignments: 0, strikes: 0 }
    }
}

/// The one place in which an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It can be granted.
    Ready,
    /// It can be granted after this time; zero when its time has come.
    Cooling(Duration),
    /// It is leased for this time.
    Leased(Duration),
    /// Its lease has run out and nobody has taken it back yet.
    Expired,
    /// An administrator's order keeps it out.
    Disabled,
    /// Evidence against it keeps it out.
    Quarantined(QuarantineCode),
    /// It is in no place and cannot be granted, which only damage to what is stored leaves. `Enable`
    /// makes it ready again, and so does `Add` unless an order stands.
    Lost,
}

/// An administrator's standing order on an endpoint. No worker can undo it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StandingOrder {
    /// Out, at once or when its lease ends.
    Disable,
    /// Out as soon as its lease ends.
    Drain,
    /// Gone from the pool as soon as its lease ends.
    Remove,
    /// In quarantine as soon as its lease ends.
    Quarantine(QuarantineCode),
}

/// An administrator's request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AdminRequest {
    /// The pool.
    pub pool: PoolName,
    /// What to do.
    pub order: Order,
    /// Who wants it, for the trail of orders.
    pub by: Option<AdminName>,
    /// The version of the inventory that the order comes from, for the trail and the status.
    pub config_version: Option<u64>,
}

impl AdminRequest {
    /// Orders something for a pool, in nobody's name and from no inventory.
    pub const fn new(pool: PoolName, order: Order) -> Self {
        Self { pool, order, by: None, config_version: None }
    }

    /// In somebody's name.
    pub fn by(mut self, by: impl Into<Option<AdminName>>) -> Self {
        self.by = by.into();
        self
    }

    /// From an inventory of this version.
    pub fn with_config_version(mut self, version: impl Into<Option<u64>>) -> Self {
        self.config_version = version.into();
        self
    }
}

/// What an administrator may order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Order {
    /// Sets up a pool: `PoolConfig::default().into()`, or a [`Setup`] for one that is to be loaded
    /// or stands in the place of one that was lost. Refused when it exists, and when anything is
    /// left of one that has lost its configuration: `DestroyPool` clears that.
    Init(Setup),
    /// Adds members to a pool that is not open yet, and updates weight and count of those that are
    /// there, so that it can be repeated. It costs less than `Add`: a member without a count starts
    /// at zero. Refused once the pool is open.
    Load(Vec<Member>),
    /// Opens a pool that has been loaded.
    Open,
    /// Adds members, and updates the weight of those that are there.
    Add(Vec<Member>),
    /// Takes members out; leased ones when their lease ends. Their assignment counts are kept
    /// for a return.
    Remove(Vec<EndpointId>),
    /// Keeps endpoints from being granted until `Enable`.
    Disable(Vec<EndpointId>),
    /// As `Disable`, and recorded as a drain.
    Drain(Vec<EndpointId>),
    /// Ends an order to disable or drain, and a quarantine. In a shared pool, verdicts on grants from
    /// before it put nothing into quarantine any more.
    Enable(Vec<EndpointId>),
    /// Puts endpoints into quarantine; leased ones when their lease ends. An order to disable them
    /// stands beside it.
    Quarantine(Vec<EndpointId>, QuarantineCode),
    /// Ends quarantines for this reason alone: unlike `Enable` it undoes no order, so that what was
    /// disabled meanwhile stays out, and leaves quarantines for another reason.
    EndQuarantine(Vec<EndpointId>, QuarantineCode),
    /// Grants nothing until `Resume`. Holders may renew and release.
    Pause,
    /// Ends a pause.
    Resume,
    /// Ends a hold after a failover or a loss at once, on an administrator's word that no lease of
    /// before is in use. A hold also begins when the slot of a pool moves to another node of a Redis
    /// Cluster, which takes all leases along: then this may follow at once.
    EndHold,
    /// Erases the pool with all that is known of its endpoints, or what is left of one that has lost
    /// its configuration. Its trail of orders stays. Refused while the pool is open and not paused.
    ///
    /// Workers may go on using what they have leased: if the pool is set up again it should be
    /// [after a loss](Setup::after_loss). In Redis, what rests for a site goes by itself in time.
    DestroyPool,
}

/// A member to add.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Its share of assignments beside the others', 1 to [`MAX_WEIGHT`]. Default 1.
    pub weight: u32,
    /// Assignments to start with, at most [`MAX_ASSIGNMENTS`]. Default: its own count when it
    /// returns, and never below the lowest in the pool for its weight, so that it is not flooded
    /// while it catches up.
    pub assignments: Option<u64>,
}

/// Most assignments that a member may start with: up to here a share, (assignments + 1/2) /
/// weight, is exact enough in a 64-bit float to tell any two unequal ones apart.
pub const MAX_ASSIGNMENTS: u64 = 1 << 41;

impl Member {
    /// A member of weight 1.
    pub fn new(endpoint: EndpointId) -> Self {
        Self { endpoint, weight: 1, assignments: None }
    }

    /// With this weight.
    pub fn with_weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// With this many assignments to start with.
    pub fn with_assignments(mut self, assignments: u64) -> Self {
        self.assignments = Some(assignments);
        self
    }
}

/// What an order changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AdminReply {
    /// How many endpoints the order changed; 1 for a pool-wide order that changed the pool.
    pub changed: usize,
}

impl AdminReply {
    /// A reply, for implementors of stores.
    pub const fn new(changed: usize) -> Self {
        Self { changed }
    }
}
