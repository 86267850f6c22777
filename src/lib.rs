//! Leased proxy endpoints for reqwest.

mod endpoint;
mod error;
mod id;
mod outcome;
mod secret;
mod site;
mod store;
mod verdict;

pub use endpoint::{Endpoint, InvalidEndpoint, Labels, Scheme};
pub use error::{BoxError, Error, Kind};
pub use id::{EndpointId, Fence, InvalidName, MAX_NAME_LENGTH, PoolName};
pub use outcome::Outcome;
pub use secret::{Secret, Token};
pub use site::Site;
#[cfg(any(test, feature = "test-util"))]
pub use store::conformance;
pub use store::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, CancelReply, CancelRequest, Claim,
    Grant, LeaseStore, ListRequest, MAX_ASSIGNMENTS, MAX_BATCH, MAX_SWEEP, MAX_WEIGHT, Member,
    MemberState, MemoryStore, Mode, Order, Policy, PoolConfig, ReapReply, ReapRequest, Release,
    ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, StandingOrder, State, Status, Term,
    Violation, violations,
};
pub use verdict::{DefaultJudge, Evidence, Judge, QuarantineCode, Strike, Verdict};
