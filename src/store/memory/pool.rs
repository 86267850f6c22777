//! A pool's state and the moves of a member from place to place.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZeroUsize;
use std::time::{Duration, SystemTime};

use lru::LruCache;
use tokio::time::Instant;

use super::MAX_SWEEP;
use super::members::Members;
use super::moment::Moment;
use super::ready::Ready;
use super::shuns::Shuns;
use super::slot::{Place, Rank};
use super::tombstones::Tombstones;
use crate::id::EndpointId;
use crate::secret::Token;
use crate::store::{Mode, Policy, PoolConfig, ReapReply, Setup, StandingOrder};
use crate::verdict::QuarantineCode;

/// A pool.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) config: PoolConfig,
    pub(super) config_version: Option<u64>,
    pub(super) loading: bool,
    pub(super) paused: bool,
    /// Nothing is granted before.
    pub(super) hold_until: Moment,
    pub(super) members: Members,
    pub(super) ready: Ready,
    /// By the moment from which they may be granted.
    pub(super) cooling: BTreeSet<(Rank, u32)>,
    /// By deadline, those of one moment in the order of their grants.
    pub(super) deadlines: BTreeSet<(Rank, u32)>,
    pub(super) leases: HashMap<Token, Lease, BuildHasherDefault<TokenHasher>>,
    pub(super) tombstones: Tombstones,
    pub(super) shuns: Shuns,
    /// Assignments of those that were removed.
    pub(super) former: LruCache<EndpointId, u64>,
    pub(super) disabled: usize,
    pub(super) quarantined: usize,
    /// The fence of the last grant.
    pub(super) fence: u64,
    /// Fences up to here are of before a loss.
    pub(super) first_fence: u64,
    sequence: u64,
    epoch: Instant,
}

/// A lease, known by its token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) index: u32,
    pub(super) fence: u64,
    pub(super) granted_at: Moment,
    pub(super) deadline: Moment,
    pub(super) cooldown: Duration,
}

impl Lease {
    /// Its key among the deadlines.
    pub(super) fn due(&self) -> (Rank, u32) {
        (Rank(self.deadline.0, self.fence), self.index)
    }
}

/// Counts of removed members are kept for so many of them: sessions with ever new ids must not
/// fill the memory.
const MAX_FORMER: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

fn former() -> LruCache<EndpointId, u64> {
    let mut former = LruCache::unbounded();
    former.resize(MAX_FORMER);
    former
}

impl Pool {
    pub(super) fn new(setup: &Setup) -> Self {
        let Setup { config, loading, after_loss } = setup;
        let first_fence = if *after_loss { time_as_fence() } else { 0 };
        // A shared pool reserves nothing, so that nothing is to be waited for.
        let holds = *after_loss && config.mode == Mode::Exclusive;
        let hold = if holds { config.largest_ttl } else { Duration::ZERO };
        Self {
            ready: Ready::new(config),
            config: config.clone(),
            config_version: None,
            loading: *loading,
            paused: false,
            hold_until: Moment(0).after(hold),
            members: Members::default(),
            cooling: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            leases: HashMap::default(),
            tombstones: Tombstones::default(),
            shuns: Shuns::default(),
            former: former(),
            disabled: 0,
            quarantined: 0,
            fence: first_fence,
            first_fence,
            sequence: 0,
            epoch: Instant::now(),
        }
    }

    /// Whether workers may be using it.
    pub(super) fn is_in_use(&self) -> bool {
        !self.loading && !self.paused
    }

    /// Moves a member to another place. Its lease has been ended by the caller.
    pub(super) fn place(&mut self, index: u32, place: Place) {
        match std::mem::replace(&mut self.members[index].place, place) {
            Place::Ready(rank) => self.ready.remove(rank, index),
            Place::Cooling(rank) => {
                self.cooling.remove(&(rank, index));
            }
            Place::Leased(_) => {}
            Place::Disabled => self.disabled -= 1,
            Place::Quarantined(_) => self.quarantined -= 1,
        }
        match place {
            Place::Ready(rank) => self.ready.insert(rank, index),
            Place::Cooling(rank) => {
                self.cooling.insert((rank, index));
            }
            Place::Leased(_) => {}
            Place::Disabled => self.disabled += 1,
            Place::Quarantined(_) => self.quarantined += 1,
        }
    }

    /// Readies a member that has been available since a moment.
    pub(super) fn make_ready(&mut self, index: u32, since: Moment) {
        let rank = self.ready_rank(index, since);
        self.place(index, Place::Ready(rank));
    }

    pub(super) fn cool(&mut self, index: u32, until: Moment) {
        let rank = Rank(until.0, self.next_sequence());
        self.place(index, Place::Cooling(rank));
    }

    /// Places a member whose lease has ended; standing orders come before all else.
    pub(super) fn settle(
        &mut self,
        index: u32,
        quarantine: Option<QuarantineCode>,
        ready_at: Moment,
        now: Moment,
    ) {
        let order = self.members[index].order;
        match (order, self.members[index].late.take().or(quarantine)) {
            (Some(StandingOrder::Remove), _) => self.forget(index),
            (Some(StandingOrder::Quarantine(code)), _) => {
                self.members[index].order = None;
                self.place(index, Place::Quarantined(code));
            }
            (_, Some(code)) => self.place(index, Place::Quarantined(code)),
            (Some(StandingOrder::Disable | StandingOrder::Drain), None) => {
                self.place(index, Place::Disabled);
            }
            (None, None) if ready_at > now => self.cool(index, ready_at),
            (None, None) => self.make_ready(index, ready_at),
        }
    }

    /// Takes a member out of the pool, and keeps its count for a return.
    pub(super) fn forget(&mut self, index: u32) {
        self.place(index, Place::Disabled);
        self.disabled -= 1;
        let (id, assignments) = self.members.remove(index);
        self.former.put(id, assignments);
    }

    /// Takes back expired leases and readies what has cooled, a bounded number of each.
    pub(super) fn sweep(&mut self, now: Moment) -> ReapReply {
        let reclaimed = (0..MAX_SWEEP).take_while(|_| self.reclaim_first(now)).count();
        let promoted = (0..MAX_SWEEP).take_while(|_| self.promote_first(now)).count();
        let more = self.deadlines.first().is_some_and(|(deadline, _)| deadline.0 <= now.0)
            || self.cooling.first().is_some_and(|(until, _)| until.0 <= now.0);
        ReapReply { reclaimed, promoted, more }
    }

    /// Takes back a lease whose deadline has passed: its holder may still be on the wire.
    pub(super) fn reclaim(&mut self, lease: Lease, now: Moment) {
        self.deadlines.remove(&lease.due());
        self.settle(lease.index, None, lease.deadline.after(lease.cooldown), now);
    }

    /// Gives all ready members their ranks anew, after the order of ids was relabelled.
    pub(super) fn rank_anew(&mut self) {
        if !self.by_share() {
            return;
        }
        let Ready::Ordered(set) = &mut self.ready else { return };
        let indices: Vec<_> = std::mem::take(set).into_iter().map(|(_, index)| index).collect();
        for index in &indices {
            let rank = self.members[*index].share();
            self.members[*index].place = Place::Ready(rank);
        }
        let rank = |index: u32| (self.members[index].share(), index);
        self.ready = Ready::Ordered(indices.into_iter().map(rank).collect());
    }

    pub(super) fn now(&self) -> Moment {
        Moment::now(self.epoch)
    }

    fn ready_rank(&mut self, index: u32, since: Moment) -> Rank {
        if self.by_share() {
            return self.members[index].share();
        }
        match self.members[index].place {
            Place::Ready(rank) | Place::Cooling(rank) if rank.0 == since.0 => rank,
            _ => Rank(since.0, self.next_sequence()),
        }
    }

    fn reclaim_first(&mut self, now: Moment) -> bool {
        match self.deadlines.first() {
            Some((deadline, index)) if deadline.0 <= now.0 => {
                let Place::Leased(token) = self.members[*index].place else { return false };
                let Some(lease) = self.leases.remove(&token) else { return false };
                self.reclaim(lease, now);
                true
            }
            _ => false,
        }
    }

    fn promote_first(&mut self, now: Moment) -> bool {
        match self.cooling.first() {
            Some((until, index)) if until.0 <= now.0 => {
                let (since, index) = (Moment(until.0), *index);
                self.make_ready(index, since);
                true
            }
            _ => false,
        }
    }

    fn by_share(&self) -> bool {
        self.config.mode == Mode::Shared || self.config.policy == Policy::LeastAssigned
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// Where fences begin after a loss: no pool grants a million a second, so that they are above those
/// of before.
fn time_as_fence() -> u64 {
    let age = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(age.as_micros()).unwrap_or(u64::MAX / 2)
}

/// Tokens are random already: folding them is hash enough.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_ne_bytes(word)).wrapping_mul(ODD).rotate_left(32);
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
