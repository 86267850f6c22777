//! What a worker asks of a store, and the replies.

use std::time::Duration;

use crate::id::{EndpointId, Fence, PoolName};
use crate::secret::Token;
use crate::site::Site;
use crate::verdict::Verdict;

/// Most tokens in one acquire, and most leases in one release.
pub const MAX_BATCH: usize = 16;

/// Most leases that one call takes back, and most endpoints that one call readies.
pub const MAX_SWEEP: usize = 64;

/// Asks for leases.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// The pool.
    pub pool: PoolName,
    /// A fresh token for each lease wanted, 1 to [`MAX_BATCH`].
    pub tokens: Vec<Token>,
    /// Time from grant to deadline, above zero and at most the pool's largest.
    pub ttl: Duration,
    /// Cooldown if a lease is never released: its holder may still be on the wire. Default 30 s.
    pub expiry_cooldown: Duration,
    /// Endpoints that are shunned for this site are passed over.
    pub site: Option<Site>,
    /// Endpoints that are passed over.
    pub exclude: Vec<EndpointId>,
    /// Taken before all others when it is ready.
    pub prefer: Option<EndpointId>,
    /// A number drawn by the client, uniform over all 64 bits: which of the ready endpoints
    /// [`Policy::Random`](crate::Policy::Random) takes.
    pub random: u64,
}

impl AcquireRequest {
    /// A request for one lease.
    pub fn new(pool: PoolName, token: Token, ttl: Duration) -> Self {
        Self {
            pool,
            tokens: vec![token],
            ttl,
            expiry_cooldown: Duration::from_secs(30),
            site: None,
            exclude: Vec::new(),
            prefer: None,
            random: 0,
        }
    }
}

/// What came of an acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireReply {
    /// One grant for each of the first tokens that were not cancelled; at least one, and fewer
    /// than asked for when there are not enough.
    Granted(Vec<Grant>),
    /// Nothing can be granted now.
    Empty {
        /// Time to the earliest moment at which something could be free for this request;
        /// `None` when no endpoint but the excluded ones is on its way back.
        next: Option<Duration>,
        /// Endpoints are ready, but all of them are excluded or shunned for this request.
        restricted: bool,
    },
    /// The pool is being loaded and not open yet.
    Loading,
    /// An administrator has paused the pool.
    Paused,
    /// Nothing is granted after a failover or a loss until this time has passed.
    Hold(Duration),
    /// All tokens had been cancelled.
    Cancelled,
}

/// The right to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Grows with every grant in the pool; across a failover that lost grants only where the pool
    /// looks for one ([`PoolConfig::failover_hold`](crate::PoolConfig::failover_hold)).
    pub fence: Fence,
    /// Failures in a row of the endpoint.
    pub strikes: u32,
    /// Token and time left of an exclusive lease; `None` in a shared pool.
    pub term: Option<Term>,
}

impl Grant {
    /// A grant, for implementors of stores.
    pub fn new(endpoint: EndpointId, fence: Fence, strikes: u32, term: Option<Term>) -> Self {
        Self { endpoint, fence, strikes, term }
    }

    /// What proves this grant when it is given back.
    pub fn claim(&self) -> Claim {
        match self.term {
            Some(term) => Claim::Lease(term.token),
            None => Claim::Assignment { endpoint: self.endpoint.clone(), fence: self.fence },
        }
    }
}

/// Token and time left of an exclusive lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Term {
    /// Proves ownership.
    pub token: Token,
    /// Time to the deadline when the store answered.
    pub remaining: Duration,
}

impl Term {
    /// A term, for implementors of stores.
    pub const fn new(token: Token, remaining: Duration) -> Self {
        Self { token, remaining }
    }
}

/// Asks for a later deadline.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RenewRequest {
    /// The pool.
    pub pool: PoolName,
    /// The lease.
    pub token: Token,
    /// Time from now to the new deadline, above zero and at most the pool's largest.
    pub ttl: Duration,
}

impl RenewRequest {
    /// A request for this much time from now.
    pub const fn new(pool: PoolName, token: Token, ttl: Duration) -> Self {
        Self { pool, token, ttl }
    }
}

/// What came of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RenewReply {
    /// The lease holds for this long from now; less than asked for when its largest lifetime
    /// ends sooner. A deadline is never moved closer.
    Renewed(Duration),
    /// The lease has ended, or was never this token's.
    NotOwner,
}

/// Gives leases back.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReleaseRequest {
    /// The pool.
    pub pool: PoolName,
    /// The leases with their verdicts, 1 to [`MAX_BATCH`].
    pub releases: Vec<Release>,
    /// Whether those who wait elsewhere are told when an endpoint becomes ready by it
    /// ([`LeaseStore::hints`](crate::LeaseStore::hints)). Default `false`.
    pub hint: bool,
}

impl ReleaseRequest {
    /// Gives these leases back.
    pub const fn new(pool: PoolName, releases: Vec<Release>) -> Self {
        Self { pool, releases, hint: false }
    }

    /// The same, with a hint to those who wait elsewhere or without.
    pub const fn with_hint(mut self, hint: bool) -> Self {
        self.hint = hint;
        self
    }
}

/// One lease with its verdict.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Release {
    /// Which lease.
    pub claim: Claim,
    /// What to do with the endpoint.
    pub verdict: Verdict,
    /// The site that a shun is for.
    pub site: Option<Site>,
}

impl Release {
    /// Gives a lease back with this verdict; a shun in it needs the site.
    pub const fn new(claim: Claim, verdict: Verdict, site: Option<Site>) -> Self {
        Self { claim, verdict, site }
    }
}

/// What proves a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// The token of an exclusive lease.
    Lease(Token),
    /// Endpoint and fence of a grant in a shared pool.
    Assignment {
        /// The endpoint.
        endpoint: EndpointId,
        /// The grant.
        fence: Fence,
    },
}

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseReply {
    /// The lease has ended and its verdict is in force.
    Released,
    /// The lease is no longer held: released before, run out, or never this token's. Nothing
    /// was changed.
    NotOwner,
}

/// Gives up a token.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CancelRequest {
    /// The pool.
    pub pool: PoolName,
    /// The token.
    pub token: Token,
    /// How long a late grant to this token is refused; at least as long as a call may be under
    /// way.
    pub tombstone: Duration,
}

impl CancelRequest {
    /// Gives a token up.
    pub const fn new(pool: PoolName, token: Token, tombstone: Duration) -> Self {
        Self { pool, token, tombstone }
    }
}

/// What came of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReply {
    /// There was a lease; it is ended without a cooldown. The token will not be granted again
    /// either: a repeated acquire may still be under way.
    Released,
    /// There was none; the token will not be granted any more.
    Tombstoned,
}

/// Asks for a bounded clean-up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReapRequest {
    /// The pool.
    pub pool: PoolName,
}

impl ReapRequest {
    /// Cleans this pool up.
    pub const fn new(pool: PoolName) -> Self {
        Self { pool }
    }
}

/// What a clean-up did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReapReply {
    /// Leases past their deadline that were taken back, at most [`MAX_SWEEP`].
    pub reclaimed: usize,
    /// Endpoints past their cooldown that were readied, at most [`MAX_SWEEP`].
    pub promoted: usize,
    /// Whether more of either is left.
    pub more: bool,
}

impl ReapReply {
    /// A reply, for implementors of stores.
    pub const fn new(reclaimed: usize, promoted: usize, more: bool) -> Self {
        Self { reclaimed, promoted, more }
    }
}
