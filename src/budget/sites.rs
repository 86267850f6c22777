//! The queues of sites that have no rule of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::At;
use super::queue::Queue;
use crate::site::Site;

/// A map with a soft cap. What is evicted is idle and as good as new, so a site that comes back
/// gets no more than its rate; a live queue always stays.
pub(super) struct Sites([Mutex<Shard>; SHARDS]);

struct Shard {
    queues: HashMap<Site, Arc<Queue>>,
    cap: usize,
    /// The size at which idle queues are next looked for.
    sweep_at: usize,
}

impl Sites {
    pub(super) fn new(cap: usize) -> Self {
        let cap = cap.div_ceil(SHARDS);
        let shard = || Shard { queues: HashMap::new(), cap, sweep_at: cap };
        Self(std::array::from_fn(|_| Mutex::new(shard())))
    }

    pub(super) fn find(&self, site: &Site) -> Option<Arc<Queue>> {
        self.shard(site).queues.get(site).cloned()
    }

    /// The queue of a site, made by `new` if there is none.
    pub(super) fn find_or(&self, site: &Site, new: impl FnOnce() -> Queue) -> Arc<Queue> {
        let mut shard = self.shard(site);
        if let Some(queue) = shard.queues.get(site) {
            return Arc::clone(queue);
        }
        let queue = Arc::new(new());
        if shard.queues.len() >= shard.sweep_at {
            shard.sweep(queue.now());
        }
        shard.queues.insert(site.clone(), Arc::clone(&queue));
        queue
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|shard| lock(shard).queues.len()).sum()
    }

    fn shard(&self, site: &Site) -> MutexGuard<'_, Shard> {
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let hash = site.as_str().as_bytes().iter().fold(0x811c_9dc5, mix);
        lock(&self.0[(hash >> 16) as usize % SHARDS])
    }
}

impl Shard {
    /// Evicts what is idle; the next sweep waits until the map has grown by a quarter, so that
    /// a map full of live queues is not searched for every newcomer.
    fn sweep(&mut self, now: At) {
        // Nobody can take a queue out while the shard is locked, so one owner means nobody queued.
        self.queues.retain(|_, queue| Arc::strong_count(queue) > 1 || !queue.is_fresh(now));
        self.sweep_at = self.cap.max(self.queues.len() + self.queues.len() / 4);
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Enough that a sweep holds up few requests, and briefly.
const SHARDS: usize = 16;
