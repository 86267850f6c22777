//! The buckets of sites and keys that have no rule of their own.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clock::At;
use super::limit::{Common, Limit};
use super::queue::Queue;

/// A map with a cap. What is evicted is idle and as good as new, so a site that comes back gets
/// no more than its rate; a live bucket always stays. Where a shard has no room left, its
/// newcomers of one kind share an overflow bucket, and a site that gets one of its own later
/// begins with what was used there.
///
/// Names are known by their keyed 64-bit hashes. Should two ever be the same, which among a
/// million has a chance of one in thirty million, their sites share a bucket.
pub(super) struct Sites {
    shards: [Mutex<Shard>; SHARDS],
    /// One for each kind, so that a site and a key of the same name are two.
    hashing: [RandomState; KINDS],
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Site,
    Key,
}

struct Shard {
    queues: HashMap<u64, Arc<Queue>, BuildHasherDefault<Hashed>>,
    cap: usize,
    /// When idle buckets were last looked for, and how many newcomers there were since.
    swept: At,
    newcomers: usize,
    overflow: [Option<Arc<Queue>>; KINDS],
}

impl Sites {
    pub(super) fn new(cap: usize) -> Self {
        let cap = cap.div_ceil(SHARDS);
        let shard = || Shard {
            queues: HashMap::default(),
            cap,
            swept: At::default(),
            newcomers: 0,
            overflow: Default::default(),
        };
        Self {
            shards: std::array::from_fn(|_| Mutex::new(shard())),
            hashing: [(); KINDS].map(|()| RandomState::new()),
        }
    }

    pub(super) fn find(&self, kind: Kind, name: &str) -> Option<Arc<Queue>> {
        let hash = self.hash(kind, name);
        self.shard(hash).queues.get(&hash).cloned()
    }

    /// The bucket of a name, made if there is none; the shared one if there is no room for it.
    pub(super) fn find_or_make(
        &self,
        kind: Kind,
        name: &str,
        limit: &Arc<Limit>,
        now: At,
    ) -> Arc<Queue> {
        let hash = self.hash(kind, name);
        let mut shard = self.shard(hash);
        if let Some(queue) = shard.queues.get(&hash) {
            return Arc::clone(queue);
        }
        if !shard.make_room(&limit.common, now) {
            return shard.overflow(kind, limit);
        }
        let queue = Queue::new(name, Arc::clone(limit));
        if let Some(overflow) = &shard.overflow[kind as usize] {
            // It may have stood in for this one.
            queue.resume_from(overflow, now);
        }
        let queue = Arc::new(queue);
        shard.queues.insert(hash, Arc::clone(&queue));
        queue
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).queues.len()).sum()
    }

    fn hash(&self, kind: Kind, name: &str) -> u64 {
        let mut hasher = self.hashing[kind as usize].build_hasher();
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The map itself goes by the lowest and the highest bits.
        lock(&self.shards[(hash >> 40) as usize % SHARDS])
    }
}

impl Shard {
    /// The bucket of those for whom there is no room.
    fn overflow(&mut self, kind: Kind, limit: &Arc<Limit>) -> Arc<Queue> {
        limit.common.counters.overflowed.add_one();
        let make = || {
            let sites = self.cap * SHARDS;
            tracing::warn!(sites, "no room for another site's budget, newcomers share one");
            Arc::new(Queue::overflow(Arc::clone(limit)))
        };
        Arc::clone(self.overflow[kind as usize].get_or_insert_with(make))
    }

    /// Whether there is room for one more. Idle buckets are looked for once a second, or when a
    /// quarter of the cap has come, so that a map full of live ones is not searched for each
    /// newcomer.
    fn make_room(&mut self, common: &Common, now: At) -> bool {
        self.newcomers += 1;
        if self.queues.len() < self.cap {
            return true;
        }
        if self.newcomers < self.cap / 4 && now.since(self.swept) < SWEEP_EVERY {
            return false;
        }
        (self.swept, self.newcomers) = (now, 0);
        // Nobody can take a bucket out while the shard is locked, so one owner means nobody uses
        // it.
        self.queues.retain(|_, queue| Arc::strong_count(queue) > 1 || !queue.is_fresh(now));
        common.counters.evicted.add(self.cap - self.queues.len());
        self.queues.len() < self.cap
    }
}

const SWEEP_EVERY: Duration = Duration::from_secs(1);

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes on a number that is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only 64-bit numbers are keys; others would be spread badly, and still found.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Enough that a sweep holds up few requests, and briefly.
const SHARDS: usize = 16;

const KINDS: usize = 2;
