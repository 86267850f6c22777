//! How a pool begins.

use super::PoolConfig;

/// How a pool is set up: its configuration, and what it begins with.
///
/// ```
/// use reqwest_lease::{Order, PoolConfig, Setup};
///
/// let plain = Order::Init(PoolConfig::default().into());
/// let large = Order::Init(Setup::new(PoolConfig::default()).loading());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setup {
    /// Mode, policy and limits.
    pub config: PoolConfig,
    /// Whether the pool stays closed, to be loaded ([`Order::Load`](super::Order::Load)), until it
    /// is opened. Default `false`.
    pub loading: bool,
    /// Whether the pool's state was lost while workers may still be using its endpoints. Default
    /// `false`.
    ///
    /// An exclusive pool then grants nothing until its largest ttl has passed, whatever
    /// [`failover_hold`](PoolConfig::failover_hold) says: leases that were granted before, with this
    /// largest ttl, have run out by then. [`Order::EndHold`](super::Order::EndHold) ends it sooner.
    /// Fences begin at the store's time in microseconds, above those of the lost pool unless its
    /// store's clock was ahead; what was granted before is no longer given back. A shared pool
    /// reserves nothing, so only its fences begin there.
    pub after_loss: bool,
}

impl Setup {
    /// A new pool that is open at once.
    pub const fn new(config: PoolConfig) -> Self {
        Self { config, loading: false, after_loss: false }
    }

    /// To be loaded before it opens.
    pub const fn loading(mut self) -> Self {
        self.loading = true;
        self
    }

    /// In the place of one whose state was lost.
    pub const fn after_loss(mut self) -> Self {
        self.after_loss = true;
        self
    }
}

impl From<PoolConfig> for Setup {
    fn from(config: PoolConfig) -> Self {
        Self::new(config)
    }
}
