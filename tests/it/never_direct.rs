//! A request goes through its leased endpoint or not at all.
//!
//! Every test here has origins that remember who connected to them. The module `twin` shows that
//! they see it when a client without this crate's guards goes another way.

mod endpoints;
mod environment;
mod hops;
mod refused;
mod template;
mod twin;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use reqwest_lease::{
    Endpoint, EndpointId, Inventory, LeaseBuilder, LeaseInfo, LeaseMiddleware, Pool, PoolName,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::net::TcpStream;

use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::origin::{Answer, Origin, Visit, text};
use crate::support::{Outgoing, SOON, eventually};

/// An origin for http, one for https, and the proxy that all requests should go through.
struct Scene {
    plain: Origin,
    tls: Origin,
    proxy: ForwardProxy,
    /// Connections that are part of the test itself.
    ours: Mutex<Vec<SocketAddr>>,
}

const LOGIN: (&str, &str) = ("worker", "p/a:s s%41");

impl Scene {
    async fn start() -> Self {
        let manners = Manners { credentials: Some(LOGIN), ..Manners::default() };
        Self {
            plain: Origin::http(hello_or_redirect).await,
            tls: Origin::https(hello_or_redirect).await,
            proxy: ForwardProxy::start(manners).await.unwrap(),
            ours: Mutex::default(),
        }
    }

    /// A pool of one endpoint, the proxy.
    async fn pool(&self) -> Pool {
        pool_of(endpoint(&self.proxy.url(), Some(LOGIN))).await
    }

    /// A client that trusts the https origin, built with what `change` adds.
    async fn client(
        &self,
        change: impl FnOnce(LeaseBuilder) -> LeaseBuilder,
    ) -> ClientWithMiddleware {
        self.client_of(self.pool().await, change)
    }

    fn client_of(
        &self,
        pool: Pool,
        change: impl FnOnce(LeaseBuilder) -> LeaseBuilder,
    ) -> ClientWithMiddleware {
        change(self.builder(pool)).build().unwrap().into_client()
    }

    fn builder(&self, pool: Pool) -> LeaseBuilder {
        LeaseMiddleware::builder(pool).tls(self.tls.authority().client_config()).timeout(SOON)
    }

    /// A client of reqwest's own, without this crate and its guards.
    fn bare(&self) -> reqwest::ClientBuilder {
        let tls = self.tls.authority().client_config();
        reqwest::Client::builder().timeout(SOON).tls_backend_preconfigured(tls)
    }

    /// Fetches from both origins.
    async fn gets_through(&self, client: &ClientWithMiddleware) {
        for url in [self.plain.url("/"), self.tls.url("/")] {
            let response = client.get(&url).send().await.unwrap_or_else(|e| panic!("{url}: {e:?}"));
            assert_eq!(response.status(), StatusCode::OK, "{url}");
            assert!(response.extensions().get::<LeaseInfo>().is_some(), "{url}");
            assert_eq!(response.text().await.unwrap(), "hello");
        }
        self.came_by(&[&self.proxy], 2).await;
    }

    /// Both origins together have seen this many requests, and only by these proxies.
    async fn came_by(&self, proxies: &[&dyn Outgoing], requests: usize) {
        assert_eq!(self.visits().len(), requests);
        self.nobody_else_than(proxies).await;
    }

    /// No connection came from anybody else, not even one that brought no request.
    async fn nobody_else_than(&self, proxies: &[&dyn Outgoing]) {
        for origin in [&self.plain, &self.tls] {
            // Connections are taken in order, so this one shows that all before it are known.
            let last = TcpStream::connect(origin.address()).await.unwrap();
            let last = last.local_addr().unwrap();
            self.ours.lock().unwrap().push(last);
            let all = eventually("a connection of our own", || {
                let connections = origin.connections();
                connections.contains(&last).then_some(connections)
            })
            .await;
            let known = |peer: &SocketAddr| {
                self.ours.lock().unwrap().contains(peer)
                    || proxies.iter().any(|proxy| proxy.owns(*peer))
            };
            let strangers: Vec<_> = all.into_iter().filter(|peer| !known(peer)).collect();
            assert!(strangers.is_empty(), "direct connections: {strangers:?}");
        }
    }

    fn visits(&self) -> Vec<Visit> {
        [self.plain.visits(), self.tls.visits()].concat()
    }
}

/// `/to/<url>` leads to the URL; everything else says hello.
fn hello_or_redirect(visit: &Visit) -> Answer {
    let Some(target) = visit.path.strip_prefix("/to/") else {
        return text(StatusCode::OK, "hello");
    };
    let mut response = text(StatusCode::TEMPORARY_REDIRECT, "");
    response.headers_mut().insert(LOCATION, target.parse().unwrap());
    response
}

fn endpoint(url: &str, login: Option<(&str, &str)>) -> Endpoint {
    Endpoint::new(EndpointId::new("a").unwrap(), url, login).unwrap()
}

async fn pool_of(endpoint: Endpoint) -> Pool {
    let inventory = Inventory::from_endpoints([endpoint]).unwrap();
    Pool::builder(PoolName::new("test").unwrap(), inventory)
        .max_wait(Duration::from_millis(50))
        .build()
        .await
        .unwrap()
}

/// What a refused request was refused for.
fn kind(error: &reqwest_middleware::Error) -> Option<reqwest_lease::Kind> {
    reqwest_lease::Error::find_in(error).map(reqwest_lease::Error::kind)
}
