//! The integration tests: real proxies and recording origins, all on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod attempts;
mod budgets;
mod cancel;
#[cfg(feature = "cli")]
mod cli;
mod examples;
mod fidelity;
mod hops;
mod life;
mod limits;
#[path = "../../examples/local/mod.rs"]
mod local;
#[cfg(feature = "metrics")]
mod metered;
#[cfg(feature = "metrics")]
mod monitoring;
mod never_direct;
mod outcomes;
mod outside_store;
mod posts;
mod probe;
mod readme;
mod redirects;
mod redis_conformance;
mod redis_pools;
mod redis_roles;
#[cfg(all(feature = "redis-cluster", feature = "redis-sentinel"))]
mod redis_topologies;
mod redis_trouble;
mod repairs;
mod requests;
mod rig;
mod secrets;
mod settings;
mod shared_budgets;
mod spans;
mod support;
mod truth;
mod verdicts;
#[cfg(feature = "watch")]
mod watching;
