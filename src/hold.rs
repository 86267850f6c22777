//! What an exchange holds on to: a lease of its own, or one that its caller holds.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::time::{Instant, timeout_at};

use crate::endpoint::Endpoint;
use crate::id::Fence;
use crate::outcome::Outcome;
use crate::pool::{HeldLease, Lease, Pool, Trust};
use crate::site::Site;

/// The right to send through one endpoint.
pub(crate) enum Hold {
    Own(Lease),
    Lent(HeldLease),
}

impl Hold {
    pub(crate) fn endpoint(&self) -> Arc<Endpoint> {
        match self {
            Self::Own(lease) => lease.endpoint().clone(),
            Self::Lent(held) => held.resolved(),
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        match self {
            Self::Own(lease) => lease.pool(),
            Self::Lent(held) => held.pool(),
        }
    }

    pub(crate) fn fence(&self) -> Fence {
        match self {
            Self::Own(lease) => lease.fence(),
            Self::Lent(held) => held.fence(),
        }
    }

    pub(crate) fn trusted_until(&self) -> Option<Instant> {
        match self {
            Self::Own(lease) => lease.trusted_until(),
            Self::Lent(held) => held.lease().trusted_until(),
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted_until().is_none_or(|until| Instant::now() < until)
    }

    /// The end of the trust, for what is sent beside the exchange.
    pub(crate) fn trust(&mut self) -> Option<Trust> {
        match self {
            Self::Own(lease) => lease.trust(),
            Self::Lent(held) => held.lease().trust(),
        }
    }

    /// Whether enough of the trust is left for one more exchange: an own lease is rather taken
    /// anew than run out of. A lent one is all there is.
    pub(crate) fn lasts(&self) -> bool {
        match self {
            Self::Own(lease) => lease.lasts(),
            Self::Lent(_) => true,
        }
    }

    /// What a verdict on an own lease is about from now on.
    pub(crate) fn set_site(&mut self, site: Option<Site>) {
        if let Self::Own(lease) = self {
            lease.set_site(site);
        }
    }

    /// Ends the exchange: an own lease is given back, a lent one only learns of it.
    pub(crate) fn finish(self, outcome: Outcome) {
        match self {
            Self::Own(lease) => lease.finish(outcome),
            Self::Lent(held) => held.note(outcome),
        }
    }

    /// Runs a future for as long as the lease may be relied on; `None` when it ran out. The future
    /// is not polled after that: a process that slept has much to go on with.
    pub(crate) async fn within_trust<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut trusted = pin!(poll_fn(|cx| match self.is_trusted() {
            true => future.as_mut().poll(cx).map(Some),
            false => Poll::Ready(None),
        }));
        loop {
            let Some(until) = self.trusted_until() else { return trusted.await };
            match timeout_at(until, &mut trusted).await {
                Ok(output) => return output,
                // A renewal may have moved the end.
                Err(_) if self.is_trusted() => {}
                Err(_) => return None,
            }
        }
    }
}
