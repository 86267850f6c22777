//! The one public error.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::id::{InvalidName, PoolName};
pub use crate::kind::Kind;
use crate::outcome::Attempt;

/// A boxed error of any type.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What this crate fails with.
///
/// Messages hold no URL and no secret. An error of the HTTP exchange itself is passed on as
/// the `reqwest::Error` that it is; this type is for what leases, budgets and endpoints add.
///
/// ```
/// use reqwest_lease::{Error, Inventory, Kind};
///
/// let bad = "[[endpoint]]\nid = 'a'\nurl = 'ftp://h:1'\n";
/// let error: Error = Inventory::from_toml(bad).unwrap_err();
/// assert_eq!(error.kind(), Kind::Inventory);
/// assert!(!error.is_transient());
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    tried: Vec<Attempt>,
    not_run: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            retry_after: None,
            tried: Vec::new(),
            not_run: false,
            source: None,
        }))
    }

    /// A store's own failure, for implementors of [`LeaseStore`](crate::LeaseStore).
    ///
    /// The message must hold no URL and no secret.
    pub fn store_unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::StoreUnavailable, message)
    }

    /// A store that will not serve until somebody changes something (its credentials, permissions,
    /// version or settings), for implementors of [`LeaseStore`](crate::LeaseStore). Unlike
    /// [`store_unavailable`](Self::store_unavailable) it is not asked again.
    ///
    /// The call may have taken place unless [`without_effect`](Self::without_effect) says
    /// otherwise. The message must hold no URL and no secret.
    pub fn store_refused(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::StoreRefused, message)
    }

    /// A call that breaks a store's rules and had no effect, for implementors of
    /// [`LeaseStore`](crate::LeaseStore): a ttl of zero or over the largest, a batch that is too
    /// large, an order that names unknown endpoints.
    ///
    /// The message names what and where. It must hold no URL and no secret.
    pub fn invalid_call(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::InvalidCall, message)
    }

    /// A pool that has no state in the store, for implementors of
    /// [`LeaseStore`](crate::LeaseStore). It is never taken for an empty one.
    ///
    /// ```
    /// use reqwest_lease::{Error, Kind, PoolName};
    ///
    /// let error = Error::pool_uninitialised(&PoolName::new("vn")?);
    /// assert_eq!(error.kind(), Kind::PoolUninitialised);
    /// assert!(!error.is_transient() && !error.may_have_run());
    /// # Ok::<(), reqwest_lease::InvalidName>(())
    /// ```
    pub fn pool_uninitialised(pool: &PoolName) -> Self {
        let message =
            format!("pool {pool} has no state: it was never set up, or its state was lost");
        Self::new(Kind::PoolUninitialised, message)
    }

    /// A pool whose state another version has written in a layout that is unknown here, for
    /// implementors of [`LeaseStore`](crate::LeaseStore).
    pub fn pool_too_new(pool: &PoolName) -> Self {
        let message = format!("pool {pool} has a layout that is unknown here");
        Self::new(Kind::PoolTooNew, message)
    }

    /// An inventory source's own failure, for implementors of
    /// [`InventorySource`](crate::InventorySource).
    ///
    /// The message must hold no URL and no secret.
    pub fn inventory(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Inventory, message)
    }

    pub(crate) fn with_retry_after(mut self, after: Duration) -> Self {
        self.inner().retry_after = Some(after);
        self
    }

    pub(crate) fn with_tried(mut self, tried: Vec<Attempt>) -> Self {
        self.inner().tried = tried;
        self
    }

    /// Says of a call to the store that it surely had no effect.
    pub fn without_effect(mut self) -> Self {
        self.inner().not_run = true;
        self
    }

    /// Adds the error underneath, which must be free of secrets.
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.inner().source = Some(source.into().into());
        self
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }

    /// What went wrong.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Whether the same request may succeed later without anybody changing anything.
    ///
    /// After [`LeaseExpired`](Kind::LeaseExpired) the site may have served the request already.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind(),
            Kind::PoolExhausted
                | Kind::PoolPaused
                | Kind::PoolLoading
                | Kind::PoolWithoutOrders
                | Kind::StoreUnavailable
                | Kind::BudgetExceeded
                | Kind::SiteRefuses
                | Kind::ProxyUnreachable
                | Kind::LeaseExpired
                | Kind::TimedOut
        )
    }

    /// Whether the store may carry out the same call a little later.
    pub(crate) fn is_of_an_outage(&self) -> bool {
        matches!(self.kind(), Kind::StoreUnavailable | Kind::PoolWithoutOrders)
    }

    /// Whether the call to the store that failed may have taken place, or may still.
    ///
    /// Such a call is repeated with the same token, or its token is cancelled. `false` for
    /// errors that are not the store's.
    pub fn may_have_run(&self) -> bool {
        matches!(self.kind(), Kind::StoreUnavailable | Kind::StoreRefused) && !self.0.not_run
    }

    /// How long until it is worth trying again; `None` where that is not known, as while an
    /// administrator's order stands or the store does not answer.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The endpoints that were tried, in order, with what came of each.
    pub fn tried(&self) -> &[Attempt] {
        &self.0.tried
    }

    /// Finds this crate's error in what a `reqwest_middleware` client returned, also below a
    /// retry middleware that wrapped it.
    pub fn find_in(error: &reqwest_middleware::Error) -> Option<&Self> {
        match error {
            reqwest_middleware::Error::Middleware(inner) => inner.chain().find_map(Self::find),
            reqwest_middleware::Error::Reqwest(inner) => Self::find(inner),
        }
    }

    /// Finds this crate's error in any error, or in what it was caused by.
    pub fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            if let Some(carrier) = error.downcast_ref::<Carrier>() {
                return Some(&carrier.error);
            }
            if let Some(code) = error.downcast_ref::<Code>() {
                return Some(&code.0);
            }
            // An io::Error and a middleware error keep what they wrap out of `source`.
            if let Some(inner) =
                error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref())
            {
                return Self::find(inner);
            }
            if let Some(inner) = error.downcast_ref::<reqwest_middleware::Error>() {
                return Self::find_in(inner);
            }
            next = error.source();
        }
        None
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(after) = self.0.retry_after {
            write!(f, ", next chance in {after:.1?}")?;
        }
        if !self.0.tried.is_empty() {
            f.write_str(" (tried")?;
            for (nth, attempt) in self.0.tried.iter().enumerate() {
                write!(f, "{} {attempt}", if nth == 0 { "" } else { "," })?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("retry_after", &self.0.retry_after)
            .field("tried", &self.0.tried)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Brings an error through reqwest-middleware.
///
/// A transparent wrapper, as reqwest-retry's is, hides the error itself and shows only its
/// source. The carrier prints as the error, and its source knows the error too.
#[derive(Debug)]
pub(crate) struct Carrier {
    error: Error,
    code: Code,
}

impl Carrier {
    pub(crate) fn new(error: Error) -> Self {
        Self { code: Code(error.clone()), error }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StdError for Carrier {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.code)
    }
}

/// An error's kind as the cause of it.
#[derive(Debug)]
struct Code(Error);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind().fmt(f)
    }
}

impl StdError for Code {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::new(Kind::Config, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EndpointId;
    use crate::outcome::Outcome;

    #[test]
    fn not_now_tells_when_and_what_was_tried() {
        let error = Error::new(Kind::PoolExhausted, "pool vn exhausted")
            .with_retry_after(Duration::from_millis(1500))
            .with_tried(vec![
                Attempt { endpoint: EndpointId::new("a").unwrap(), outcome: Outcome::Stalled },
                Attempt { endpoint: EndpointId::new("b").unwrap(), outcome: Outcome::Unknown },
            ]);
        let text = "pool vn exhausted, next chance in 1.5s (tried a: stalled, b: unknown)";
        assert_eq!(error.to_string(), text);
        assert!(error.is_transient());
    }

    #[test]
    fn a_call_to_the_store_may_have_run_unless_it_is_known_not_to() {
        let unavailable = Error::store_unavailable("the store did not answer in time");
        assert!(unavailable.may_have_run() && unavailable.is_transient());
        assert!(!unavailable.without_effect().may_have_run());
        let refused = Error::new(Kind::StoreRefused, "the store refused the credentials");
        assert!(!refused.is_transient());
        assert!(!Error::new(Kind::PoolPaused, "x").may_have_run());
    }

    #[test]
    fn it_is_found_under_wrappers() {
        let wrap = |error: Error| std::io::Error::other(error);
        let error = reqwest_middleware::Error::middleware(wrap(Error::new(Kind::PoolPaused, "x")));
        assert_eq!(Error::find_in(&error).map(Error::kind), Some(Kind::PoolPaused));
        let plain = reqwest_middleware::Error::middleware(std::io::Error::other("x"));
        assert!(Error::find_in(&plain).is_none());
    }
}
