//! One page through a lease.

use std::error::Error as StdError;
use std::fmt;
use std::time::{Duration, Instant};

use http::StatusCode;
use http::header::CONTENT_TYPE;
use reqwest::Response;
use reqwest_lease::{Attempt, EndpointId, Error, Kind, LeaseInfo};
use reqwest_middleware::ClientWithMiddleware;
use url::Url;

/// A page that was fetched, whatever its status.
pub(crate) struct Fetched {
    /// The answer's status.
    pub(crate) status: StatusCode,
    /// Where it came from, after redirects.
    pub(crate) url: Url,
    /// Whether it is said to be HTML.
    pub(crate) html: bool,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// Time from the request to the end of the body, without the waits.
    pub(crate) took: Duration,
    /// How it went.
    pub(crate) route: Route,
}

/// Which way a page came, and what it waited for.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// The endpoint that carried it.
    pub(crate) endpoint: EndpointId,
    /// Time spent in waiting for a lease.
    pub(crate) lease_wait: Duration,
    /// Time spent in waiting for the site's budget.
    pub(crate) budget_wait: Duration,
    /// Redirects on the way.
    pub(crate) hops: usize,
    /// Endpoints that failed on it before.
    pub(crate) failed: Vec<EndpointId>,
}

impl Route {
    /// All of the waiting.
    pub(crate) fn waited(&self) -> Duration {
        self.lease_wait + self.budget_wait
    }
}

/// A page that was not fetched.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What went wrong, in a word.
    pub(crate) kind: &'static str,
    /// What went wrong, in a sentence.
    pub(crate) message: String,
    /// Whether another try may do better.
    pub(crate) transient: bool,
    /// When it is worth another try, where that is known.
    pub(crate) retry_after: Option<Duration>,
    /// The endpoints that failed.
    pub(crate) tried: Vec<EndpointId>,
}

/// Fetches a page, or the first `max_bytes` of it.
pub(crate) async fn fetch(
    client: &ClientWithMiddleware,
    url: &Url,
    max_bytes: usize,
) -> Result<Fetched, Failure> {
    let started = Instant::now();
    let mut response = client.get(url.clone()).send().await?;
    let info = response.extensions().get::<LeaseInfo>();
    let route = info.map(Route::from).ok_or_else(Failure::unleased)?;
    let body = read(&mut response, max_bytes).await?;
    Ok(Fetched {
        status: response.status(),
        url: response.url().clone(),
        html: is_html(&response),
        body,
        took: started.elapsed().saturating_sub(route.waited()),
        route,
    })
}

async fn read(response: &mut Response, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while body.len() < max_bytes
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(max_bytes);
    Ok(body)
}

fn is_html(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml"].iter().any(|html| essence.eq_ignore_ascii_case(html))
}

fn ids(attempts: &[Attempt]) -> Vec<EndpointId> {
    attempts.iter().map(|attempt| attempt.endpoint().clone()).collect()
}

impl From<&LeaseInfo> for Route {
    fn from(info: &LeaseInfo) -> Self {
        Self {
            endpoint: info.endpoint().clone(),
            lease_wait: info.lease_wait(),
            budget_wait: info.budget_wait(),
            hops: info.hops(),
            failed: ids(info.failed()),
        }
    }
}

impl Failure {
    /// Whether only the site's budget stood in the way, so that waiting is all it takes.
    pub(crate) fn is_wait(&self) -> bool {
        self.kind == Kind::BudgetExceeded.as_str()
    }

    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, transient: false, retry_after: None, tried: Vec::new() }
    }

    fn unleased() -> Self {
        Self::new("unleased", "the answer came without a lease")
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            transient: error.is_transient(),
            retry_after: error.retry_after(),
            tried: ids(error.tried()),
            ..Self::new(error.kind().as_str(), chain(error))
        }
    }
}

impl From<reqwest_middleware::Error> for Failure {
    fn from(error: reqwest_middleware::Error) -> Self {
        if let Some(error) = Error::find_in(&error) {
            return error.into();
        }
        match error {
            reqwest_middleware::Error::Reqwest(error) => error.into(),
            reqwest_middleware::Error::Middleware(error) => {
                Self::new("middleware", format!("{error:#}"))
            }
        }
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        if let Some(error) = Error::find(&error) {
            return error.into();
        }
        let kind = match () {
            () if error.is_timeout() => "timeout",
            () if error.is_connect() => "connect",
            () if error.is_body() || error.is_decode() => "body",
            () => "request",
        };
        let transient = !error.is_builder();
        Self { transient, ..Self::new(kind, chain(&error.without_url())) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// An error and what it was caused by, in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_kind_and_every_cause_but_no_address() {
        let error = reqwest::Proxy::all("http://a.test:bad/").unwrap_err();
        let failure = Failure::from(error);
        assert_eq!((failure.kind, failure.transient), ("request", false));
        assert!(failure.to_string().contains("invalid port"), "{failure}");
        assert!(!failure.to_string().contains("a.test"), "{failure}");
    }
}
