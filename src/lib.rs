//! Leased proxy endpoints for reqwest.
//!
//! A crawler adds one middleware to its client. Each request then waits for its site's
//! [budget](Budgets), takes a lease on a proxy [endpoint](Endpoint) from a shared [pool](Pool),
//! goes out through that endpoint and no other way, and gives the lease back according to what
//! happened.
//!
//! | you want | look at |
//! |---|---|
//! | a client with the middleware | [`LeaseMiddleware`] |
//! | the same for tower | [`LeaseLayer`], [`LeaseService`] |
//! | endpoints from a file | [`Inventory`] |
//! | rates for sites | [`Budgets`] |
//! | several requests on one endpoint | [`Pool::hold`] |
//! | to know what served a response | [`LeaseInfo`] |
//! | to know what became of an exchange | [`Outcome`], [`Classifier`], [`BanMark`] |
//! | a verdict of your own on outcomes | [`Judge`], [`DefaultJudge`] |
//! | no pool that weak evidence empties | [`Guard`] |
//! | to try an endpoint by hand | [`LeaseMiddleware::probe`] |
//! | one pool for many processes | `RedisStore` (feature `redis`), [`Pool::set_up`] |
//! | to look after pools from a shell | the program `reqwest-lease` (feature `cli`) |
//! | a store of your own | [`LeaseStore`] |
//! | numbers for a dashboard | `Metric` (feature `metrics`), [`Pool::counts`] |
//! | an inventory that follows its file | `Pool::watch_inventory` (feature `watch`) |
//!
//! It is for permitted public pages. Budgets are per site and shared by all endpoints: a change
//! of endpoint never gets around a site's limit.

// So that the servers that tests start are one file for unit and integration tests.
#[cfg(all(test, feature = "redis"))]
extern crate self as reqwest_lease;

mod body;
mod budget;
mod builder;
mod classify;
mod clients;
mod endpoint;
mod engine;
mod error;
mod guard;
mod hold;
mod id;
mod intake;
mod inventory;
mod journey;
mod kind;
mod middleware;
mod options;
mod outcome;
mod pool;
mod preview;
mod probe;
mod progress;
mod random;
mod record;
mod redirect;
#[cfg(feature = "redis")]
mod redis;
mod replay;
mod report;
#[cfg(feature = "retry")]
mod retry;
mod secret;
mod service;
mod site;
mod store;
mod suspicion;
mod targets;
mod telemetry;
mod tls;
mod transport;
mod verdict;

pub use budget::{Budget, BudgetCounts, Budgets, BudgetsBuilder, Explanation, Pauses};
#[cfg(feature = "redis")]
pub use budget::{SharedCounts, SharedLimits};
pub use builder::LeaseBuilder;
pub use classify::{Answer, BanMark, Classifier, DefaultClassifier, Failed, Route};
pub use endpoint::{Endpoint, InvalidEndpoint, Labels, Scheme};
pub use error::{BoxError, Error, Kind};
pub use guard::Guard;
pub use id::{AdminName, EndpointId, Fence, InvalidName, MAX_NAME_LENGTH, PoolName};
pub use inventory::{Concern, Inventory, InventorySource, Reloaded, Snapshot, Warning};
pub use middleware::LeaseMiddleware;
pub use options::{LeaseInfo, LeaseOptions};
pub use outcome::{Attempt, Outcome};
pub use pool::{HeldLease, Pool, PoolBuilder};
pub use probe::{ProbeChange, ProbeOptions, ProbeReport};
pub use progress::Phase;
pub use redirect::Redirects;
#[cfg(feature = "redis")]
pub use redis::acl::Role as RedisRole;
#[cfg(feature = "redis")]
pub use redis::handle::Handle as RedisConnection;
#[cfg(feature = "retry")]
pub use retry::LeaseRetryStrategy;
pub use secret::{Secret, Token};
pub use service::{ExchangeError, LeaseFuture, LeaseLayer, LeaseService, Outgoing, Sender};
pub use site::Site;
#[cfg(any(test, feature = "test-util"))]
pub use store::conformance;
pub use store::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditId, AuditRequest,
    CancelReply, CancelRequest, Claim, Grant, LeaseStore, ListRequest, MAX_ASSIGNMENTS,
    MAX_AUDITED, MAX_BATCH, MAX_SWEEP, MAX_TRAIL, MAX_WEIGHT, Member, MemberState, MemoryStore,
    Mode, Order, Policy, PoolConfig, ReapReply, ReapRequest, Release, ReleaseReply, ReleaseRequest,
    RenewReply, RenewRequest, Setup, StandingOrder, State, Status, Term, Violation, violations,
};
#[cfg(feature = "redis")]
pub use store::{
    RedisStore, RedisStoreBuilder, Remains, Replica, Rights, ServerReport, SettingsReport,
};
pub use targets::Targets;
pub use telemetry::Counts;
#[cfg(feature = "metrics")]
pub use telemetry::{Metric, MetricKind};
pub use verdict::{DefaultJudge, Evidence, Judge, Others, QuarantineCode, Steps, Strike, Verdict};

/// The README's code.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
