//! Choosing how requests are made.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::budget::Budgets;
use crate::classify::{Classifier, DefaultClassifier};
use crate::clients::{Clients, Recipe};
use crate::engine::Engine;
use crate::error::{Error, Kind};
use crate::journey::Terms;
use crate::middleware::LeaseMiddleware;
use crate::pool::Pool;
use crate::redirect::Redirects;
use crate::service::LeaseLayer;
use crate::targets::Targets;
use crate::tls::Tls;

/// Chooses how requests are made; [`LeaseMiddleware::builder`] and
/// [`LeaseLayer::builder`] make one.
#[must_use]
pub struct LeaseBuilder {
    pools: Vec<Pool>,
    budgets: Budgets,
    redirects: Redirects,
    targets: Targets,
    timeout: Option<Duration>,
    attempts: u32,
    classifier: Arc<dyn Classifier>,
    template: crate::clients::Template,
    #[cfg(feature = "rustls-no-provider")]
    tls: Option<rustls::ClientConfig>,
    connect_timeout: Duration,
    idle_connections: usize,
    most_clients: usize,
}

impl LeaseBuilder {
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pools: vec![pool],
            budgets: Budgets::unlimited(),
            redirects: Redirects::default(),
            targets: Targets::default(),
            timeout: None,
            attempts: 3,
            classifier: Arc::new(DefaultClassifier::new()),
            template: Arc::new(|builder| builder),
            #[cfg(feature = "rustls-no-provider")]
            tls: None,
            connect_timeout: Duration::from_secs(10),
            idle_connections: 8,
            most_clients: 16_384,
        }
    }

    /// One more pool, for requests that name it in their
    /// [`LeaseOptions`](crate::LeaseOptions::pool).
    pub fn also(mut self, pool: Pool) -> Self {
        self.pools.push(pool);
        self
    }

    /// The sites' budgets. Default: unlimited.
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// How redirects are followed. Default: at most 10 hops.
    ///
    /// Each hop passes its own site's budget. A template's redirect policy has no effect.
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    /// What may be fetched. Default: no redirect from a public host into special addresses.
    pub fn targets(mut self, targets: Targets) -> Self {
        self.targets = targets;
        self
    }

    /// Time for a request that sets no timeout of its own: waits, hops, attempts and body
    /// together. Default: none.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Most endpoints to try for one request. Default 3; zero counts as one.
    ///
    /// Only failures on the endpoint's side before the target can have seen the request are
    /// tried again.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// What outcomes are told by. Default: [`DefaultClassifier`].
    pub fn classifier(mut self, classifier: impl Classifier) -> Self {
        self.classifier = Arc::new(classifier);
        self
    }

    /// Settings of the endpoints' clients: user agent, default headers, cookie jar, decoders.
    ///
    /// This crate's own settings go on top: the endpoint as the one proxy, no system proxy, no
    /// redirects and retries of reqwest's own, connect timeout, TLS, idle connections. So a
    /// template's roots and client certificates have no effect: those go to `tls` (feature
    /// `rustls`). A jar is shared by endpoints only if the template gives all clients the same one.
    ///
    /// A unix socket is refused, and so are secrets among the default headers (`Authorization`,
    /// `Cookie`, `Proxy-Authorization`), for they would go along redirects to other hosts. A
    /// timeout counts for each send by itself; the whole request's is
    /// [`timeout`](Self::timeout). A Windows named pipe cannot be told from here, and a connector layer can lead anywhere:
    /// neither belongs into a template.
    pub fn template(
        mut self,
        template: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        self.template = Arc::new(template);
        self
    }

    /// TLS settings for targets and https proxies: roots of your own, a client certificate.
    /// Default: the system's roots, which on Linux the variable `SSL_CERT_FILE` replaces.
    ///
    /// ALPN is overwritten with what reqwest speaks; each endpoint gets a session store of its
    /// own, whatever `resumption` says.
    #[cfg(feature = "rustls-no-provider")]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Time for reaching an endpoint and, through it, the target. Default 10 s.
    ///
    /// When it is up an endpoint that does not answer is given up for another one. A request's
    /// own timeout that is shorter ends the request instead.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Idle connections kept for each endpoint and target. Default 8.
    pub fn idle_connections(mut self, connections: usize) -> Self {
        self.idle_connections = connections;
        self
    }

    /// Clients kept, one an endpoint; the least recently used goes first. Default 16,384, about
    /// 6 kB each without connections.
    pub fn most_clients(mut self, clients: usize) -> Self {
        self.most_clients = clients;
        self
    }

    /// The middleware for reqwest-middleware.
    ///
    /// # Errors
    /// [`Config`](Kind::Config) when two pools have one name, a number is zero, or the template
    /// sets a unix socket or a secret default header; [`Client`](Kind::Client) when no client can be built with the
    /// template.
    pub fn build(self) -> Result<LeaseMiddleware, Error> {
        let (engine, recipe) = self.engine()?;
        Ok(LeaseMiddleware::new(Arc::new(engine), recipe.closed()?))
    }

    /// The layer for tower.
    ///
    /// # Errors
    /// Those of [`build`](Self::build).
    pub fn build_layer(self) -> Result<LeaseLayer, Error> {
        let (engine, recipe) = self.engine()?;
        // A template that cannot be built is told now and not at the first request.
        recipe.closed()?;
        Ok(LeaseLayer::new(Arc::new(engine)))
    }

    fn engine(self) -> Result<(Engine, Recipe), Error> {
        let config = |what: &'static str| Error::new(Kind::Config, what);
        let most = NonZeroUsize::new(self.most_clients).ok_or(config("most_clients is zero"))?;
        if self.connect_timeout.is_zero() {
            return Err(config("connect_timeout is zero"));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(config("timeout is zero"));
        }
        for (nth, pool) in self.pools.iter().enumerate() {
            if self.pools[..nth].iter().any(|other| other.name() == pool.name()) {
                return Err(Error::new(
                    Kind::Config,
                    format!("two pools have the name {}", pool.name()),
                ));
            }
        }
        let recipe = self.recipe()?;
        let clients = |pool: Pool| {
            let clients = Clients::new(recipe.clone(), pool.inventory().clone(), most);
            (pool, clients)
        };
        let engine = Engine {
            pools: self.pools.into_iter().map(clients).collect(),
            terms: Terms {
                budgets: self.budgets,
                redirects: self.redirects,
                targets: self.targets,
                timeout: self.timeout,
                attempts: self.attempts,
                classifier: self.classifier,
            },
        };
        Ok((engine, recipe))
    }

    fn recipe(&self) -> Result<Recipe, Error> {
        #[cfg(feature = "rustls-no-provider")]
        let tls = match &self.tls {
            Some(config) => Tls::from_config(config.clone()),
            None => Tls::system()?,
        };
        #[cfg(not(feature = "rustls-no-provider"))]
        let tls = Tls::system()?;
        Ok(Recipe {
            template: self.template.clone(),
            tls,
            connect_timeout: self.connect_timeout,
            idle_connections: self.idle_connections,
        })
    }
}
