//! What this process has seen of a pool's endpoints and sites, as far as verdicts go by it.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;

use super::timed::Timed;
use crate::guard::Guard;
use crate::id::EndpointId;
use crate::outcome::Outcome;
use crate::site::Site;
use crate::verdict::{Evidence, Others, Verdict};

/// One pool's ledger.
pub(super) struct Ledger {
    guard: Guard,
    state: Mutex<State>,
}

struct State {
    /// Weak failures of endpoints since their last success.
    weak: HashMap<EndpointId, Weak>,
    /// Endpoints whose last word was a failure, as long as it counts for the brake.
    failing: Timed,
    /// Endpoints that rest by weak evidence.
    resting: Timed,
    /// Endpoints that rest or are parked by evidence that is not weak.
    away: Timed,
    /// The least recently asked goes first.
    sites: LruCache<Site, Seen>,
    braked: bool,
    /// Weak failures of so many are kept before those are looked for that count no more.
    kept: usize,
}

#[derive(Default)]
struct Weak {
    failures: u32,
    /// Where the first one was.
    site: Option<Site>,
    /// Whether another one was elsewhere.
    several: bool,
    /// When the last one was.
    last: Option<Instant>,
}

impl Weak {
    fn counts(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.saturating_duration_since(last) < MEMORY)
    }
}

/// What was seen of a site.
#[derive(Default)]
struct Seen {
    reached: Lately,
    failed: Lately,
    /// Endpoints that weak evidence keeps from it.
    shunned: Timed,
}

/// The last two endpoints that something holds for, so that the last one other than any is known.
#[derive(Default)]
struct Lately([Option<(EndpointId, Instant)>; 2]);

impl Lately {
    fn add(&mut self, endpoint: &EndpointId, now: Instant) {
        match &mut self.0[0] {
            Some((last, at)) if last == endpoint => *at = now,
            _ => {
                self.0.swap(0, 1);
                self.0[0] = Some((endpoint.clone(), now));
            }
        }
    }

    fn other_than(&self, endpoint: &EndpointId) -> Option<Instant> {
        self.0.iter().flatten().find(|(other, _)| other != endpoint).map(|(_, at)| *at)
    }
}

/// What a judge is to know of one lease, and what is to be told afterwards.
pub(super) struct Weighed<'a> {
    pub(super) evidence: Evidence<'a>,
    /// The brake has just gone on, or off.
    pub(super) news: Option<bool>,
}

/// Sites that are remembered.
const SITES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// Weak failures count for so long when no success comes.
const MEMORY: Duration = Duration::from_secs(3600);

/// Endpoints that may have left the inventory with weak failures before they are forgotten.
const FORGOTTEN: usize = 64;

/// One in quarantine is taken to be there for so long, unless it is leased again.
const PARKED: Duration = Duration::from_secs(24 * 3600);

/// How long a place under the floor is kept for a verdict that is on its way.
const VERDICT: Duration = Duration::from_secs(1);

impl Ledger {
    pub(super) fn new(guard: Guard) -> Self {
        // The other constructor takes the memory for all of them at once.
        let mut sites = LruCache::unbounded();
        sites.resize(SITES);
        Self {
            guard,
            state: Mutex::new(State {
                weak: HashMap::new(),
                failing: Timed::default(),
                resting: Timed::default(),
                away: Timed::default(),
                sites,
                braked: false,
                kept: 0,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the brake is on, in a pool of so many.
    pub(super) fn is_braked(&self, members: usize) -> bool {
        let mut state = self.state();
        let failing = state.failing.len_at(Instant::now());
        state.braked && self.guard.brakes(failing, members, true)
    }

    #[cfg(test)]
    pub(super) fn failing(&self) -> usize {
        self.state().failing.len_at(Instant::now())
    }

    #[cfg(test)]
    pub(super) fn weak(&self) -> usize {
        self.state().weak.len()
    }

    /// Takes an outcome of a lease in that was asked for at `since`, and adds to the evidence what is
    /// known around it.
    pub(super) fn weigh<'a>(
        &self,
        endpoint: &EndpointId,
        since: Instant,
        evidence: Evidence<'a>,
        members: usize,
    ) -> Weighed<'a> {
        let (now, outcome) = (Instant::now(), evidence.outcome);
        let mut state = self.state();
        let others = state.note((endpoint, since), &evidence, now, self.guard.within);
        let news = state.brake(&self.guard, members, now);
        let mut evidence = Evidence { others, braked: state.braked, ..evidence };
        if outcome.is_weak() {
            state.weaken((endpoint, since), &mut evidence, now);
            state.forget(2 * members + FORGOTTEN, now);
            let most = if state.braked { 0 } else { self.guard.most_resting(members) };
            let most = most.saturating_sub(state.away.len_at(now));
            evidence.may_rest = room(&mut state.resting, endpoint, most, now);
            if let Some(seen) = evidence.site.and_then(|site| state.sites.get_mut(site)) {
                evidence.may_shun = room(&mut seen.shunned, endpoint, most, now);
            }
        }
        Weighed { evidence, news }
    }

    /// Notes for the floor what a verdict does.
    pub(super) fn settle(&self, endpoint: &EndpointId, evidence: Evidence<'_>, verdict: &Verdict) {
        let now = Instant::now();
        if !evidence.outcome.is_weak() {
            if evidence.outcome.is_against() {
                let rest = verdict.quarantine.map_or(verdict.cooldown, |_| PARKED);
                self.state().away.set(endpoint, later(now, rest));
            }
            return;
        }
        let mut state = self.state();
        settle(&mut state.resting, endpoint, verdict.cooldown, now);
        if let Some(seen) = evidence.site.and_then(|site| state.sites.get_mut(site)) {
            settle(&mut seen.shunned, endpoint, verdict.shun.unwrap_or_default(), now);
        }
    }
}

impl State {
    /// Notes what an endpoint has seen, and tells what the others have seen of the site before.
    fn note(
        &mut self,
        (endpoint, since): (&EndpointId, Instant),
        evidence: &Evidence<'_>,
        now: Instant,
        within: Duration,
    ) -> Others {
        let Evidence { outcome, served, site, .. } = *evidence;
        let served = served || outcome == Outcome::Success;
        let failed_later = |until: Instant| until > later(since, within);
        // A lease that began before a failure is no news on what came of that.
        if !self.failing.until(endpoint).is_some_and(failed_later) {
            self.away.remove(endpoint);
            if served {
                // As in `Timed`, a healthy pool is not hashed for.
                if !self.weak.is_empty() {
                    self.weak.remove(endpoint);
                }
                self.failing.remove(endpoint);
            }
        }
        if outcome.is_against() {
            self.failing.set(endpoint, later(now, within));
        }
        let reached = served || outcome == Outcome::Banned;
        // A failure to reach the endpoint says nothing of the site.
        let failed = outcome.is_weak() || is_the_targets(outcome);
        let Some(site) = site.filter(|_| reached || failed) else { return Others::Unknown };
        let seen = match self.sites.get_mut(site) {
            Some(seen) => seen,
            None => self.sites.get_or_insert_mut(site.clone(), Seen::default),
        };
        let others = seen.others(endpoint, now, within);
        if reached { &mut seen.reached } else { &mut seen.failed }.add(endpoint, now);
        others
    }

    /// Drops weak failures that count no more, now and then, when there are more than usual.
    fn forget(&mut self, usual: usize, now: Instant) {
        if self.weak.len() > usual.max(self.kept) {
            self.weak.retain(|_, weak| weak.counts(now));
            self.kept = 2 * self.weak.len();
        }
    }

    /// Puts the brake on or off; says whether that is news.
    fn brake(&mut self, guard: &Guard, members: usize, now: Instant) -> Option<bool> {
        let failing = self.failing.len_at(now);
        let braked = guard.brakes(failing, members, self.braked);
        (std::mem::replace(&mut self.braked, braked) != braked).then_some(braked)
    }

    /// Adds to the evidence the weak failures before this one, and counts it.
    fn weaken(
        &mut self,
        (endpoint, since): (&EndpointId, Instant),
        evidence: &mut Evidence<'_>,
        now: Instant,
    ) {
        let mut is_counted = false;
        if let Some(weak) = self.weak.get(endpoint).filter(|weak| weak.counts(now)) {
            // Holders at once in a shared pool fail at once, and that is one failure.
            is_counted = weak.last.is_some_and(|last| since < last);
            evidence.weak = weak.failures - u32::from(is_counted);
            evidence.elsewhere = weak.several || !is_counted && weak.site.as_ref() != evidence.site;
        }
        if is_counted || evidence.others == Others::Fail {
            return;
        }
        let weak = self.weak.entry(endpoint.clone()).or_default();
        if !weak.counts(now) {
            *weak = Weak::default();
        }
        weak.last = Some(now);
        match weak.failures {
            0 => weak.site = evidence.site.cloned(),
            _ => weak.several |= weak.site.as_ref() != evidence.site,
        }
        weak.failures = weak.failures.saturating_add(1);
    }
}

impl Seen {
    /// The last word of the other endpoints.
    fn others(&self, endpoint: &EndpointId, now: Instant, within: Duration) -> Others {
        let lately = |seen: &Lately| {
            seen.other_than(endpoint).filter(|at| now.saturating_duration_since(*at) < within)
        };
        match (lately(&self.reached), lately(&self.failed)) {
            (None, None) => Others::Unknown,
            (reached, failed) if failed > reached => Others::Fail,
            _ => Others::Reach,
        }
    }
}

const fn is_the_targets(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::TargetUnreachable | Outcome::TargetTls)
}

/// Whether one more may be in a set of at most so many; keeps its place if so.
fn room(set: &mut Timed, endpoint: &EndpointId, most: usize, now: Instant) -> bool {
    let room = set.len_at(now) < most || (most > 0 && set.contains(endpoint));
    if room && !set.contains(endpoint) {
        set.set(endpoint, now + VERDICT);
    }
    room
}

/// Gives a place that was kept to what came of it; an earlier verdict that goes on stands.
fn settle(set: &mut Timed, endpoint: &EndpointId, rest: Duration, now: Instant) {
    let earlier = set.until(endpoint).filter(|until| *until > now + VERDICT);
    match later(now, rest).max(earlier.unwrap_or(now)) {
        until if until > now => set.set(endpoint, until),
        _ => set.remove(endpoint),
    }
}

fn later(now: Instant, time: Duration) -> Instant {
    now.checked_add(time).unwrap_or_else(|| now + LONGEST)
}

/// Keeps sums of instants representable.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
