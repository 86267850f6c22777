//! Where leases are kept: the trait that stores implement.

mod admin;
mod audit;
pub(crate) mod check;
#[cfg(any(test, feature = "test-util"))]
pub mod conformance;
mod invariants;
mod memory;
#[cfg(feature = "redis")]
mod redis;
mod request;
mod setup;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

pub use admin::*;
pub use audit::*;
pub use invariants::{Violation, violations};
pub use memory::MemoryStore;
#[cfg(feature = "redis")]
pub use redis::{
    RedisStore, RedisStoreBuilder, Remains, Replica, Rights, ServerReport, SettingsReport,
};
pub use request::*;
pub use setup::*;

use crate::error::Error;
use crate::id::PoolName;

/// Shared allocation state: who holds which endpoint until when.
///
/// A store decides alone, atomically and by its own clock. Callers hold tokens and durations;
/// they never compare the store's time with a clock of theirs.
///
/// A store behind an `Arc` or a `Box` is a store too, so that one that is chosen at run time can be
/// handed to [`PoolBuilder::store`](crate::PoolBuilder::store).
///
/// Every method answers within a time that the implementation bounds. Dropping a future leaves
/// its effect unknown: the call may still take place. For [`acquire`](Self::acquire) that is
/// what [`cancel`](Self::cancel) is for.
#[async_trait]
pub trait LeaseStore: Send + Sync + 'static {
    /// Grants up to one endpoint a token.
    ///
    /// The same token again, while its lease lives, gets the same lease.
    ///
    /// # Errors
    /// [`PoolUninitialised`](crate::Kind::PoolUninitialised),
    /// [`InvalidCall`](crate::Kind::InvalidCall), [`PoolTooNew`](crate::Kind::PoolTooNew),
    /// [`StoreRefused`](crate::Kind::StoreRefused) or
    /// [`StoreUnavailable`](crate::Kind::StoreUnavailable); after the last two the lease may
    /// exist, unless [`Error::may_have_run`] denies it, and the token must be repeated or
    /// cancelled. [`Error`] has a constructor for each.
    async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error>;

    /// Moves the deadline of a lease that is still valid, within the pool's largest lifetime.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error>;

    /// Ends leases with their verdicts; one reply for each, in order.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error>;

    /// Gives up a token whose acquire has an unknown result: releases its lease, or leaves a
    /// tombstone that refuses a later grant.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error>;

    /// Takes back leases past their deadline and readies endpoints past their cooldown, in a
    /// bounded step.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error>;

    /// Counts of the pool, telling what is recorded from what is valid now. Changes nothing.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    async fn status(&self, pool: &PoolName) -> Result<Status, Error>;

    /// The members in order of their ids' bytes, a page at a time. Changes nothing.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error>;

    /// The trail of orders, newest first, a page at a time. It outlasts the pool. Changes nothing.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error>;

    /// Carries out an administrator's order, and records it in the trail, all or nothing. An order
    /// that changes nothing is recorded too; one that is refused is not.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); [`InvalidCall`](crate::Kind::InvalidCall) when the order
    /// names unknown endpoints or sets up a pool that exists.
    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error>;

    /// Hints that something of the pool may have come free, also from other processes: those of
    /// releases that ask for one ([`ReleaseRequest::hint`]), and of orders. `None`, the default,
    /// for a store that has none.
    ///
    /// The stream ends with the store, and what it needs goes with it. Hints may come together, and
    /// may get lost: whoever waits asks now and then all the same.
    fn hints(&self, pool: &PoolName) -> Option<BoxStream<'static, ()>> {
        let _ = pool;
        None
    }

    /// Whether the store answers without waiting, so that a release can be made on the spot
    /// instead of in the background.
    ///
    /// Default `false`. A store that says `true` returns ready futures from `release`.
    fn answers_at_once(&self) -> bool {
        false
    }
}

macro_rules! behind {
    ($($pointer:ident)*) => { $(
        #[async_trait]
        impl<S: LeaseStore + ?Sized> LeaseStore for $pointer<S> {
            async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error> {
                (**self).acquire(request).await
            }

            async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
                (**self).renew(request).await
            }

            async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
                (**self).release(request).await
            }

            async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
                (**self).cancel(request).await
            }

            async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
                (**self).reap(request).await
            }

            async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
                (**self).status(pool).await
            }

            async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
                (**self).list(request).await
            }

            async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
                (**self).audit(request).await
            }

            async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
                (**self).administer(request).await
            }

            fn hints(&self, pool: &PoolName) -> Option<BoxStream<'static, ()>> {
                (**self).hints(pool)
            }

            fn answers_at_once(&self) -> bool {
                (**self).answers_at_once()
            }
        }
    )* };
}
behind!(Arc Box);
