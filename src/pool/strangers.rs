//! Endpoints that the pool grants and that the inventory here does not have.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::id::EndpointId;
use crate::inventory::Inventory;

/// Most endpoints that stores pass over in one acquire.
pub(super) const MOST: usize = 256;

/// The ids that every acquire passes over until the inventory changes, as during a rolling update.
#[derive(Default)]
pub(super) struct Strangers {
    known: Mutex<Known>,
    count: AtomicUsize,
}

#[derive(Default)]
struct Known {
    generation: u64,
    ids: Vec<EndpointId>,
}

impl Strangers {
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Those known of this generation of the inventory.
    fn known(&self, generation: u64) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.generation < generation {
            *known = Known { generation, ids: Vec::new() };
            self.count.store(0, Ordering::Release);
        }
        known
    }

    /// Notes an id that the inventory lacked at this generation; `false` when that is of no use,
    /// since there are more than a store passes over, or all has changed.
    pub(super) fn note(&self, generation: u64, id: &EndpointId) -> bool {
        let mut known = self.known(generation);
        let news =
            known.generation == generation && known.ids.len() < MOST && !known.ids.contains(id);
        if news {
            known.ids.push(id.clone());
            self.count.store(known.ids.len(), Ordering::Release);
        }
        news
    }

    /// These and all strangers, as many as a store takes, which prefers the last ones.
    pub(super) fn and(&self, inventory: &Inventory, ids: &[EndpointId]) -> Vec<EndpointId> {
        if self.count() == 0 {
            return ids.to_vec();
        }
        let known = self.known(inventory.generation());
        let others = known.ids.iter().filter(|id| !ids.contains(id));
        others.take(MOST.saturating_sub(ids.len())).chain(ids).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;

    fn id(nth: usize) -> EndpointId {
        EndpointId::new(format!("e{nth}")).unwrap()
    }

    #[test]
    fn no_more_are_passed_over_than_a_store_takes_and_none_twice() {
        let endpoint = Endpoint::new(id(0), "http://127.0.0.1:1", None).unwrap();
        let inventory = Inventory::from_endpoints([endpoint]).unwrap();
        let strangers = Strangers::default();
        assert!((1..=MOST).all(|nth| strangers.note(1, &id(nth))));
        assert!(!strangers.note(1, &id(1)) && !strangers.note(1, &id(MOST + 1)));
        let all = strangers.and(&inventory, &[id(3), id(900)]);
        assert_eq!((all.len(), &all[MOST - 2..]), (MOST, &[id(3), id(900)][..]));
        assert_eq!(all.iter().filter(|other| **other == id(3)).count(), 1);
        assert!(strangers.note(2, &id(1)), "another inventory");
        assert!(!strangers.note(1, &id(2)), "one that is gone");
        assert_eq!(strangers.count(), 1);
    }
}
