//! Which of this crate's errors are worth a retry by reqwest-retry.

use reqwest::Response;
use reqwest_retry::{DefaultRetryableStrategy, Retryable, RetryableStrategy};

use crate::error::{Error, Kind};

/// A strategy for reqwest-retry's middlewares that knows this crate's errors; for all others it
/// is the default strategy.
///
/// Errors that pass by themselves ([`Error::is_transient`]) are retried, the rest is not. Two of
/// them are not retried either: after [`LeaseExpired`](Kind::LeaseExpired) the site may have served
/// the request already, and after [`TimedOut`](Kind::TimedOut) a retry would have the request's whole
/// timeout once more.
///
/// ```
/// use reqwest_lease::{LeaseMiddleware, LeaseRetryStrategy};
/// use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
///
/// # fn example(middleware: LeaseMiddleware) -> reqwest_middleware::ClientWithMiddleware {
/// let policy = ExponentialBackoff::builder().build_with_max_retries(3);
/// let retry = RetryTransientMiddleware::new_with_policy_and_strategy(policy, LeaseRetryStrategy);
/// middleware.into_client_with(|builder| builder.with(retry))
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct LeaseRetryStrategy;

impl RetryableStrategy for LeaseRetryStrategy {
    fn handle(&self, result: &reqwest_middleware::Result<Response>) -> Option<Retryable> {
        match result.as_ref().err().and_then(Error::find_in) {
            Some(error) if is_worth_it(error) => Some(Retryable::Transient),
            Some(_) => Some(Retryable::Fatal),
            None => DefaultRetryableStrategy.handle(result),
        }
    }
}

fn is_worth_it(error: &Error) -> bool {
    error.is_transient() && !matches!(error.kind(), Kind::LeaseExpired | Kind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(kind: Kind) -> Option<Retryable> {
        let error = Error::new(kind, "as it goes");
        LeaseRetryStrategy.handle(&Err(reqwest_middleware::Error::middleware(error)))
    }

    #[test]
    fn what_the_site_may_have_served_or_took_all_its_time_is_not_repeated() {
        for kind in [Kind::LeaseExpired, Kind::TimedOut, Kind::PoolClosed] {
            assert!(matches!(says(kind), Some(Retryable::Fatal)), "{kind}");
        }
        for kind in [Kind::PoolExhausted, Kind::StoreUnavailable, Kind::ProxyUnreachable] {
            assert!(matches!(says(kind), Some(Retryable::Transient)), "{kind}");
        }
    }
}
