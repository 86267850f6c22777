//! What a request needs of a lease, and why it has none yet.

use std::time::Duration;

use super::Pool;
use crate::error::{Error, Kind};
use crate::id::EndpointId;
use crate::site::Site;
use crate::store::AcquireReply;

/// What a request needs of a lease. Requests that want the same can be asked for together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) ttl: Duration,
    pub(crate) site: Option<Site>,
    pub(crate) exclude: Vec<EndpointId>,
    pub(crate) prefer: Option<EndpointId>,
}

/// Why there is no lease yet, and when to ask again.
#[derive(Debug, Clone)]
pub(super) struct Later {
    pub(super) after: Option<Duration>,
    /// Others in the queue might be served.
    pub(super) restricted: bool,
    pub(super) why: Error,
}

impl Later {
    pub(super) fn new(why: Error) -> Self {
        Self { after: None, restricted: false, why }
    }

    pub(super) fn exhausted(pool: &Pool) -> Self {
        let mut message = format!("no endpoint of pool {} came free in time", pool.name());
        let strangers = pool.0.strangers.count();
        if strangers > 0 {
            message += &format!("; it has at least {strangers} that the inventory here lacks");
        }
        Self::new(Error::new(Kind::PoolExhausted, message))
    }

    fn paused(pool: &Pool) -> Self {
        Self::new(Error::new(Kind::PoolPaused, format!("pool {} is paused", pool.name())))
    }

    fn loading(pool: &Pool) -> Self {
        let message = format!("pool {} is being loaded", pool.name());
        Self::new(Error::new(Kind::PoolLoading, message))
    }

    /// What a reply that grants nothing comes to.
    pub(super) fn of(reply: &AcquireReply, pool: &Pool) -> Self {
        match reply {
            AcquireReply::Empty { next, restricted } => {
                Self { after: *next, restricted: *restricted, ..Self::exhausted(pool) }
            }
            AcquireReply::Paused => Self::paused(pool),
            AcquireReply::Loading => Self::loading(pool),
            AcquireReply::Hold(rest) => Self::exhausted(pool).after(*rest),
            // Fresh tokens cannot have been cancelled.
            AcquireReply::Granted(_) | AcquireReply::Cancelled => {
                Self::exhausted(pool).after(pool.rest())
            }
        }
    }

    pub(super) fn after(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.why.is_of_an_outage()
    }

    /// With some excluded and no other on its way back, waiting is for nothing. Endpoints that the
    /// inventory here lacks are no such: a reload may bring them, or a sync others.
    pub(super) fn is_hopeless(&self, wants: &Wants) -> bool {
        let exhausted = self.why.kind() == Kind::PoolExhausted;
        self.after.is_none() && exhausted && !wants.exclude.is_empty()
    }
}

impl From<Later> for Error {
    fn from(later: Later) -> Self {
        match later.after {
            Some(after) if later.why.kind() == Kind::PoolExhausted => {
                later.why.with_retry_after(after)
            }
            _ => later.why,
        }
    }
}
