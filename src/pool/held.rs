//! A lease kept for several requests.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Lease, Pool};
use crate::endpoint::Endpoint;
use crate::id::{EndpointId, Fence};
use crate::outcome::Outcome;
use crate::site::Site;

/// A lease that several requests use one after the other, or at once: a login, a paged list.
///
/// It is renewed until its last clone is dropped, within the pool's largest lifetime, and then
/// given back with the worst that its requests saw, or as unused. Hand it to a request with
/// [`LeaseOptions::held`](crate::LeaseOptions::held). Budgets are waited for as usual, so keep
/// it for what belongs together and no longer. It has nothing to do with the hold after a failover,
/// in which a whole pool grants nothing.
///
/// ```
/// use reqwest_lease::{Endpoint, EndpointId, Inventory, LeaseMiddleware, LeaseOptions};
/// use reqwest_lease::{Pool, PoolName};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let endpoint = Endpoint::new(EndpointId::new("a")?, "http://127.0.0.1:1", None)?;
/// # let inventory = Inventory::from_endpoints([endpoint])?;
/// let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
/// let client = LeaseMiddleware::builder(pool.clone()).build()?.into_client();
///
/// let held = pool.hold().await?;
/// for page in ["http://example.com/1", "http://example.com/2"] {
///     let options = LeaseOptions::new().held(&held);
///     let sent = client.get(page).with_extension(options).send().await;
///     assert!(sent.is_err(), "nobody listens at this endpoint");
/// }
/// drop(held);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HeldLease(Arc<Held>);

struct Held {
    lease: Mutex<Lease>,
    endpoint: Arc<Endpoint>,
    pool: Pool,
    fence: Fence,
}

impl HeldLease {
    pub(super) fn new(lease: Lease) -> Self {
        Self(Arc::new(Held {
            endpoint: lease.endpoint(),
            pool: lease.pool().clone(),
            fence: lease.fence(),
            lease: Mutex::new(lease),
        }))
    }

    /// The endpoint that is held.
    pub fn endpoint(&self) -> &EndpointId {
        self.0.endpoint.id()
    }

    /// The grant's number in the pool.
    pub fn fence(&self) -> Fence {
        self.0.fence
    }

    /// Whether the lease is still to be relied on.
    pub fn is_valid(&self) -> bool {
        self.lease().is_trusted()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// The endpoint as the inventory has it now, or had it last.
    pub(crate) fn resolved(&self) -> Arc<Endpoint> {
        self.0.pool.endpoint(self.endpoint()).unwrap_or_else(|| self.0.endpoint.clone())
    }

    pub(crate) fn lease(&self) -> std::sync::MutexGuard<'_, Lease> {
        self.0.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a request saw of a site; the worst counts.
    pub(crate) fn note(&self, outcome: Outcome, site: Option<Site>) {
        self.lease().note_worse(outcome, site);
    }
}

impl fmt::Debug for HeldLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLease").field("endpoint", self.endpoint()).finish_non_exhaustive()
    }
}
