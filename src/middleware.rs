//! The front end for reqwest-middleware.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Client, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};

use crate::builder::LeaseBuilder;
use crate::engine::Engine;
use crate::error::{Carrier, Error};
use crate::options::{LeaseInfo, LeaseOptions};
use crate::pool::Pool;
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
        let defaults = LeaseOptions::default();
        let options = extensions.get::<LeaseOptions>().unwrap_or(&defaults);
        self.engine.execute(request, options, Wire).await.map_err(|failure| match failure {
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
