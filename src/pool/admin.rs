//! Looking at a pool, giving it orders, and following the inventory.

use std::sync::Arc;

use super::Pool;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::id::EndpointId;
use crate::inventory::{Reloaded, Snapshot};
use crate::store::{
    AdminReply, AdminRequest, AuditEntry, AuditId, AuditRequest, ListRequest, Member, MemberState,
    Order, StandingOrder, Status,
};

impl Pool {
    /// Counts of the pool's states. Changes nothing, dropped or not.
    ///
    /// # Errors
    /// Those of [`LeaseStore::status`](crate::LeaseStore::status).
    pub async fn status(&self) -> Result<Status, Error> {
        self.0.core.noted(self.0.core.store.status(&self.0.core.name).await)
    }

    /// All members with their states, in order of their ids. Changes nothing, dropped or not.
    ///
    /// # Errors
    /// Those of [`LeaseStore::list`](crate::LeaseStore::list).
    pub async fn list(&self) -> Result<Vec<MemberState>, Error> {
        let mut members: Vec<MemberState> = Vec::new();
        loop {
            let request = ListRequest {
                pool: self.0.core.name.clone(),
                after: members.last().map(|member| member.endpoint.clone()),
                limit: PAGE,
            };
            let page = self.0.core.noted(self.0.core.store.list(request).await)?;
            let last = page.len() < PAGE;
            members.extend(page);
            if last {
                return Ok(members);
            }
        }
    }

    /// One member, which costs as much in a large pool as in a small one.
    pub(crate) async fn member(&self, id: &EndpointId) -> Result<Option<MemberState>, Error> {
        let request = ListRequest::new(self.0.core.name.clone(), id.before(), 1);
        let next = self.0.core.noted(self.0.core.store.list(request).await)?;
        Ok(next.into_iter().find(|member| member.endpoint == *id))
    }

    /// The newest entries of the pool's trail of orders, or those before one; it outlasts the pool.
    /// Changes nothing, dropped or not.
    ///
    /// # Errors
    /// Those of [`LeaseStore::audit`](crate::LeaseStore::audit).
    pub async fn audit(
        &self,
        before: Option<AuditId>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        let request = AuditRequest::new(self.0.core.name.clone(), before, limit);
        self.0.core.noted(self.0.core.store.audit(request).await)
    }

    /// Carries out an administrator's order, in the name that
    /// [`PoolBuilder::administrator`](crate::PoolBuilder::administrator) was given.
    ///
    /// # Errors
    /// Those of [`LeaseStore::administer`](crate::LeaseStore::administer).
    ///
    /// # Cancel safety
    /// A dropped future leaves it unknown whether the order was carried out; orders can be
    /// repeated.
    pub async fn administer(&self, order: Order) -> Result<AdminReply, Error> {
        self.send(order, None).await
    }

    pub(crate) fn has_administrator(&self) -> bool {
        self.0.administrator.is_some()
    }

    /// Sends an order, from an inventory of this version.
    pub(super) async fn send(
        &self,
        order: Order,
        version: Option<u64>,
    ) -> Result<AdminReply, Error> {
        let request = AdminRequest::new(self.0.core.name.clone(), order)
            .by(self.0.administrator.clone())
            .with_config_version(version);
        let reply = self.0.core.noted(self.0.core.store.administer(request).await);
        // What was enabled, added or resumed may be what somebody waits for.
        self.0.core.waiting.something_came_free();
        reply
    }

    /// Reads the inventory again. In the embedded default the pool's members follow it: new
    /// ones are added, missing ones removed once their lease ends.
    ///
    /// # Errors
    /// [`Inventory`](crate::Kind::Inventory) when the new inventory is refused, and the old one stays;
    /// those of [`LeaseStore::administer`](crate::LeaseStore::administer).
    ///
    /// # Cancel safety
    /// A dropped future may leave members behind the inventory; calling again mends it.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        let _turn = self.0.reloading.lock().await;
        let reloaded = self.reload_in_turn().await;
        match &reloaded {
            Ok(_) => self.0.core.counters.reloads.add_one(),
            Err(_) => self.0.core.counters.reloads_failed.add_one(),
        }
        #[cfg(feature = "metrics")]
        self.0.core.stale.set(reloaded.is_err());
        reloaded
    }

    async fn reload_in_turn(&self) -> Result<Reloaded, Error> {
        let reloaded = self.0.inventory.reload().await?;
        // What the pool has and the inventory had not may be what somebody waits for.
        self.0.core.waiting.something_came_free();
        if self.0.embedded {
            self.follow_inventory().await?;
        }
        Ok(reloaded)
    }

    /// Makes the pool's members those of the inventory.
    pub(super) async fn follow_inventory(&self) -> Result<(), Error> {
        let snapshot = self.0.inventory.snapshot();
        let gone: Vec<EndpointId> = self
            .list()
            .await?
            .into_iter()
            // One that is on its way out already may be gone by now.
            .filter(|member| member.order != Some(StandingOrder::Remove))
            .map(|member| member.endpoint)
            .filter(|id| snapshot.get(id).is_none())
            .collect();
        if !gone.is_empty() {
            self.send(Order::Remove(gone), snapshot.version()).await?;
        }
        self.send(Order::Add(members(&snapshot)), snapshot.version()).await?;
        Ok(())
    }
}

const PAGE: usize = 1000;

/// The endpoints of an inventory as members.
pub(super) fn members(snapshot: &Snapshot) -> Vec<Member> {
    let member = |endpoint: &Arc<Endpoint>| {
        Member::new(endpoint.id().clone()).with_weight(endpoint.labels().weight)
    };
    snapshot.iter().map(member).collect()
}
