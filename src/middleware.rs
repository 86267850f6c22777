//! The front end for reqwest-middleware.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Client, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use url::Url;

use crate::builder::LeaseBuilder;
use crate::engine::Engine;
use crate::error::{Carrier, Error};
use crate::id::EndpointId;
use crate::options::{JustFailed, LeaseInfo, LeaseOptions};
use crate::pool::Pool;
use crate::probe::{ProbeOptions, ProbeReport};
use crate::transport::{Failure, Wire};

/// Sends each request through a leased endpoint, and no other way.
///
/// It ends the chain: a middleware cannot change the client that the rest of the chain uses, so
/// this one sends by itself, and what is attached after it would never run. The helpers here
/// therefore attach it last.
///
/// ```
/// use reqwest_lease::{Endpoint, EndpointId, Inventory, LeaseMiddleware, Pool, PoolName};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::new(EndpointId::new("a")?, "http://127.0.0.1:1", None)?;
/// let inventory = Inventory::from_endpoints([endpoint])?;
/// let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
/// let client = LeaseMiddleware::builder(pool).build()?.into_client();
///
/// let error = client.get("http://example.com/").send().await.unwrap_err();
/// let error = reqwest_lease::Error::find_in(&error).unwrap();
/// assert_eq!(error.kind(), reqwest_lease::Kind::ProxyUnreachable);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LeaseMiddleware {
    engine: Arc<Engine>,
    /// What reqwest-middleware builds requests with; it reaches nothing.
    closed: Client,
}

impl LeaseMiddleware {
    /// Leases from this pool.
    pub fn builder(pool: Pool) -> LeaseBuilder {
        LeaseBuilder::new(pool)
    }

    pub(crate) fn new(engine: Arc<Engine>, closed: Client) -> Self {
        Self { engine, closed }
    }

    /// Builds the clients of all endpoints now instead of at their first requests.
    ///
    /// It takes about 10 µs an endpoint. Beyond
    /// [`most_clients`](LeaseBuilder::most_clients) the first ones are dropped again.
    ///
    /// # Errors
    /// [`Client`](crate::Kind::Client) names the first endpoint that no client can be built for.
    pub fn warm_up(&self) -> Result<(), Error> {
        self.engine.warm_up()
    }

    /// Sends one request through one endpoint, on the word of the pool's
    /// [`administrator`](crate::PoolBuilder::administrator), and tells what became of it.
    ///
    /// An endpoint that is ready is leased for it, so that it has one user at a time; the lease
    /// ends with a verdict as any other. One that is disabled or in quarantine is used without a
    /// lease, since nobody else can have one: whoever enables it meanwhile gives it a second user.
    /// The request passes the site's budget and the checks of targets and redirects, and goes
    /// through this endpoint alone; no worker ever probes by itself.
    ///
    /// It asks the store for this one member, so that it costs as much in a large pool as in a small
    /// one.
    ///
    /// Only if [`ProbeOptions`] say so a probe that passed ends a quarantine, and one that failed
    /// starts it.
    ///
    /// ```no_run
    /// # async fn example(middleware: reqwest_lease::LeaseMiddleware) -> Result<(), Box<dyn std::error::Error>> {
    /// use reqwest_lease::{EndpointId, ProbeOptions};
    ///
    /// let (endpoint, url) = (EndpointId::new("vn-a01")?, "https://api.ipify.org".parse()?);
    /// let report =
    ///     middleware.probe(&endpoint, url, &ProbeOptions::new().end_quarantine(true)).await?;
    /// println!("{} after {:?} from {:?}", report.outcome, report.latency, report.exit_address);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Config`](crate::Kind::Config) without an administrator's name, or for an endpoint that
    /// inventory or pool lack; [`PoolExhausted`](crate::Kind::PoolExhausted) when it is leased or
    /// cools, with the time left; those of a lease, of the store and of orders. That the exchange
    /// failed is no error but the report.
    ///
    /// # Cancel safety
    /// A dropped future gives the lease back as cancelled; once the request is over, it is unknown
    /// whether an order that was asked for was given.
    pub async fn probe(
        &self,
        endpoint: &EndpointId,
        url: Url,
        options: &ProbeOptions,
    ) -> Result<ProbeReport, Error> {
        self.engine.probe(endpoint, url, options).await
    }

    /// A client with this middleware alone.
    pub fn into_client(self) -> ClientWithMiddleware {
        self.into_client_with(|builder| builder)
    }

    /// A client with the middlewares that `attach` adds before this one: retries, tracing.
    ///
    /// Each retry then takes a new lease and a new turn of the budget. The client underneath
    /// reaches nothing, so a request that misses this middleware fails instead of going direct.
    pub fn into_client_with(
        self,
        attach: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> ClientWithMiddleware {
        attach(ClientBuilder::new(self.closed.clone())).with(self).build()
    }
}

#[async_trait]
impl Middleware for LeaseMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        // That of an attempt before, under a retry.
        extensions.remove::<LeaseInfo>();
        let failed = extensions.remove::<JustFailed>();
        let given = extensions.get::<LeaseOptions>().map_or(Cow::default(), Cow::Borrowed);
        let options = match failed {
            Some(JustFailed(avoid)) => Cow::Owned(LeaseOptions { avoid, ..given.into_owned() }),
            None => given,
        };
        let failure = match self.engine.execute(request, &options, Wire).await {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        };
        let last = failure.failed();
        // Those of attempts before come first, the one that failed last comes last.
        let mut failed: Vec<_> =
            options.avoid.iter().filter(|endpoint| !last.contains(endpoint)).cloned().collect();
        failed.extend(last);
        if !failed.is_empty() {
            extensions.insert(JustFailed(failed));
        }
        Err(match failure {
            Failure::Lease(error) => reqwest_middleware::Error::middleware(Carrier::new(error)),
            Failure::Exchange(error, info) => {
                extensions.insert(*info);
                error.into()
            }
        })
    }
}

impl fmt::Debug for LeaseMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseMiddleware").finish_non_exhaustive()
    }
}
