//! Setting a pool up in a store.

use super::Pool;
use super::admin::members;
use crate::error::{Error, Kind};
use crate::id::EndpointId;
use crate::inventory::Snapshot;
use crate::store::{AdminReply, Order, Setup, check};

impl Pool {
    /// Sets the pool up in its store with the inventory's endpoints and their weights, and opens it;
    /// says how many it loaded or changed. Once for each pool, by whoever administers it.
    ///
    /// Endpoints are loaded some at a time, so that a large inventory holds up no other pool; until all
    /// are there this one grants nothing. If it is interrupted, calling it again with the
    /// same settings goes on where it was, with the inventory as it is then.
    ///
    /// # Errors
    /// [`InvalidCall`](Kind::InvalidCall) when the pool is open already, as one without a store of
    /// yours always is, or was begun with other settings; those of
    /// [`LeaseStore::administer`](crate::LeaseStore::administer).
    ///
    /// # Cancel safety
    /// A dropped future may leave the pool closed and partly loaded; calling again goes on.
    pub async fn set_up(&self, setup: impl Into<Setup>) -> Result<AdminReply, Error> {
        let snapshot = self.inventory().snapshot();
        let version = snapshot.version();
        self.begin(setup.into().loading(), version).await?;
        let mut changed = 0;
        for some in members(&snapshot).chunks(BATCH) {
            changed += self.send(Order::Load(some.to_vec()), version).await?.changed;
        }
        self.leave_out_strangers(&snapshot).await?;
        self.send(Order::Open, version).await?;
        Ok(AdminReply::new(changed))
    }

    /// Sets the pool up to be loaded, unless it is.
    async fn begin(&self, setup: Setup, version: Option<u64>) -> Result<(), Error> {
        let core = &self.0.core;
        let status = match core.store.status(&core.name).await {
            // That is how it begins, and no failure.
            Err(error) if error.kind() == Kind::PoolUninitialised => {
                return self.send(Order::Init(setup), version).await.map(drop);
            }
            status => core.noted(status)?,
        };
        // Only after a loss do fences begin above zero, and nothing has been granted yet.
        let begun = (status.config, status.fence.0 > 0);
        if !status.loading {
            Err(check::exists(self.name()))
        } else if begun != (setup.config, setup.after_loss) {
            Err(check::begun_otherwise(self.name()))
        } else {
            Ok(())
        }
    }

    /// Takes out what was loaded before and is not in the inventory any more.
    async fn leave_out_strangers(&self, snapshot: &Snapshot) -> Result<(), Error> {
        if self.status().await?.members() <= snapshot.len() {
            return Ok(());
        }
        let listed = self.list().await?.into_iter().map(|member| member.endpoint);
        let strangers: Vec<EndpointId> = listed.filter(|id| snapshot.get(id).is_none()).collect();
        self.send(Order::Remove(strangers), snapshot.version()).await.map(drop)
    }
}

/// Endpoints in one order: few enough to go on from soon, and enough to leave room in the trail of
/// orders. A store cuts them into calls that are short.
pub(super) const BATCH: usize = 5000;
