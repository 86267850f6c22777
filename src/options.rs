//! What a single request may ask for, and what it is told afterwards.

use std::time::Duration;

use crate::hold::Probed;
use crate::id::{EndpointId, Fence, PoolName};
use crate::outcome::{Attempt, Outcome};
use crate::pool::HeldLease;

/// Options of one request, given as an extension.
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::LeaseOptions;
///
/// # fn example(client: reqwest_middleware::ClientWithMiddleware) {
/// let request = client
///     .get("https://example.com/large")
///     .with_extension(LeaseOptions::new().ttl(Duration::from_secs(300)).renew(true));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until a request has them"]
pub struct LeaseOptions {
    pub(crate) pool: Option<PoolName>,
    pub(crate) held: Option<HeldLease>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) attempts: Option<u32>,
    pub(crate) renew: Option<bool>,
    pub(crate) charges: Vec<Box<str>>,
    pub(crate) wait_out_pauses: bool,
    /// Endpoints that are only taken when no other one is free.
    pub(crate) avoid: Vec<EndpointId>,
    /// The endpoint of a probe.
    pub(crate) probed: Option<Probed>,
}

impl LeaseOptions {
    /// Whether the request goes through one endpoint, come what may.
    pub(crate) fn is_bound(&self) -> bool {
        self.held.is_some() || self.probed.is_some()
    }

    /// The client's defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leases from this pool. Default: the client's first.
    pub fn pool(mut self, pool: PoolName) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Goes through this held lease of one of the client's pools. Failures are not tried again
    /// on another endpoint.
    pub fn held(mut self, held: &HeldLease) -> Self {
        self.held = Some(held.clone());
        self
    }

    /// Time from grant to deadline, at most the pool's largest. Default: the pool's.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Longest wait for budget and lease together, over all hops. Default: the pool's.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    /// Most endpoints to try. Default: the client's; zero counts as one.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Charges the request to the budget of this key too, besides its site's; see
    /// [`BudgetsBuilder::key`](crate::BudgetsBuilder::key). May be called for several keys.
    ///
    /// It goes out when all of them let it, and is charged to all or none: each attempt and each
    /// redirect hop, as the site is. A key that no rule is for is not limited. Errors show it.
    ///
    /// ```
    /// use reqwest_lease::{Budget, Budgets, LeaseOptions};
    ///
    /// let budgets = Budgets::builder()
    ///     .default(Budget::per_second(2))
    ///     .key("account-7", Budget::per_minute(10).in_flight(1))
    ///     .build()?;
    /// let options = LeaseOptions::new().charge("account-7");
    /// # Ok::<(), reqwest_lease::Error>(())
    /// ```
    pub fn charge(mut self, key: impl Into<Box<str>>) -> Self {
        let key = key.into();
        if !self.charges.contains(&key) {
            self.charges.push(key);
        }
        self
    }

    /// Whether a request that is answered with 429 or 503 waits until the site's pause is over
    /// and is sent again, if its longest wait allows that. Default no: such an answer is
    /// returned, and the next request waits.
    ///
    /// It costs none of the [attempts](Self::attempts). A request whose body is a stream is sent
    /// once.
    pub fn wait_out_pauses(mut self, wait: bool) -> Self {
        self.wait_out_pauses = wait;
        self
    }

    /// Whether the lease is renewed while the exchange goes on. Default: the pool's.
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = Some(renew);
        self
    }
}

/// How a response came about; among the response's extensions.
///
/// When the exchange itself fails, the error is reqwest's own and cannot carry it. It is then
/// among the request's extensions, where middlewares above and callers of
/// `ClientWithMiddleware::execute_with_extensions` find it. Of a
/// [`LeaseService`](crate::LeaseService) the error is an [`ExchangeError`](crate::ExchangeError),
/// which has it.
///
/// ```no_run
/// # async fn example(client: reqwest_middleware::ClientWithMiddleware) -> Result<(), Box<dyn std::error::Error>> {
/// use reqwest_lease::LeaseInfo;
///
/// let response = client.get("https://example.com/").send().await?;
/// if let Some(info) = response.extensions().get::<LeaseInfo>() {
///     println!("through {} after {:?}", info.endpoint(), info.lease_wait());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LeaseInfo {
    pub(crate) endpoint: EndpointId,
    pub(crate) pool: PoolName,
    pub(crate) fence: Fence,
    pub(crate) outcome: Outcome,
    pub(crate) trip: Trip,
}

/// Endpoints that failed an attempt before, under a retry; among the request's extensions.
#[derive(Debug, Clone)]
pub(crate) struct JustFailed(pub(crate) Vec<EndpointId>);

/// What a request has gone through so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trip {
    pub(crate) lease_wait: Duration,
    pub(crate) budget_wait: Duration,
    pub(crate) pauses: usize,
    pub(crate) hops: usize,
    pub(crate) failed: Vec<Attempt>,
}

impl LeaseInfo {
    /// The endpoint that the response came through, or that was tried last.
    pub fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    /// The pool it was leased from.
    pub fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The grant's number in the pool.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// What is known of the last attempt: of a response the outcome if its body comes to its end,
    /// of a failed exchange what was seen.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Time spent waiting for leases, over all hops and attempts.
    pub fn lease_wait(&self) -> Duration {
        self.trip.lease_wait
    }

    /// Time spent waiting for budgets, over all hops.
    pub fn budget_wait(&self) -> Duration {
        self.trip.budget_wait
    }

    /// Pauses that the sites had asked for and that were waited for, over all hops.
    pub fn pauses(&self) -> usize {
        self.trip.pauses
    }

    /// Redirects followed.
    pub fn hops(&self) -> usize {
        self.trip.hops
    }

    /// Endpoints tried, the last one included.
    pub fn attempts(&self) -> usize {
        self.trip.failed.len() + 1
    }

    /// Endpoints that were tried before and failed on their side, in order.
    pub fn failed(&self) -> &[Attempt] {
        &self.trip.failed
    }
}
