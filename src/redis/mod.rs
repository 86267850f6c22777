//! Redis or Valkey: scripts, and a connection that survives the server's troubles.
//!
//! | file | concept |
//! |---|---|
//! | `keys` | the names of keys |
//! | `script` | a script and one call of it |
//! | `commands` | the scripts of `lua/`, with what they take |
//! | `arguments` | the arguments of a call, checked against what the script takes |
//! | `words` | the words that scripts and this crate have in common |
//! | `reply` | reading what a script answers |
//! | `options` | where the server is and how long calls may take |
//! | `handle` | a connection for other parts of this crate |
//! | `connect` | the connection that a store calls through |
//! | `holder` | one shared connection to a server, replaced when it is no longer good |
//! | `sentinel` | finding the primary through Sentinel |
//! | `cluster` | finding the node of a key in a cluster |
//! | `hints` | listening for hints that something came free |
//! | `link` | one connection: opened, asked, judged |
//! | `fault` | what an error means: whether the call ran, what to do about it |
//! | `check` | what a server must be to keep leases |
//! | `acl` | the roles of worker, administrator and observer |

pub(crate) mod acl;
mod address;
mod arguments;
pub(crate) mod check;
#[cfg(feature = "redis-cluster")]
mod cluster;
pub(crate) mod commands;
mod connect;
mod fault;
pub(crate) mod handle;
pub(crate) mod hints;
mod holder;
pub(crate) mod keys;
mod link;
mod options;
mod pace;
pub(crate) mod reply;
mod script;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod stream;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use arguments::Arguments;
pub(crate) use commands::Command;
pub(crate) use connect::Connection;
#[cfg(test)]
use fault::Fault;
pub(crate) use keys::{BudgetKeys, Namespace, PoolKeys};
pub(crate) use options::ConnectOptions;
pub(crate) use reply::Reply;
pub(crate) use script::Call;
