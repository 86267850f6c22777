//! A web site and forward proxies on loopback, so that examples and tests need nothing else.
//!
//! This is not an example of its own; others take it in with `#[path]`.
#![allow(dead_code, reason = "each user takes a part")]

mod listening;
pub(crate) mod proxy;
pub(crate) mod site;

pub(crate) use listening::{Lifeline, Listening};
