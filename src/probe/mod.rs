//! One request through one endpoint, on an administrator's word.

mod report;

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use reqwest::{Request, Response};
use tokio::time::Instant;
use url::Url;

pub use report::{ProbeChange, ProbeOptions, ProbeReport};

use crate::endpoint::Endpoint;
use crate::engine::Engine;
use crate::error::{Error, Kind};
use crate::hold::Probed;
use crate::id::EndpointId;
use crate::options::{LeaseInfo, LeaseOptions};
use crate::outcome::Outcome;
use crate::pool::{Lease, Pool, Wants};
use crate::store::{Order, State};
use crate::transport::{Failure, Wire};
use crate::verdict::QuarantineCode;

/// A probe under way.
struct Probe<'a> {
    engine: &'a Engine,
    pool: &'a Pool,
    endpoint: Arc<Endpoint>,
    state: State,
    options: &'a ProbeOptions,
}

/// What a request came to, as far as it was seen from outside.
struct Seen {
    outcome: Option<Outcome>,
    response: Option<(http::StatusCode, Vec<u8>)>,
    latency: Duration,
}

/// It was free just now: what comes free after that is another, which a worker waits for.
const A_MOMENT: Duration = Duration::from_secs(2);

/// No service says more about an address.
const MOST_OF_BODY: usize = 16 << 10;

/// Keeps sums of instants representable.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Engine {
    pub(crate) async fn probe(
        &self,
        endpoint: &EndpointId,
        url: Url,
        options: &ProbeOptions,
    ) -> Result<ProbeReport, Error> {
        let lease_options = LeaseOptions { pool: options.pool.clone(), ..LeaseOptions::default() };
        let (pool, _) = self.pool(&lease_options)?;
        if !pool.has_administrator() {
            return Err(Error::new(
                Kind::Config,
                format!("pool {} has no administrator to probe for", pool.name()),
            ));
        }
        let unknown = || {
            let message = format!("pool {} has no endpoint {endpoint}", pool.name());
            Error::new(Kind::Config, message)
        };
        let resolved = pool.inventory().snapshot().get(endpoint).cloned().ok_or_else(unknown)?;
        let state = pool.member(endpoint).await?.ok_or_else(unknown)?.state;
        let probe = Probe { engine: self, pool, endpoint: resolved, state, options };
        probe.run(url).await
    }
}

impl Probe<'_> {
    async fn run(self, url: Url) -> Result<ProbeReport, Error> {
        let is_https = url.scheme() == "https";
        let until = Instant::now() + self.options.timeout.min(LONGEST);
        let lease = self.lease().await?;
        let seen = self.ask(url, lease, until).await?;
        let outcome = seen.outcome.unwrap_or(Outcome::Unknown);
        let tls = match (is_https, outcome) {
            (true, _) if seen.response.is_some() => Some(true),
            (true, Outcome::TargetTls) => Some(false),
            _ => None,
        };
        let body = seen.response.as_ref().map(|(_, body)| &**body);
        let mut report = ProbeReport {
            endpoint: self.endpoint.id().clone(),
            state: self.state,
            outcome,
            status: seen.response.as_ref().map(|(status, _)| *status),
            latency: seen.latency,
            exit_address: body.and_then(report::address),
            tls,
            change: None,
        };
        report.change = self.change(&report).await?;
        Ok(report)
    }

    /// A lease on an endpoint that can be leased; `None` for one that is parked.
    async fn lease(&self) -> Result<Option<Lease>, Error> {
        let busy = |after: Option<Duration>| {
            let message = format!("endpoint {} is not free", self.endpoint.id());
            let error = Error::new(Kind::PoolExhausted, message);
            after.map_or(error.clone(), |after| error.with_retry_after(after))
        };
        match self.state {
            State::Disabled | State::Quarantined(_) => return Ok(None),
            State::Leased(left) => return Err(busy(Some(left))),
            State::Expired | State::Lost => return Err(busy(None)),
            State::Cooling(left) if !left.is_zero() => return Err(busy(Some(left))),
            State::Cooling(_) | State::Ready => {}
        }
        let wants = Wants {
            ttl: self.pool.settings().ttl,
            site: None,
            exclude: Vec::new(),
            prefer: Some(self.endpoint.id().clone()),
        };
        let (lease, _) = self.pool.lease(wants, self.options.timeout.min(A_MOMENT)).await?;
        if lease.endpoint().id() == self.endpoint.id() {
            return Ok(Some(lease));
        }
        lease.finish(Outcome::Unused);
        Err(busy(None))
    }

    /// Makes the request as any other is made, but through this endpoint.
    async fn ask(&self, url: Url, lease: Option<Lease>, until: Instant) -> Result<Seen, Error> {
        let probed = Probed::new(self.pool.clone(), self.endpoint.clone(), lease);
        let options = LeaseOptions {
            pool: self.options.pool.clone(),
            probed: Some(probed.clone()),
            ..LeaseOptions::default()
        };
        let mut request = Request::new(Method::GET, url);
        *request.timeout_mut() = Some(until.saturating_duration_since(Instant::now()));
        let began = Instant::now();
        let waited = |info: &LeaseInfo| info.lease_wait() + info.budget_wait();
        match self.engine.execute(request, &options, Wire).await {
            Ok(response) => {
                let waits = response.extensions().get::<LeaseInfo>().map(waited);
                let latency = began.elapsed().saturating_sub(waits.unwrap_or_default());
                let (status, said) = (response.status(), response.extensions().get::<LeaseInfo>());
                let said = said.map(LeaseInfo::outcome);
                let (body, whole) = beginning(response).await;
                let outcome = if whole { probed.end() } else { said };
                Ok(Seen { outcome, response: Some((status, body)), latency })
            }
            Err(Failure::Exchange(_, info)) => {
                let latency = began.elapsed().saturating_sub(waited(&info));
                Ok(Seen { outcome: probed.end(), response: None, latency })
            }
            Err(Failure::Lease(error)) => match probed.end() {
                Some(outcome) if !error.tried().is_empty() => {
                    Ok(Seen { outcome: Some(outcome), response: None, latency: began.elapsed() })
                }
                _ => Err(error),
            },
        }
    }

    /// Gives the orders that were asked for.
    async fn change(&self, report: &ProbeReport) -> Result<Option<ProbeChange>, Error> {
        let asked = |change: &ProbeChange| match change {
            ProbeChange::QuarantineEnded => self.options.end_quarantine,
            ProbeChange::Quarantined => self.options.quarantine,
        };
        let Some(change) = report.due().filter(asked) else { return Ok(None) };
        let id = vec![report.endpoint.clone()];
        let order = match (change, self.state) {
            (ProbeChange::QuarantineEnded, State::Quarantined(code)) => {
                Order::EndQuarantine(id, code)
            }
            _ => Order::Quarantine(id, QuarantineCode::Probe),
        };
        let reply = self.pool.administer(order).await?;
        Ok((reply.changed > 0).then_some(change))
    }
}

/// The beginning of a body, and whether it is all of it.
async fn beginning(mut response: Response) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MOST_OF_BODY => body.extend(chunk),
            Ok(Some(_)) => return (body, false),
            // What became of it is among the outcomes.
            Ok(None) | Err(_) => return (body, true),
        }
    }
}
