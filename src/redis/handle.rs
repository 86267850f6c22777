//! A connection as it is handed from one part of this crate to another.

use std::fmt;

use super::{Connection, Namespace};

/// A store's connection with its namespace, for what else is kept in the same Redis.
///
/// [`RedisStore::connection`](crate::RedisStore::connection) gives it; clones share the connection.
#[derive(Clone)]
pub struct Handle {
    pub(crate) connection: Connection,
    pub(crate) namespace: Namespace,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConnection")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
