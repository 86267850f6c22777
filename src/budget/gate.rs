//! The buckets that one request has to pass.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use smallvec::{SmallVec, smallvec};

use super::clock::At;
use super::place::Place;
use super::queue::{Queue, State, Step};
use super::turn::{Passage, Turn};
use crate::error::Error;
use crate::site::Site;

/// The buckets of one request: those of its keys in one order for all requests, and the site's
/// as the last; none for what has no limit.
///
/// While it is held, none of them is forgotten. It is made for the moment: all that it decides is
/// for the time at which it was made.
pub(crate) struct Gate<'a> {
    site: &'a Site,
    keys: &'a [Box<str>],
    buckets: SmallVec<[Bucket; 1]>,
    now: At,
}

/// One of them, and which key it is for; the site's has none.
struct Bucket {
    queue: Arc<Queue>,
    key: Option<usize>,
}

impl<'a> Gate<'a> {
    /// No bucket.
    pub(super) fn open(site: &'a Site, now: At) -> Self {
        Self { site, keys: &[], buckets: SmallVec::new(), now }
    }

    pub(super) fn of_site(site: &'a Site, queue: Arc<Queue>, now: At) -> Self {
        Self { site, keys: &[], buckets: smallvec![Bucket { queue, key: None }], now }
    }

    pub(super) fn new(
        site: &'a Site,
        queue: Option<Arc<Queue>>,
        keys: &'a [Box<str>],
        find: impl Fn(&str) -> Option<Arc<Queue>>,
        now: At,
    ) -> Self {
        let bucket = |(nth, queue): (usize, Option<Arc<Queue>>)| {
            queue.map(|queue| Bucket { queue, key: Some(nth) })
        };
        let found = keys.iter().map(|key| find(key)).enumerate();
        let mut buckets: SmallVec<[_; 1]> = found.filter_map(bucket).collect();
        // Any order will do that is the same for all, also in other processes that share them. Two
        // keys can have one bucket, the overflow's.
        buckets.sort_unstable_by_key(|Bucket { queue, key }| {
            let name = key.filter(|_| !queue.is_overflow).map(|nth| &keys[nth]);
            (queue.is_overflow, name, Arc::as_ptr(queue))
        });
        buckets.dedup_by(|one, other| Arc::ptr_eq(&one.queue, &other.queue));
        buckets.extend(queue.map(|queue| Bucket { queue, key: None }));
        Self { site, keys, buckets, now }
    }

    #[cfg(test)]
    pub(super) fn queues(&self) -> impl Iterator<Item = &Arc<Queue>> {
        self.buckets.iter().map(|bucket| &bucket.queue)
    }

    #[cfg(test)]
    pub(super) fn key_names(&self) -> impl Iterator<Item = &str> {
        self.buckets.iter().filter_map(|bucket| bucket.key.map(|nth| &*self.keys[nth]))
    }

    /// Whether nobody is queued before any bucket, and each has a slot due now.
    pub(crate) fn would_pass(&self) -> bool {
        let would = |queue: &Queue| queue.would_pass(&mut queue.state(), self.now);
        self.buckets.iter().all(|bucket| would(&bucket.queue))
    }

    /// Takes a slot of each bucket if nobody is queued and each has one that is due now; else it
    /// takes none of any.
    pub(crate) fn try_pass(&self) -> Option<Passage> {
        let now = self.now;
        match self.buckets.as_slice() {
            [] => return Some(Passage::without_limit(now)),
            [only] => return try_pass(&only.queue, now),
            _ => {}
        }
        // In the order of the buckets, which is the same for all.
        let mut states: SmallVec<[MutexGuard<'_, State>; 4]> =
            self.buckets.iter().map(|bucket| bucket.queue.state()).collect();
        let each = || self.buckets.iter().map(|bucket| &bucket.queue);
        let all = each().zip(&mut states).all(|(queue, state)| queue.would_pass(state, now));
        let ready = |(queue, state): (&Arc<Queue>, &mut MutexGuard<'_, State>)| {
            queue.look(state, now, now) == Step::Go
        };
        if !all || !each().zip(&mut states).all(ready) {
            return None;
        }
        let good_until = states.iter().map(|state| state.schedule.good_until()).min()?;
        let stays = each().zip(&mut states).filter_map(|(queue, state)| queue.spend(state, now));
        Some(Passage::of(self.buckets.len(), now, good_until, stays.collect()))
    }

    /// Whether another attempt may use the passage of one that the site has not seen, and then
    /// has it go out now.
    ///
    /// It may not if a bucket was paused meanwhile, unless this is the pause's probe, nor if a
    /// bucket has come up that it never passed.
    pub(crate) fn lets(&self, passage: &mut Passage) -> bool {
        let now = self.now;
        let paused = |bucket: &Bucket| {
            bucket.queue.state().pause.as_deref().is_some_and(|pause| {
                pause.is_on(now) || pause.is_open() && !passage.probes(&bucket.queue, pause)
            })
        };
        let passed = self.buckets.len() <= passage.buckets && now <= passage.good_until;
        let lets = passed && !self.buckets.iter().any(paused);
        if lets {
            passage.sent = now;
        }
        lets
    }

    /// Enters all queues; each wait is judged now.
    ///
    /// # Errors
    ///
    /// [`Kind::BudgetExceeded`](crate::Kind::BudgetExceeded) at once if a wait would be longer
    /// than `max_wait`, with the time that it would take, and
    /// [`Kind::SiteRefuses`](crate::Kind::SiteRefuses) while it does. Nothing is charged.
    pub(crate) fn turn(&self, max_wait: Duration) -> Result<Turn, Error> {
        let mut turn = Turn { places: SmallVec::new(), looked: self.now };
        self.join(&mut turn, max_wait)?;
        // Later buckets serve others until the first one is had.
        if let Some(first) = turn.places.first_mut() {
            first.take_up();
        }
        Ok(turn)
    }

    /// Enters the queues that a turn is not in yet: a site without a budget has one only while it
    /// is paused or slowed.
    ///
    /// # Errors
    ///
    /// As [`turn`](Self::turn).
    pub(crate) fn join(&self, turn: &mut Turn, max_wait: Duration) -> Result<(), Error> {
        turn.looked = self.now;
        let mut comes = self.now;
        for Bucket { queue, key } in &self.buckets {
            if turn.places.iter().any(|place| place.is_before(queue)) {
                continue;
            }
            let first = turn.places.first().map(Place::ticket);
            let ticket = first.unwrap_or_else(|| queue.limit.common.ticket());
            let name = key.map_or(self.site.as_str(), |nth| &self.keys[nth]);
            let (place, goes) = Place::enter(queue, name, ticket, self.now, (comes, max_wait))?;
            turn.places.push(place);
            comes = comes.max(goes);
        }
        Ok(())
    }
}

/// Takes a slot if nobody is queued and one is due now.
///
/// Nobody is the head meanwhile, for who enters has to take the same lock.
fn try_pass(queue: &Arc<Queue>, now: At) -> Option<Passage> {
    let mut state = queue.state();
    if state.queued() > 0 || queue.look(&mut state, now, now) != Step::Go {
        return None;
    }
    let good_until = state.schedule.good_until();
    let stay = queue.spend(&mut state, now);
    Some(Passage::of(1, now, good_until, Vec::from_iter(stay)))
}
