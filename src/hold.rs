//! What an exchange holds on to: a lease of its own, or one that its caller holds.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    Lent(HeldLease, Option<Site>),
    Probed(Probed),
}

/// The endpoint of a probe: with a lease, or parked and lent by an administrator's word.
#[derive(Clone)]
pub(crate) struct Probed(Arc<Trial>);

struct Trial {
    pool: Pool,
    endpoint: Arc<Endpoint>,
    state: Mutex<TrialState>,
}

struct TrialState {
    lease: Option<Lease>,
    seen: Option<Outcome>,
}

impl Probed {
    pub(crate) fn new(pool: Pool, endpoint: Arc<Endpoint>, lease: Option<Lease>) -> Self {
        Self(Arc::new(Trial {
            pool,
            endpoint,
            state: Mutex::new(TrialState { lease, seen: None }),
        }))
    }

    fn state(&self) -> MutexGuard<'_, TrialState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The endpoint as the inventory has it now, or had it last.
    fn endpoint(&self) -> Arc<Endpoint> {
        let Trial { pool, endpoint, .. } = &*self.0;
        let now = pool.inventory().snapshot().get(endpoint.id()).cloned();
        now.unwrap_or_else(|| endpoint.clone())
    }

    /// It asks this site next, which a verdict is about from now on.
    pub(crate) fn at(self, site: Option<Site>) -> Self {
        if let Some(lease) = &mut self.state().lease {
            lease.set_site(site);
        }
        self
    }

    /// Something is sent: whoever drops the probe from now on gives up in the middle.
    fn begin(&self) {
        if let Some(lease) = &mut self.state().lease {
            lease.note(Outcome::Cancelled);
        }
    }

    fn note(&self, outcome: Outcome) {
        let mut state = self.state();
        state.seen = Some(outcome);
        if let Some(lease) = &mut state.lease {
            lease.note(outcome);
        }
    }

    /// What the endpoint had served was given up.
    fn leave(&self) {
        let mut state = self.state();
        state.seen = Some(Outcome::Cancelled);
        if let Some(lease) = &mut state.lease {
            lease.note_left();
        }
    }

    /// Gives the lease back, if there is one, and tells what was seen.
    pub(crate) fn end(&self) -> Option<Outcome> {
        let mut state = self.state();
        let (lease, seen) = (state.lease.take(), state.seen);
        drop(state);
        drop(lease);
        seen
    }
}

impl fmt::Debug for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probed").field("endpoint", self.0.endpoint.id()).finish_non_exhaustive()
    }
}

impl Hold {
    pub(crate) fn endpoint(&self) -> Arc<Endpoint> {
        match self {
            Self::Own(lease) => lease.endpoint(),
            Self::Lent(held, _) => held.resolved(),
            Self::Probed(probed) => probed.endpoint(),
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        match self {
            Self::Own(lease) => lease.pool(),
            Self::Lent(held, _) => held.pool(),
            Self::Probed(probed) => &probed.0.pool,
        }
    }

    pub(crate) fn fence(&self) -> Fence {
        match self {
            Self::Own(lease) => lease.fence(),
            Self::Lent(held, _) => held.fence(),
            Self::Probed(probed) => probed.state().lease.as_ref().map_or(Fence(0), Lease::fence),
        }
    }

    pub(crate) fn trusted_until(&self) -> Option<Instant> {
        match self {
            Self::Own(lease) => lease.trusted_until(),
            Self::Lent(held, _) => held.lease().trusted_until(),
            Self::Probed(probed) => probed.state().lease.as_ref().and_then(Lease::trusted_until),
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted_until().is_none_or(|until| Instant::now() < until)
    }

    /// The end of the trust, for what is sent beside the exchange.
    pub(crate) fn trust(&mut self) -> Option<Trust> {
        match self {
            Self::Own(lease) => lease.trust(),
            Self::Lent(held, _) => held.lease().trust(),
            Self::Probed(probed) => probed.state().lease.as_mut().and_then(Lease::trust),
        }
    }

    /// Whether it serves for one more exchange with this site: enough of its trust is left, and the
    /// store knew of the site when it granted the endpoint, which may rest for another. An own lease
    /// is rather taken anew; a lent one is all there is.
    pub(crate) fn lasts_for(&self, site: &Site) -> bool {
        match self {
            Self::Own(lease) => lease.lasts() && lease.is_for(site),
            Self::Lent(..) | Self::Probed(_) => true,
        }
    }

    /// What a verdict on a lent lease is about from now on; an own one was taken for its site.
    pub(crate) fn set_site(&mut self, site: Option<Site>) {
        match self {
            Self::Lent(_, of) => *of = site,
            Self::Probed(probed) => *probed = probed.clone().at(site),
            Self::Own(_) => {}
        }
    }

    /// Something is sent: whoever drops it from now on gives up in the middle.
    pub(crate) fn begin(&mut self) {
        match self {
            Self::Own(lease) => lease.note(Outcome::Cancelled),
            Self::Lent(held, site) => held.note(Outcome::Cancelled, site.clone()),
            Self::Probed(probed) => probed.begin(),
        }
    }

    /// Ends the exchange: an own lease is given back, a lent one only learns of it.
    pub(crate) fn finish(self, outcome: Outcome) {
        match self {
            Self::Own(lease) => lease.finish(outcome),
            Self::Lent(held, site) => held.note(outcome, site),
            Self::Probed(probed) => probed.note(outcome),
        }
    }

    /// Ends an exchange whose caller gave up what the endpoint had served.
    pub(crate) fn leave(self) {
        match self {
            Self::Own(lease) => lease.leave(),
            Self::Probed(probed) => probed.leave(),
            lent @ Self::Lent(..) => lent.finish(Outcome::Cancelled),
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
