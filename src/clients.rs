//! One reqwest client for each endpoint, that can go nowhere but through it.

use std::collections::HashMap;
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
use crate::progress::MarkConnecting;
use crate::record::Record;
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

/// Where what misses the endpoint fails: nobody listens on port 0, and without a name no resolver
/// or search domain can lead elsewhere.
const FAIL_CLOSED: &str = "http://127.0.0.1:0";

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
        check(&builder)?;
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
            // Around the template's own layers.
            .connector_layer(MarkConnecting)
            .connect_timeout(self.connect_timeout)
            .pool_max_idle_per_host(self.idle_connections);
        self.tls.apply(builder).build().map_err(|error| {
            Error::new(Kind::Client, "building a client failed").with_source(error)
        })
    }
}

/// Refuses settings that could not be undone. reqwest has no getters, but its `Debug` gives a line
/// to each field and each header, on which every text of the template's is in quotes.
fn check(builder: &ClientBuilder) -> Result<(), Error> {
    let settings = format!("{builder:#?}");
    let sets = |start: &str| settings.lines().any(|line| line.trim_start().starts_with(start));
    // A socket would go past every proxy.
    if sets("unix_socket") {
        return Err(Error::new(Kind::Config, "the client template sets a unix socket"));
    }
    match SECRET_HEADERS.iter().find(|name| sets(&format!("\"{name}\":"))) {
        Some(name) => Err(Error::new(
            Kind::Config,
            format!("the client template sets a default {name} header; set it on requests"),
        )),
        None => Ok(()),
    }
}

/// As defaults these would be sent along every redirect, to whichever host it leads; the proxy's
/// would also take the place of the endpoint's own.
const SECRET_HEADERS: [&str; 5] =
    ["authorization", "cookie", "cookie2", "proxy-authorization", "www-authenticate"];

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

/// What an endpoint's requests are sent with.
#[derive(Clone)]
pub(crate) struct EndpointClient {
    pub(crate) client: Client,
    pub(crate) record: Record,
}

struct Cache {
    clients: LruCache<EndpointId, (u64, EndpointClient)>,
    /// They outlive the clients: what has worked stays known of an endpoint that is seldom used.
    records: HashMap<EndpointId, (u64, Record)>,
    generation: u64,
}

impl Cache {
    /// What is known of the endpoint at this address, with these credentials.
    fn record(&mut self, endpoint: &Endpoint) -> Record {
        let fresh = || (endpoint.fingerprint(), Record::default());
        let known = self.records.entry(endpoint.id().clone()).or_insert_with(fresh);
        if known.0 != endpoint.fingerprint() {
            *known = fresh();
        }
        known.1.clone()
    }
}

impl Clients {
    pub(crate) fn new(recipe: Recipe, inventory: Inventory, most: NonZeroUsize) -> Self {
        // The other constructor takes the memory for all of them at once.
        let mut clients = LruCache::unbounded();
        clients.resize(most);
        let cache = Cache { clients, records: HashMap::new(), generation: inventory.generation() };
        Self { recipe, inventory, cache: Mutex::new(cache) }
    }

    /// The endpoint's client, built if need be.
    pub(crate) fn of(&self, endpoint: &Endpoint) -> Result<EndpointClient, Error> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget_what_changed(&mut cache);
        if let Some((fingerprint, client)) = cache.clients.get(endpoint.id())
            && *fingerprint == endpoint.fingerprint()
        {
            return Ok(client.clone());
        }
        let client = self.recipe.client(endpoint)?;
        let client = EndpointClient { client, record: cache.record(endpoint) };
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
        cache.records.retain(|id, (fingerprint, _)| {
            snapshot.get(id).is_some_and(|endpoint| endpoint.fingerprint() == *fingerprint)
        });
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(template: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static) -> Recipe {
        Recipe {
            template: Arc::new(template),
            tls: Tls::system().unwrap(),
            connect_timeout: Duration::from_secs(5),
            idle_connections: 1,
        }
    }

    #[test]
    fn an_address_that_reqwest_would_pass_over_is_told_by_its_own_matcher() {
        for good in ["http://h:1", "https://u:p@h:1", "socks5h://[::1]:1", "socks4a://h:1"] {
            assert!(intercepts_everything(good), "{good}");
        }
        let long = format!("http://{}:1", "a".repeat(70_000));
        for bad in ["", "ftp://h:1", "quic://h:1", "socks://h:1", "socks6://h:1", "\u{e9}", &long] {
            assert!(!intercepts_everything(bad), "{bad:.40}");
        }
        assert!(intercepts_everything(FAIL_CLOSED));
    }

    /// The endpoint's own proxy taken away: what is left is an error.
    #[tokio::test]
    async fn a_miss_ends_at_the_closed_proxy() {
        let origin = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = origin.local_addr().unwrap();
        let passed_over = Proxy::all("ftp://127.0.0.1:1").unwrap();
        let recipe = recipe(|builder| builder.timeout(Duration::from_secs(5)));
        for client in [recipe.closed().unwrap(), recipe.build(Some(passed_over)).unwrap()] {
            for scheme in ["http", "https"] {
                let error = client.get(format!("{scheme}://{address}/")).send().await.unwrap_err();
                assert!(error.is_connect() && !error.is_timeout(), "{error:?}");
            }
        }
        let accepted = tokio::time::timeout(Duration::from_millis(1), origin.accept()).await;
        assert!(accepted.is_err(), "nobody came");
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_undone_is_refused_and_nothing_else() {
        use http::header::{HeaderMap, HeaderName, HeaderValue};
        let header = |name: &'static str, value: &'static str| {
            let name = HeaderName::from_static(name);
            HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
        };
        let new = ClientBuilder::new;
        let socket = check(&new().unix_socket("/run/x")).unwrap_err();
        assert_eq!(socket.to_string(), "the client template sets a unix socket");
        // A backslash ends no text: `Debug` of a header's value does not escape it.
        assert!(check(&new().user_agent("x\\").unix_socket("/run/x")).is_err());
        let headers = check(&new().default_headers(header("proxy-authorization", "x")));
        assert!(headers.unwrap_err().to_string().contains("default proxy-authorization header"));
        for builder in [
            new(),
            new().user_agent("unix_socket"),
            new().default_headers(header("unix_socket", "x")),
            new().default_headers(header("x", "unix_socket: \"proxy-authorization\"")),
            new().resolve("unix_socket", ([127, 0, 0, 1], 1).into()),
        ] {
            assert!(check(&builder).is_ok(), "{builder:#?}");
        }
    }
}
