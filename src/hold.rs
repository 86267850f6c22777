//! What an exchange holds on to: a lease of its own, or one that its caller holds.

use std::future::Future;
use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use crate::endpoint::Endpoint;
use crate::id::Fence;
use crate::outcome::Outcome;
use crate::pool::{HeldLease, Lease, Pool};
use crate::site::Site;

/// The right to send through one endpoint.
pub(crate) enum Hold {
    Own(Lease),
    Lent(HeldLease, Option<Site>),
}

impl Hold {
    pub(crate) fn endpoint(&self) -> Arc<Endpoint> {
        match self {
            Self::Own(lease) => lease.endpoint().clone(),
            Self::Lent(held, _) => held.resolved(),
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        match self {
            Self::Own(lease) => lease.pool(),
            Self::Lent(held, _) => held.pool(),
        }
    }

    pub(crate) fn fence(&self) -> Fence {
        match self {
            Self::Own(lease) => lease.fence(),
            Self::Lent(held, _) => held.fence(),
        }
    }

    pub(crate) fn trusted_until(&self) -> Option<Instant> {
        match self {
            Self::Own(lease) => lease.trusted_until(),
            Self::Lent(held, _) => held.lease().trusted_until(),
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted_until().is_none_or(|until| Instant::now() < until)
    }

    /// Whether enough of the trust is left for one more exchange: an own lease is rather taken
    /// anew than run out of. A lent one is all there is.
    pub(crate) fn lasts(&self) -> bool {
        match self {
            Self::Own(lease) => lease.lasts(),
            Self::Lent(..) => true,
        }
    }

    /// What a verdict is about from now on.
    pub(crate) fn set_site(&mut self, site: Option<Site>) {
        match self {
            Self::Own(lease) => lease.set_site(site),
            Self::Lent(_, of) => *of = site,
        }
    }

    /// Ends the exchange: an own lease is given back, a lent one only learns of it.
    pub(crate) fn finish(self, outcome: Outcome) {
        match self {
            Self::Own(lease) => lease.finish(outcome),
            Self::Lent(held, site) => held.note(outcome, site),
        }
    }

    /// Runs a future for as long as the lease may be relied on; `None` when it ran out.
    pub(crate) async fn within_trust<F: Future>(&self, future: F) -> Option<F::Output> {
        tokio::pin!(future);
        loop {
            let Some(until) = self.trusted_until() else { return Some(future.await) };
            match timeout_at(until, &mut future).await {
                Ok(output) => return Some(output),
                // A renewal may have moved the end.
                Err(_) if self.is_trusted() => {}
                Err(_) => return None,
            }
        }
    }
}
