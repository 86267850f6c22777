//! Settings of a connection.

use std::fmt;
use std::time::Duration;

use super::RedisStore;
use crate::error::{Error, Kind};
use crate::redis::{ConnectOptions, Connection, Namespace};

/// Chooses how a [`RedisStore`] connects; [`RedisStore::builder`] makes one.
#[must_use]
pub struct RedisStoreBuilder {
    options: ConnectOptions,
    namespace: String,
}

impl RedisStoreBuilder {
    pub(super) fn new(options: ConnectOptions) -> Self {
        Self { options, namespace: "lease".to_owned() }
    }

    /// What the names of all keys begin with: 1 to 64 printable ASCII characters, without colon
    /// and braces.
    ///
    /// Default `lease`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Time for one attempt to connect, with look-up, handshake and login. Default 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.options.connect_timeout = timeout;
        self
    }

    /// Time for a call with everything that it waits for, a reconnect too. Default 500 ms: a
    /// script takes well under a millisecond, so a server that needs longer is in trouble.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.options.call_timeout = timeout;
        self
    }

    /// Takes a server whose eviction policy may drop keys without a ttl (`allkeys-*`). Default
    /// `false`, for it could drop the pool's state.
    pub fn allow_eviction(mut self, allow: bool) -> Self {
        self.options.allow_eviction = allow;
        self
    }

    /// TLS settings for `rediss://`. Default: the system's roots.
    #[cfg(feature = "redis-tls")]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.options.tls = Some(config);
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// [`Config`](Kind::Config) for a URL, a namespace or a time that is not valid,
    /// [`StoreRefused`](Kind::StoreRefused) for a server that must not keep leases (an old
    /// version, an eviction policy, a wrong password), else
    /// [`StoreUnavailable`](Kind::StoreUnavailable). No error repeats the URL.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn build(self) -> Result<RedisStore, Error> {
        let namespace = Namespace::new(&self.namespace)?;
        if self.options.connect_timeout.is_zero() || self.options.call_timeout.is_zero() {
            return Err(Error::new(Kind::Config, "a timeout of the store is zero"));
        }
        Ok(RedisStore::new(Connection::connect(self.options).await?, namespace))
    }
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
