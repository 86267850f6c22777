//! Settings of a connection.

use std::fmt;

use super::RedisStore;
use crate::error::Error;
use crate::redis::{Connection, Namespace};
use crate::secret::Secret;

/// Chooses how a [`RedisStore`] connects; [`RedisStore::builder`] makes one.
#[must_use]
pub struct RedisStoreBuilder {
    url: Secret,
    namespace: String,
}

impl RedisStoreBuilder {
    pub(super) fn new(url: String) -> Self {
        Self { url: Secret::new(url), namespace: "lease".to_owned() }
    }

    /// What the names of all keys begin with: 1 to 64 printable ASCII characters, without colon
    /// and braces.
    ///
    /// Default `lease`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// [`Config`](crate::Kind::Config) for a URL or a namespace that is not valid, else
    /// [`StoreUnavailable`](crate::Kind::StoreUnavailable). No error repeats the URL.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn build(self) -> Result<RedisStore, Error> {
        let namespace = Namespace::new(&self.namespace)?;
        Ok(RedisStore::new(Connection::connect(&self.url).await?, namespace))
    }
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
