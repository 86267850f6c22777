//! Leased proxy endpoints for reqwest.

mod budget;
mod endpoint;
mod error;
mod id;
mod inventory;
mod outcome;
mod secret;
mod site;
mod store;
mod verdict;

pub use budget::{Budget, Budgets, BudgetsBuilder, Explanation};
pub use endpoint::{Endpoint, InvalidEndpoint, Labels, Scheme};
pub use error::{BoxError, Error, Kind};
pub use id::{EndpointId, Fence, InvalidName, MAX_NAME_LENGTH, PoolName};
pub use inventory::{Concern, Inventory, InventorySource, Reloaded, Snapshot, Warning};
pub use outcome::Outcome;
pub use secret::{Secret, Token};
pub use site::Site;
pub use store::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, CancelReply, CancelRequest, Claim,
    Grant, LeaseStore, ListRequest, MAX_ASSIGNMENTS, MAX_BATCH, MAX_SWEEP, MAX_WEIGHT, Member,
    MemberState, MemoryStore, Mode, Order, Policy, PoolConfig, ReapReply, ReapRequest, Release,
    ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, StandingOrder, State, Status, Term,
};
pub use verdict::{DefaultJudge, Evidence, Judge, QuarantineCode, Strike, Verdict};
