//! The members of a pool, by number, by id and in order.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::{Index, IndexMut};

use super::slot::Slot;
use crate::id::EndpointId;

/// All members. A member keeps its number, an index, until it is removed.
#[derive(Debug, Default)]
pub(super) struct Members {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_id: HashMap<EndpointId, u32>,
    in_order: BTreeMap<EndpointId, u32>,
    serial: u64,
}

impl Members {
    /// Adds members that are not there; says whether labels of older ones changed.
    pub(super) fn insert(&mut self, slots: Vec<Slot>) -> bool {
        let few = slots.len() <= FEW.max(self.by_id.len() / 8);
        let mut room = few;
        for slot in slots {
            let index = self.store(slot);
            room = room && self.label(index);
        }
        if !room {
            self.label_all();
        }
        !room
    }

    /// Takes a member out.
    pub(super) fn remove(&mut self, index: u32) -> (EndpointId, u64) {
        let slot = &self[index];
        let former = (slot.id.clone(), slot.assignments);
        self.by_id.remove(&former.0);
        self.in_order.remove(&former.0);
        self.free.push(index);
        former
    }

    pub(super) fn find(&self, id: &EndpointId) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    /// Members in order of their ids, those after `after`.
    pub(super) fn after(&self, after: Option<&EndpointId>) -> impl Iterator<Item = u32> + '_ {
        let start = after.map_or(Unbounded, Excluded);
        self.in_order.range::<EndpointId, _>((start, Unbounded)).map(|(_, index)| *index)
    }

    fn store(&mut self, mut slot: Slot) -> u32 {
        self.serial += 1;
        slot.serial = self.serial;
        let id = slot.id.clone();
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.in_order.insert(id.clone(), index);
        self.by_id.insert(id, index);
        index
    }

    /// Labels a member between its neighbours, if there is room.
    fn label(&mut self, index: u32) -> bool {
        let id = &self[index].id;
        let label = |(_, index): (_, &u32)| self[*index].label;
        let before = self.in_order.range::<EndpointId, _>((Unbounded, Excluded(id))).next_back();
        let after = self.in_order.range::<EndpointId, _>((Excluded(id), Unbounded)).next();
        let label = match (before.map(label), after.map(label)) {
            (None, None) => Some(FIRST),
            (Some(before), None) => before.checked_add(GAP),
            (None, Some(after)) => after.checked_sub(GAP),
            (Some(before), Some(after)) => (after - before > 1).then(|| before.midpoint(after)),
        };
        if let Some(label) = label {
            self[index].label = label;
        }
        label.is_some()
    }

    fn label_all(&mut self) {
        for (nth, index) in self.in_order.values().enumerate() {
            self.slots[*index as usize].label = FIRST + nth as u64 * GAP;
        }
    }
}

impl Index<u32> for Members {
    type Output = Slot;

    fn index(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }
}

impl IndexMut<u32> for Members {
    fn index_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }
}

/// Half-way, so that there is room on both sides.
const FIRST: u64 = 1 << 62;

/// Room between labels, for members that come later.
const GAP: u64 = 1 << 31;

/// Up to this many new members, or one for eight that are there, are labelled one by one; for more
/// all are labelled anew.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Member;

    fn slot(id: &str) -> Slot {
        Slot::new(&Member::new(EndpointId::new(id).unwrap()), 0)
    }

    fn check(members: &Members) {
        let order: Vec<_> = members.after(None).collect();
        for pair in order.windows(2) {
            let (a, b) = (&members[pair[0]], &members[pair[1]]);
            assert!(a.id < b.id && a.label < b.label, "{a:?} {b:?}");
        }
    }

    #[test]
    fn labels_order_as_ids_however_members_come() {
        let mut members = Members::default();
        for nth in (0..200).rev() {
            members.insert(vec![slot(&format!("m{nth:03}"))]);
        }
        for nth in 0..200 {
            members.insert(vec![slot(&format!("m100-{nth:03}"))]);
        }
        members.insert((0..200).rev().map(|nth| slot(&format!("m050-{nth:03}"))).collect());
        check(&members);
        assert_eq!(members.after(None).count(), 600);
    }

    #[test]
    fn a_removed_member_is_in_no_index() {
        let mut members = Members::default();
        members.insert(vec![slot("a"), slot("b"), slot("c")]);
        let b = members.find(&EndpointId::new("b").unwrap()).unwrap();
        members.remove(b);
        assert_eq!(members.find(&EndpointId::new("b").unwrap()), None);
        members.insert(vec![slot("d")]);
        let ids: Vec<_> = members.after(None).map(|index| members[index].id.to_string()).collect();
        assert_eq!(ids, ["a", "c", "d"]);
        check(&members);
    }

    #[test]
    fn a_page_starts_after_an_id_that_need_not_be_there() {
        let mut members = Members::default();
        members.insert(vec![slot("a"), slot("c")]);
        let b = EndpointId::new("b").unwrap();
        assert_eq!(members.after(Some(&b)).count(), 1);
    }
}
