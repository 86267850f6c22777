//! What a pool tells about itself.

use super::moment::Moment;
use super::pool::Pool;
use super::slot::{Place, Rank};
use crate::id::Fence;
use crate::store::{ListRequest, MemberState, State, Status};

impl Pool {
    /// Counts, telling what is recorded from what is valid now.
    pub(super) fn status(&self) -> Status {
        let now = self.now();
        let by_now = ..=(Rank(now.0, u64::MAX), u32::MAX);
        let due = self.cooling.range(by_now).count();
        let expired = self.deadlines.range(by_now).count();
        let mut status = Status::empty(self.config.clone());
        status.config_version = self.config_version;
        status.loading = self.loading;
        status.paused = self.paused;
        status.hold = Some(self.hold_until.from(now)).filter(|left| !left.is_zero());
        status.ready = self.ready.len() + due;
        status.cooling = self.cooling.len() - due;
        status.leased = self.deadlines.len() - expired;
        status.expired = expired;
        status.disabled = self.disabled;
        status.quarantined = self.quarantined;
        status.fence = Fence(self.fence);
        status.next = self.next(now);
        status
    }

    /// A page of members in order of their ids.
    pub(super) fn list(&self, request: &ListRequest) -> Vec<MemberState> {
        let now = self.now();
        let page = self.members.after(request.after.as_ref()).take(request.limit);
        page.map(|index| self.member(index, now)).collect()
    }

    fn member(&self, index: u32, now: Moment) -> MemberState {
        let slot = &self.members[index];
        let mut member = MemberState::new(slot.id.clone(), slot.weight);
        member.state = match slot.place {
            Place::Ready(_) => State::Ready,
            Place::Cooling(until) => State::Cooling(Moment(until.0).from(now)),
            Place::Disabled => State::Disabled,
            Place::Quarantined(code) => State::Quarantined(code),
            Place::Leased(token) => match self.leases.get(&token) {
                Some(lease) if lease.deadline > now => State::Leased(lease.deadline.from(now)),
                _ => State::Expired,
            },
        };
        member.order = slot.order;
        member.assignments = slot.assignments;
        member.strikes = slot.strikes;
        member
    }
}
