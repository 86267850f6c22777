//! An administrator's orders.

use super::moment::Moment;
use super::pool::Pool;
use super::slot::{Place, Slot};
use crate::error::Error;
use crate::id::{EndpointId, PoolName};
use crate::store::{Member, Order, StandingOrder, check};
use crate::verdict::QuarantineCode;

impl Pool {
    /// Checks an order and carries it out.
    pub(super) fn carry_out(&mut self, pool: &PoolName, order: &Order) -> Result<usize, Error> {
        let now = self.now();
        Ok(match order {
            Order::Load(_) if !self.loading => return Err(check::open(pool)),
            Order::Load(members) => {
                check::members(members)?;
                self.join(members, now, |_, member| {
                    Slot::new(member, member.assignments.unwrap_or(0))
                })
            }
            Order::Open => usize::from(std::mem::replace(&mut self.loading, false)),
            Order::Add(members) => {
                check::members(members)?;
                let lowest = self.lowest();
                self.join(members, now, |pool, member| pool.newcomer(member, lowest))
            }
            Order::Remove(ids) => self.each(pool, ids, Self::remove)?,
            Order::Disable(ids) => {
                self.each(pool, ids, |pool, index| pool.bar(index, StandingOrder::Disable))?
            }
            Order::Drain(ids) => {
                self.each(pool, ids, |pool, index| pool.bar(index, StandingOrder::Drain))?
            }
            Order::Enable(ids) => self.each(pool, ids, |pool, index| pool.enable(index, now))?,
            Order::Quarantine(ids, code) => {
                self.each(pool, ids, |pool, index| pool.quarantine(index, *code))?
            }
            Order::EndQuarantine(ids, code) => {
                self.each(pool, ids, |pool, index| pool.end_quarantine(index, *code, now))?
            }
            Order::Pause => usize::from(!std::mem::replace(&mut self.paused, true)),
            Order::Resume => usize::from(std::mem::replace(&mut self.paused, false)),
            Order::EndHold => usize::from(std::mem::replace(&mut self.hold_until, Moment(0)) > now),
            // Not of a pool that is there: the store sees to them.
            Order::Init(_) => return Err(check::exists(pool)),
            Order::DestroyPool => return Err(check::in_use(pool)),
        })
    }

    /// Carries an order out on each member, after a look that all of them are there.
    fn each(
        &mut self,
        pool: &PoolName,
        ids: &[EndpointId],
        mut order: impl FnMut(&mut Self, u32) -> bool,
    ) -> Result<usize, Error> {
        if let Some(unknown) = ids.iter().find(|id| self.members.find(id).is_none()) {
            return Err(check::unknown(pool, unknown.as_str()));
        }
        // An id that is named twice may be gone at its second turn.
        let changed = |id| self.members.find(id).is_some_and(|index| order(self, index));
        Ok(ids.iter().map(changed).filter(|changed| *changed).count())
    }

    /// Updates the members that are there, and adds the others with the slots made for them.
    fn join(
        &mut self,
        members: &[Member],
        now: Moment,
        slot: impl Fn(&mut Self, &Member) -> Slot,
    ) -> usize {
        let (old, new): (Vec<_>, Vec<_>) =
            members.iter().partition(|member| self.members.find(&member.endpoint).is_some());
        let updated = old.into_iter().filter(|member| self.update(member)).count();
        let slots = new.iter().map(|member| slot(self, member)).collect();
        self.disabled += new.len();
        if self.members.insert(slots) {
            self.rank_anew();
        }
        for member in &new {
            if let Some(index) = self.members.find(&member.endpoint) {
                self.make_ready(index, now);
            }
        }
        updated + new.len()
    }

    fn newcomer(&mut self, member: &Member, lowest: Option<(u64, u32)>) -> Slot {
        let own = self.former.pop(&member.endpoint).unwrap_or(0);
        let floor = lowest.map_or(0, |(assignments, weight)| {
            let floor = u128::from(assignments) * u128::from(member.weight) / u128::from(weight);
            u64::try_from(floor).unwrap_or(u64::MAX)
        });
        Slot::new(member, member.assignments.unwrap_or(own.max(floor)))
    }

    /// Assignments and weight of the member with the lowest share.
    fn lowest(&self) -> Option<(u64, u32)> {
        let share = |slot: &&Slot| slot.share();
        let slots = self.members.after(None).map(|index| &self.members[index]);
        slots.min_by_key(share).map(|slot| (slot.assignments, slot.weight))
    }

    /// New weight, new count, and an end to a removal under way.
    fn update(&mut self, member: &Member) -> bool {
        let Some(index) = self.members.find(&member.endpoint) else { return false };
        let slot = &mut self.members[index];
        let before = (slot.weight, slot.assignments, slot.order);
        slot.weight = member.weight;
        slot.assignments = member.assignments.unwrap_or(slot.assignments);
        slot.order = slot.order.filter(|order| *order != StandingOrder::Remove);
        let changed = before != (slot.weight, slot.assignments, slot.order);
        if let (true, Place::Ready(rank)) = (changed, slot.place) {
            self.make_ready(index, Moment(rank.0));
        }
        changed
    }

    fn remove(&mut self, index: u32) -> bool {
        match self.members[index].place {
            Place::Leased(_) => self.stand(index, StandingOrder::Remove),
            _ => {
                self.forget(index);
                true
            }
        }
    }

    fn bar(&mut self, index: u32, order: StandingOrder) -> bool {
        if matches!(self.members[index].place, Place::Ready(_) | Place::Cooling(_)) {
            self.place(index, Place::Disabled);
        }
        self.stand(index, order)
    }

    fn enable(&mut self, index: u32, now: Moment) -> bool {
        let slot = &mut self.members[index];
        if slot.order == Some(StandingOrder::Remove) {
            return false;
        }
        slot.late = None;
        slot.enabled_at = self.fence;
        let ordered = slot.order.take().is_some();
        let parked = matches!(slot.place, Place::Disabled | Place::Quarantined(_));
        if parked {
            self.make_ready(index, now);
        }
        ordered || parked
    }

    fn quarantine(&mut self, index: u32, code: QuarantineCode) -> bool {
        match self.members[index].place {
            Place::Leased(_) => self.stand(index, StandingOrder::Quarantine(code)),
            place => {
                self.place(index, Place::Quarantined(code));
                place != Place::Quarantined(code)
            }
        }
    }

    fn end_quarantine(&mut self, index: u32, code: QuarantineCode, now: Moment) -> bool {
        let slot = &self.members[index];
        if slot.place != Place::Quarantined(code) {
            return false;
        }
        match slot.order {
            Some(_) => self.place(index, Place::Disabled),
            None => self.make_ready(index, now),
        }
        true
    }

    /// Records an order, unless the member is on its way out; says whether that was news. One to
    /// disable and one to quarantine stand beside each other.
    fn stand(&mut self, index: u32, order: StandingOrder) -> bool {
        use StandingOrder::{Disable, Drain, Quarantine, Remove};
        let slot = &mut self.members[index];
        let before = (slot.order, slot.late);
        (slot.order, slot.late) = match (order, before) {
            (_, (Some(Remove), _)) => before,
            (Quarantine(code), (Some(Disable | Drain), _)) => (slot.order, Some(code)),
            (Disable | Drain, (Some(Quarantine(code)), _)) => (Some(order), Some(code)),
            (Disable | Drain, (_, late)) => (Some(order), late),
            (Quarantine(_) | Remove, _) => (Some(order), None),
        };
        before != (slot.order, slot.late)
    }
}
