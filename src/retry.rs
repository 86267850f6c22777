//! Which of this crate's errors are worth a retry by reqwest-retry.

use reqwest::Response;
use reqwest_retry::{DefaultRetryableStrategy, Retryable, RetryableStrategy};

use crate::error::Error;

/// A strategy for reqwest-retry's middlewares that knows this crate's errors; for all others it
/// is the default strategy.
///
/// Errors that pass by themselves ([`Error::is_transient`]) are retried, the rest is not.
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
            Some(error) if error.is_transient() => Some(Retryable::Transient),
            Some(_) => Some(Retryable::Fatal),
            None => DefaultRetryableStrategy.handle(result),
        }
    }
}
