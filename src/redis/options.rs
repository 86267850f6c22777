//! Where the server is and how long its calls may take.

use std::fmt;
use std::time::Duration;

use crate::secret::Secret;

/// What a connection is made from.
///
/// `connect_timeout` (default 1 s) bounds one attempt to connect, with its look-up, handshake and
/// login. `call_timeout` (default 500 ms) bounds a call with everything that it waits for, a
/// reconnect too.
pub(crate) struct ConnectOptions {
    pub(crate) server: Server,
    pub(crate) connect_timeout: Duration,
    pub(crate) call_timeout: Duration,
    /// Take a server that may evict the pool's keys.
    pub(crate) allow_eviction: bool,
    /// Roots and provider of the caller's own, for `rediss://`.
    #[cfg(feature = "redis-tls")]
    pub(crate) tls: Option<rustls::ClientConfig>,
}

/// How the primary is found.
pub(crate) enum Server {
    /// `redis://`, `rediss://` (feature `redis-tls`) or `unix://`, with user, password and
    /// database number.
    At(Secret),
    /// Whom the Sentinels at `sentinels` name as the primary of `service`.
    #[cfg(feature = "redis-sentinel")]
    Sentinel {
        /// URLs of the Sentinels, with what they ask for themselves.
        sentinels: Vec<Secret>,
        /// The name that the Sentinels watch the primary by.
        service: String,
        /// The primary's URL, of which host and port are replaced.
        primary: Secret,
    },
    /// A cluster of which these are some nodes.
    #[cfg(feature = "redis-cluster")]
    Cluster {
        /// URLs; the others are reached with the first one's login.
        seeds: Vec<Secret>,
    },
}

impl ConnectOptions {
    pub(crate) fn new(url: Secret) -> Self {
        Self::with(Server::At(url))
    }

    #[cfg(feature = "redis-sentinel")]
    pub(crate) fn sentinel(
        sentinels: Vec<Secret>,
        service: impl Into<String>,
        primary: Secret,
    ) -> Self {
        Self::with(Server::Sentinel { sentinels, service: service.into(), primary })
    }

    #[cfg(feature = "redis-cluster")]
    pub(crate) fn cluster(seeds: Vec<Secret>) -> Self {
        Self::with(Server::Cluster { seeds })
    }

    fn with(server: Server) -> Self {
        Self {
            server,
            connect_timeout: Duration::from_secs(1),
            call_timeout: Duration::from_millis(500),
            allow_eviction: false,
            #[cfg(feature = "redis-tls")]
            tls: None,
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("allow_eviction", &self.allow_eviction)
            .finish_non_exhaustive()
    }
}
