//! One reqwest client for each endpoint, that can go nowhere but through it.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use lru::LruCache;
use reqwest::{Client, ClientBuilder, Proxy};

use crate::endpoint::Endpoint;
use crate::error::{Error, Kind};
use crate::id::EndpointId;
use crate::inventory::Inventory;
use crate::tls::Tls;

/// Changes a client's settings before this crate's own go on top.
pub(crate) type Template = Arc<dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync>;

/// How clients are built.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) template: Template,
    pub(crate) tls: Tls,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_connections: usize,
}

/// A name that never resolves (RFC 6761 section 6.4): what misses the endpoint fails there.
const FAIL_CLOSED: &str = "http://fail-closed.invalid:1";

impl Recipe {
    /// A client that sends through this endpoint and no other way.
    pub(crate) fn client(&self, endpoint: &Endpoint) -> Result<Client, Error> {
        let url = endpoint.proxy_url();
        if !intercepts_everything(&url) {
            return Err(refused(endpoint, "its address would be passed over"));
        }
        let proxy = Proxy::all(url).map_err(|_| refused(endpoint, "its address is not usable"))?;
        self.build(Some(proxy)).map_err(|error| match error.kind() {
            Kind::Client => refused(endpoint, "building its client failed").with_source(error),
            _ => error,
        })
    }

    /// A client that reaches nothing, for the inner client that a middleware stack must have.
    pub(crate) fn closed(&self) -> Result<Client, Error> {
        self.build(None)
    }

    fn build(&self, proxy: Option<Proxy>) -> Result<Client, Error> {
        let builder = (self.template)(ClientBuilder::new());
        // reqwest has no getter, and a socket would go past every proxy.
        if format!("{builder:?}").contains("unix_socket") {
            return Err(Error::new(Kind::Config, "the client template sets a unix socket"));
        }
        let nothing = Proxy::all(FAIL_CLOSED)
            .map_err(|_| Error::new(Kind::Client, "the closed proxy is not usable"))?;
        // Proxies are asked in order; `no_proxy` clears those of template and environment.
        let mut builder = builder.no_proxy();
        if let Some(proxy) = proxy {
            builder = builder.proxy(proxy);
        }
        let builder = builder
            .proxy(nothing)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            // It would log the proxy's password at TRACE.
            .connection_verbose(false)
            .connect_timeout(self.connect_timeout)
            .pool_max_idle_per_host(self.idle_connections);
        self.tls.apply(builder).build().map_err(|error| {
            Error::new(Kind::Client, "building a client failed").with_source(error)
        })
    }
}

/// Asks the matcher that reqwest uses whether this proxy takes http and https.
fn intercepts_everything(url: &str) -> bool {
    let matcher = Matcher::builder().all(url).build();
    ["http://target.invalid/", "https://target.invalid/"]
        .into_iter()
        .all(|target| matcher.intercept(&Uri::from_static(target)).is_some())
}

fn refused(endpoint: &Endpoint, why: &str) -> Error {
    Error::new(Kind::Client, format!("no client for endpoint {}: {why}", endpoint.id()))
}

/// A bounded cache of clients, by endpoint id and the fingerprint of its address.
pub(crate) struct Clients {
    recipe: Recipe,
    inventory: Inventory,
    cache: Mutex<Cache>,
}

struct Cache {
    clients: LruCache<EndpointId, (u64, Client)>,
    generation: u64,
}

impl Clients {
    pub(crate) fn new(recipe: Recipe, inventory: Inventory, most: NonZeroUsize) -> Self {
        let cache = Cache { clients: LruCache::new(most), generation: inventory.generation() };
        Self { recipe, inventory, cache: Mutex::new(cache) }
    }

    /// The endpoint's client, built if need be.
    pub(crate) fn of(&self, endpoint: &Endpoint) -> Result<Client, Error> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget_what_changed(&mut cache);
        if let Some((fingerprint, client)) = cache.clients.get(endpoint.id()) {
            if *fingerprint == endpoint.fingerprint() {
                return Ok(client.clone());
            }
        }
        let client = self.recipe.client(endpoint)?;
        cache.clients.put(endpoint.id().clone(), (endpoint.fingerprint(), client.clone()));
        Ok(client)
    }

    /// Drops clients, with their idle connections, of endpoints that a reload changed or removed.
    fn forget_what_changed(&self, cache: &mut Cache) {
        let generation = self.inventory.generation();
        if cache.generation == generation {
            return;
        }
        cache.generation = generation;
        let snapshot = self.inventory.snapshot();
        let stale: Vec<_> = cache
            .clients
            .iter()
            .filter(|(id, (fingerprint, _))| {
                snapshot.get(id).is_none_or(|endpoint| endpoint.fingerprint() != *fingerprint)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in stale {
            cache.clients.pop(&id);
        }
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}
