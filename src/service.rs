//! The front end for tower.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::HeaderMap;
use http::header::PROXY_AUTHORIZATION;
use reqwest::{Client, Request, Response};
use tower::{Layer, Service, ServiceExt};

use crate::builder::LeaseBuilder;
use crate::engine::Engine;
use crate::error::BoxError;
use crate::options::{LeaseInfo, LeaseOptions};
use crate::pool::Pool;
use crate::transport::{Failure, Transport};

/// One physical send: the endpoint's client, and the request of this hop.
#[derive(Debug)]
pub struct Outgoing {
    client: Client,
    request: Request,
}

impl Outgoing {
    /// The request that goes out.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The headers that go out, to change them for this send alone.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.request.headers_mut()
    }
}

/// Puts a [`Outgoing`] on the wire: the innermost service.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sender;

impl Service<Outgoing> for Sender {
    type Response = Response;
    type Error = BoxError;
    type Future = LeaseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut outgoing: Outgoing) -> LeaseFuture {
        // One that a layer added would take the place of the endpoint's own.
        outgoing.request.headers_mut().remove(PROXY_AUTHORIZATION);
        Box::pin(async move { Ok(outgoing.client.execute(outgoing.request).await?) })
    }
}

/// The future of both services.
pub type LeaseFuture = Pin<Box<dyn Future<Output = Result<Response, BoxError>> + Send>>;

/// Puts leases above a service that makes single sends.
///
/// What stands between this layer and [`Sender`] runs for every physical send: each attempt and
/// each redirect hop. What stands above it runs once a request.
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::{Endpoint, EndpointId, Inventory, LeaseLayer, Pool, PoolName, Sender};
/// use tower::{Layer, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let endpoint = Endpoint::new(EndpointId::new("a")?, "http://127.0.0.1:1", None)?;
/// # let inventory = Inventory::from_endpoints([endpoint])?;
/// let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
/// let service = LeaseLayer::builder(pool).build_layer()?.layer(Sender);
///
/// let request = reqwest::Request::new(reqwest::Method::GET, "http://example.com".parse()?);
/// let error = service.oneshot(request).await.unwrap_err();
/// let error = reqwest_lease::Error::find(&*error).unwrap();
/// assert_eq!(error.kind(), reqwest_lease::Kind::ProxyUnreachable);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LeaseLayer {
    engine: Arc<Engine>,
}

impl LeaseLayer {
    /// Leases from this pool.
    pub fn builder(pool: Pool) -> LeaseBuilder {
        LeaseBuilder::new(pool)
    }

    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

impl<S> Layer<S> for LeaseLayer {
    type Service = LeaseService<S>;

    fn layer(&self, inner: S) -> LeaseService<S> {
        LeaseService { engine: self.engine.clone(), inner, options: LeaseOptions::default() }
    }
}

/// Makes requests through leased endpoints; [`LeaseLayer`] makes one.
///
/// It is always ready: waiting for budget and lease is part of the call, since both depend on
/// the request. Errors are [`Error`](crate::Error), found with
/// [`Error::find`](crate::Error::find), or an [`ExchangeError`] around that of the service inside.
#[derive(Clone)]
pub struct LeaseService<S = Sender> {
    engine: Arc<Engine>,
    inner: S,
    options: LeaseOptions,
}

impl<S> LeaseService<S> {
    /// The same service with these options for its requests.
    pub fn with_options(mut self, options: LeaseOptions) -> Self {
        self.options = options;
        self
    }
}

impl<S> Service<Request> for LeaseService<S>
where
    S: Service<Outgoing, Response = Response> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = Response;
    type Error = BoxError;
    type Future = LeaseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> LeaseFuture {
        let Self { engine, inner, options } = self.clone();
        Box::pin(async move {
            engine.execute(request, &options, Inner(inner)).await.map_err(|failure| match failure {
                Failure::Lease(error) => error.into(),
                Failure::Exchange(source, info) => ExchangeError { info, source }.into(),
            })
        })
    }
}

/// A send that failed for another reason than the want of a lease, and how it came about.
///
/// It is what [`LeaseService`] fails with then. Its source is the error of the service inside; of
/// [`Sender`] that is a `reqwest::Error`.
///
/// ```
/// use reqwest_lease::{BoxError, ExchangeError, Outcome};
///
/// /// Whether the endpoint had a part in it, as far as that can be told.
/// fn stalled(error: &BoxError) -> bool {
///     let failed = error.downcast_ref::<ExchangeError>();
///     failed.is_some_and(|failed| failed.info().outcome() == Outcome::Stalled)
/// }
/// ```
#[derive(Debug)]
pub struct ExchangeError {
    info: Box<LeaseInfo>,
    source: BoxError,
}

impl ExchangeError {
    /// The endpoint that was tried last, what was seen of it, and what came before.
    pub fn info(&self) -> &LeaseInfo {
        &self.info
    }

    /// The error of the service inside.
    pub fn into_source(self) -> BoxError {
        self.source
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the exchange through endpoint {} failed", self.info.endpoint())
    }
}

impl std::error::Error for ExchangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// A service that makes single sends.
struct Inner<S>(S);

impl<S> Transport for Inner<S>
where
    S: Service<Outgoing, Response = Response> + Clone + Send,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Error = BoxError;

    async fn send(&mut self, client: Client, request: Request) -> Result<Response, BoxError> {
        self.0.clone().oneshot(Outgoing { client, request }).await.map_err(Into::into)
    }
}

impl fmt::Debug for LeaseLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseLayer").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for LeaseService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseService").finish_non_exhaustive()
    }
}
