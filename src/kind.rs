//! The words for what went wrong.

use std::fmt;

/// What went wrong, as a closed word that logs and programs can go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A name, builder value or option is not valid.
    Config,
    /// The inventory was refused; the message names line and column.
    Inventory,
    /// A request asks for what a leased request cannot do (HTTP/3, say).
    UnsupportedRequest,
    /// No endpoint came free within the wait.
    PoolExhausted,
    /// An administrator has paused the pool.
    PoolPaused,
    /// The pool is being loaded and not open yet.
    PoolLoading,
    /// The pool has no state: it was never set up, or its state was lost.
    PoolUninitialised,
    /// The pool's state was written by another version of this crate, in a layout that is unknown
    /// here.
    PoolTooNew,
    /// The pool's standing orders are not where the rest of its state is: they are on the move with
    /// a cluster's slot, or lost. Until they are there nothing is granted, for what is not there is
    /// not taken for none.
    PoolWithoutOrders,
    /// No pool of this name is known here.
    UnknownPool,
    /// The pool has been shut down in this process.
    PoolClosed,
    /// The store did not answer, or cannot serve now.
    StoreUnavailable,
    /// The store will not serve until somebody changes something: credentials, permissions, its
    /// version or its settings.
    StoreRefused,
    /// A call to the store breaks its rules (a ttl over the largest, say).
    InvalidCall,
    /// The wait for the site's budget would be longer than allowed.
    BudgetExceeded,
    /// The site went on answering 429 or 503 after as many pauses as it was given.
    SiteRefuses,
    /// The endpoint could not be reached, or hung up instead of opening a tunnel, after all attempts.
    ProxyUnreachable,
    /// The endpoint refused its credentials, after all attempts.
    CredentialsRefused,
    /// The endpoint's own rules forbid the target, after all attempts.
    ProxyDenied,
    /// The lease ran out before the exchange was over.
    LeaseExpired,
    /// The request's own time was up while it waited for budget or lease.
    TimedOut,
    /// More redirects than allowed.
    TooManyRedirects,
    /// A redirect led to an address that may not be fetched.
    TargetRefused,
    /// No HTTP client could be built for the endpoint.
    Client,
}

impl Kind {
    /// The word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Inventory => "inventory",
            Self::UnsupportedRequest => "unsupported_request",
            Self::PoolExhausted => "pool_exhausted",
            Self::PoolPaused => "pool_paused",
            Self::PoolLoading => "pool_loading",
            Self::PoolUninitialised => "pool_uninitialised",
            Self::PoolTooNew => "pool_too_new",
            Self::PoolWithoutOrders => "pool_without_orders",
            Self::UnknownPool => "unknown_pool",
            Self::PoolClosed => "pool_closed",
            Self::StoreUnavailable => "store_unavailable",
            Self::StoreRefused => "store_refused",
            Self::InvalidCall => "invalid_call",
            Self::BudgetExceeded => "budget_exceeded",
            Self::SiteRefuses => "site_refuses",
            Self::ProxyUnreachable => "proxy_unreachable",
            Self::CredentialsRefused => "credentials_refused",
            Self::ProxyDenied => "proxy_denied",
            Self::LeaseExpired => "lease_expired",
            Self::TimedOut => "timed_out",
            Self::TooManyRedirects => "too_many_redirects",
            Self::TargetRefused => "target_refused",
            Self::Client => "client",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
