//! Scripts on Redis or Valkey: how they are named, called and read.
//!
//! | file | concept |
//! |---|---|
//! | `keys` | the names of keys |
//! | `script` | a script and one call of it |
//! | `commands` | the scripts of `lua/`, with what they take |
//! | `arguments` | the arguments of a call, checked against what the script takes |
//! | `words` | the words that scripts and this crate have in common |
//! | `reply` | reading what a script answers |
//! | `connect` | the connection |

mod arguments;
pub(crate) mod commands;
mod connect;
pub(crate) mod keys;
pub(crate) mod reply;
mod script;
pub(crate) mod words;

pub(crate) use arguments::Arguments;
pub(crate) use commands::Command;
pub(crate) use connect::Connection;
pub(crate) use keys::{Namespace, PoolKeys};
pub(crate) use reply::Reply;
pub(crate) use script::Call;

#[cfg(test)]
mod tests;
