//! Keeping, giving back and giving up.

use std::collections::hash_map::Entry;

use super::moment::Moment;
use super::pool::{Lease, Pool};
use super::slot::Place;
use crate::error::Error;
use crate::id::{EndpointId, Fence};
use crate::secret::Token;
use crate::store::{
    CancelReply, CancelRequest, Claim, Mode, ReapReply, Release, ReleaseReply, ReleaseRequest,
    RenewReply, RenewRequest, check,
};

impl Pool {
    /// Moves a deadline, never closer and never beyond the largest lifetime.
    pub(super) fn renew(&mut self, request: &RenewRequest) -> Result<RenewReply, Error> {
        check::ttl(request.ttl, &self.config)?;
        let now = self.now();
        let largest = self.config.largest_lifetime;
        let Some(lease) = self.leases.get_mut(&request.token).filter(|lease| lease.deadline > now)
        else {
            return Ok(RenewReply::NotOwner);
        };
        let wanted = now.after(request.ttl).min(lease.granted_at.after(largest));
        if wanted > lease.deadline {
            self.deadlines.remove(&lease.due());
            lease.deadline = wanted;
            self.deadlines.insert(lease.due());
        }
        Ok(RenewReply::Renewed(lease.deadline.from(now)))
    }

    /// Ends leases with their verdicts.
    pub(super) fn release(&mut self, request: &ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        check::release(request)?;
        let now = self.now();
        let release = |release| match self.release_one(release, now) {
            Some(()) => ReleaseReply::Released,
            None => ReleaseReply::NotOwner,
        };
        Ok(request.releases.iter().map(release).collect())
    }

    /// Ends a token's lease without a cooldown, and bars it from another.
    pub(super) fn cancel(&mut self, request: &CancelRequest) -> CancelReply {
        let now = self.now();
        self.tombstones.sweep(now);
        self.tombstones.add(request.token, now.after(request.tombstone));
        match self.end(request.token, now) {
            Some(lease) => {
                self.settle(lease.index, None, now, now);
                CancelReply::Released
            }
            None => CancelReply::Tombstoned,
        }
    }

    /// Does all clean-up that is due, a bounded part of it.
    pub(super) fn reap(&mut self) -> ReapReply {
        let now = self.now();
        self.tombstones.sweep(now);
        self.shuns.sweep(now);
        self.sweep(now)
    }

    fn release_one(&mut self, release: &Release, now: Moment) -> Option<()> {
        match &release.claim {
            Claim::Lease(token) => {
                let lease = self.end(*token, now)?;
                self.judge(lease.index, lease.fence, release, now);
                let verdict = &release.verdict;
                self.settle(lease.index, verdict.quarantine, now.after(verdict.cooldown), now);
            }
            Claim::Assignment { endpoint, fence } => {
                let index = self.assigned(endpoint, *fence)?;
                self.judge(index, fence.0, release, now);
                self.settle_shared(index, fence.0, release, now);
            }
        }
        Some(())
    }

    /// Ends a lease that is still valid. The caller finds its endpoint a place.
    fn end(&mut self, token: Token, now: Moment) -> Option<Lease> {
        match self.leases.entry(token) {
            Entry::Occupied(entry) if entry.get().deadline > now => {
                let lease = entry.remove();
                self.deadlines.remove(&lease.due());
                Some(lease)
            }
            _ => None,
        }
    }

    fn assigned(&self, endpoint: &EndpointId, fence: Fence) -> Option<u32> {
        let granted = self.config.mode == Mode::Shared
            && (self.first_fence + 1..=self.fence).contains(&fence.0);
        self.members.find(endpoint).filter(|_| granted)
    }

    /// Applies what a verdict says beside the place.
    fn judge(&mut self, index: u32, fence: u64, release: &Release, now: Moment) {
        let verdict = &release.verdict;
        self.members[index].strike(verdict.strike, fence, self.fence);
        if let (Some(rest), Some(site)) = (verdict.shun, &release.site) {
            self.shuns.add(self.members[index].serial, site.clone(), now.after(rest), now);
        }
    }

    /// Places a member that others may hold too: a verdict never undoes a stronger one.
    fn settle_shared(&mut self, index: u32, fence: u64, release: &Release, now: Moment) {
        let until = now.after(release.verdict.cooldown);
        // Who has enabled it since that grant knew better.
        let is_news = fence > self.members[index].enabled_at;
        match (self.members[index].place, release.verdict.quarantine.filter(|_| is_news)) {
            (Place::Quarantined(_), _) => {}
            (_, Some(code)) => self.place(index, Place::Quarantined(code)),
            (Place::Cooling(rank), None) if rank.0 < until.0 => self.cool(index, until),
            (Place::Ready(_), None) if until > now => self.cool(index, until),
            _ => {}
        }
    }
}
