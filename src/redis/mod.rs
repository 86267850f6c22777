//! A connection to Redis or Valkey that survives the server's troubles.
//!
//! | file | concept |
//! |---|---|
//! | `options` | where the server is and how long calls may take |
//! | `connect` | the connection that a store calls through |
//! | `holder` | one shared connection to a server, replaced when it is no longer good |
//! | `sentinel` | finding the primary through Sentinel |
//! | `cluster` | finding the node of a key in a cluster |
//! | `link` | one connection: opened, asked, judged |
//! | `fault` | what an error means: whether the call ran, what to do about it |
//! | `check` | what a server must be to keep leases |
//! | `acl` | the roles of worker, administrator and observer |

pub(crate) mod acl;
mod address;
mod check;
#[cfg(feature = "redis-cluster")]
mod cluster;
mod connect;
mod fault;
mod holder;
mod link;
mod options;
mod pace;
mod script;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use connect::Connection;
pub(crate) use fault::Fault;
pub(crate) use options::ConnectOptions;
pub(crate) use script::{Call, Script};
