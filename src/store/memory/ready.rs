//! The members that can be granted, in the order in which they are.

use std::collections::BTreeSet;

use super::slot::Rank;
use crate::store::{Mode, Policy, PoolConfig};

/// What can be granted.
#[derive(Debug)]
pub(super) enum Ready {
    /// Lowest rank first.
    Ordered(BTreeSet<(Rank, u32)>),
    /// Any of them.
    Shuffled(Shuffled),
}

impl Ready {
    pub(super) fn new(config: &PoolConfig) -> Self {
        match (config.mode, config.policy) {
            (Mode::Exclusive, Policy::Random) => Self::Shuffled(Shuffled::default()),
            _ => Self::Ordered(BTreeSet::new()),
        }
    }

    pub(super) fn insert(&mut self, rank: Rank, index: u32) {
        match self {
            Self::Ordered(set) => {
                set.insert((rank, index));
            }
            Self::Shuffled(shuffled) => shuffled.insert(index),
        }
    }

    pub(super) fn remove(&mut self, rank: Rank, index: u32) {
        match self {
            Self::Ordered(set) => {
                set.remove(&(rank, index));
            }
            Self::Shuffled(shuffled) => shuffled.remove(index),
        }
    }

    /// The first that `admits` lets pass; `random` says where to start when any will do.
    pub(super) fn first(&self, random: u64, admits: impl Fn(u32) -> bool) -> Option<u32> {
        match self {
            Self::Ordered(set) => set.iter().map(|(_, index)| *index).find(|index| admits(*index)),
            Self::Shuffled(shuffled) => shuffled.first(random, admits),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (set, shuffled) = match self {
            Self::Ordered(set) => (Some(set), None),
            Self::Shuffled(shuffled) => (None, Some(&shuffled.members)),
        };
        let ordered = set.into_iter().flatten().map(|(_, index)| *index);
        ordered.chain(shuffled.into_iter().flatten().copied())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Ordered(set) => set.len(),
            Self::Shuffled(shuffled) => shuffled.members.len(),
        }
    }
}

/// Members without an order, each with its position at hand.
///
/// A stored random rank would not do: the lowest is taken and drawn anew, so that high ranks
/// stay behind for ever and one endpoint is granted over and over.
#[derive(Debug, Default)]
pub(super) struct Shuffled {
    members: Vec<u32>,
    positions: Vec<u32>,
}

impl Shuffled {
    fn insert(&mut self, index: u32) {
        if self.positions.len() <= index as usize {
            self.positions.resize(index as usize + 1, 0);
        }
        self.positions[index as usize] = self.members.len() as u32;
        self.members.push(index);
    }

    fn remove(&mut self, index: u32) {
        let position = self.positions[index as usize];
        self.members.swap_remove(position as usize);
        if let Some(moved) = self.members.get(position as usize) {
            self.positions[*moved as usize] = position;
        }
    }

    fn first(&self, random: u64, admits: impl Fn(u32) -> bool) -> Option<u32> {
        let start = ((u128::from(random) * self.members.len() as u128) >> 64) as usize;
        let (before, after) = self.members.split_at(start);
        after.iter().chain(before).copied().find(|index| admits(*index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_keeps_the_positions_of_the_others() {
        let mut shuffled = Shuffled::default();
        (0..5).for_each(|index| shuffled.insert(index));
        for gone in [4, 0, 2] {
            shuffled.remove(gone);
            for (position, index) in shuffled.members.iter().enumerate() {
                assert_eq!(shuffled.positions[*index as usize] as usize, position);
            }
        }
        assert_eq!(shuffled.members.len(), 2);
    }

    #[test]
    fn any_number_finds_a_member_and_an_empty_set_none() {
        let mut shuffled = Shuffled::default();
        assert_eq!(shuffled.first(u64::MAX, |_| true), None);
        (0..3).for_each(|index| shuffled.insert(index));
        assert_eq!(shuffled.first(0, |_| true), Some(0));
        assert_eq!(shuffled.first(u64::MAX, |_| true), Some(2));
        assert_eq!(shuffled.first(u64::MAX, |index| index == 1), Some(1));
    }
}
