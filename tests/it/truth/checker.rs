//! Whether the server kept its promises, by what it wrote down itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::aof::{Keyspace, Step};
use super::layout::{Lease, Picture, Place};

/// What was found in a run.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) steps: usize,
    pub(super) renewals: usize,
    /// Grants to tokens whose earlier lease had ended.
    pub(super) again: usize,
    /// By fence.
    pub(super) terms: BTreeMap<u64, Term>,
    pub(super) wrongs: Vec<(Wrong, String)>,
}

/// One lease from its grant on.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) id: String,
    pub(super) lease: Lease,
    pub(super) end: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Released,
    Cancelled,
    Reclaimed,
}

/// A promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    NotInOnePlace,
    RecordsDisagree,
    FenceDidNotGrow,
    TokenTwice,
    /// A valid lease ended in a call that grants, which ends only those that ran out.
    ReclaimedEarly,
    /// An id was granted before its cooldown was over, or while it was parked or leased.
    GrantedEarly,
    /// A lease ended and its token was left, so another's token ended it.
    EndedByStranger,
    ReleasedLate,
    RenewedLate,
    DeadlineMoved,
    /// Two holders relied on one id at the same moment.
    BelievedTwice,
    /// A holder relied on what the server had not granted it, or not for so long.
    BelievedWrongly,
    /// A holder was told before its deadline that it held nothing.
    LostEarly,
    /// A holder was obeyed after its deadline.
    LateObeyed,
}

impl Findings {
    pub(super) fn wrong(&mut self, wrong: Wrong, what: impl fmt::Display) {
        self.wrongs.push((wrong, what.to_string()));
    }

    /// How often each promise was broken.
    pub(super) fn counted(&self) -> BTreeMap<Wrong, usize> {
        let mut counted = BTreeMap::new();
        self.wrongs.iter().for_each(|(wrong, _)| *counted.entry(*wrong).or_default() += 1);
        counted
    }

    pub(super) fn ended(&self, end: End) -> usize {
        self.terms.values().filter(|term| term.end == Some(end)).count()
    }
}

/// Replays what a server wrote down of the pool with this prefix, whose leases all have this ttl.
pub(super) fn check(steps: &[Step], prefix: &str, ttl: u64) -> Findings {
    let mut keys = Keyspace::default();
    let mut checker = Checker { ttl, ..Checker::default() };
    let mut before = None;
    for step in steps {
        step.iter().for_each(|command| keys.apply(command));
        let after = Picture::of(&keys, prefix);
        if let (Some(before), Some(after)) = (&before, &after) {
            checker.step(before, after);
        }
        before = after;
        checker.findings.steps += 1;
    }
    checker.findings
}

#[derive(Default)]
struct Checker {
    ttl: u64,
    /// The server's clock had come this far.
    clock: u64,
    /// Each token with the fence of its last grant.
    tokens: BTreeMap<String, u64>,
    /// From when on an id may be granted again.
    free_from: BTreeMap<String, u64>,
    findings: Findings,
}

/// Those of one call keep their order by a microsecond each.
const SPREAD: u64 = 64;

impl Checker {
    fn step(&mut self, before: &Picture, after: &Picture) {
        self.agree(before, after);
        let granted: Vec<_> = after
            .leases
            .iter()
            .filter_map(|(id, lease)| Some((id, lease.as_ref()?)))
            .filter(|(_, lease)| lease.fence > before.fence)
            .collect();
        let now = granted.iter().map(|(_, lease)| lease.granted_at).max();
        self.clock = self.clock.max(now.unwrap_or_default());
        for (id, lease) in &before.leases {
            let Some(lease) = lease else { continue };
            match after.leases.get(id) {
                Some(Some(same)) if same.fence == lease.fence => self.renewed(same, lease, after),
                _ => self.ended(id, lease, after, now),
            }
        }
        // What an administrator took out comes back by his word.
        let stays =
            |id: &String| after.places.get(id).is_some_and(|at| !at.contains(&Place::Parked));
        self.free_from.retain(|id, _| stays(id));
        for (id, lease) in granted {
            self.granted(id, lease, before);
        }
    }

    /// What must hold after every step.
    fn agree(&mut self, before: &Picture, after: &Picture) {
        for (id, places) in &after.places {
            if places.len() != 1 {
                self.findings.wrong(Wrong::NotInOnePlace, format!("{id}: {places:?}"));
            }
        }
        let owners: BTreeSet<_> =
            after.leases.values().flatten().map(|lease| &lease.token).collect();
        if owners.len() != after.leases.len() || !owners.into_iter().eq(&after.live) {
            self.findings.wrong(Wrong::RecordsDisagree, format!("{:?}", after.leases));
        }
        if after.fence < before.fence {
            self.findings.wrong(Wrong::FenceDidNotGrow, after.fence);
        }
    }

    fn granted(&mut self, id: &str, lease: &Lease, before: &Picture) {
        let free_from = self.free_from.get(id).copied().unwrap_or_default();
        let parked = before.places.get(id).is_none_or(|places| places.contains(&Place::Parked));
        if lease.granted_at < free_from || parked {
            let what = format!("{id}: {lease:?}, free from {free_from}, parked: {parked}");
            self.findings.wrong(Wrong::GrantedEarly, what);
        }
        if lease.deadline != lease.granted_at + self.ttl {
            self.findings.wrong(Wrong::DeadlineMoved, format!("{id}: {lease:?}"));
        }
        // One whose lease has run out may ask again: its first answer was lost.
        if let Some(earlier) = self.tokens.insert(lease.token.clone(), lease.fence) {
            self.findings.again += 1;
            if self.findings.terms[&earlier].end.is_none() {
                self.findings.wrong(Wrong::TokenTwice, format!("{id}: {lease:?}"));
            }
        }
        let term = Term { id: id.to_owned(), lease: lease.clone(), end: None };
        if self.findings.terms.insert(lease.fence, term).is_some() {
            self.findings.wrong(Wrong::FenceDidNotGrow, format!("{id}: {lease:?}"));
        }
    }

    fn renewed(&mut self, lease: &Lease, old: &Lease, after: &Picture) {
        if lease.deadline == old.deadline {
            return;
        }
        self.findings.renewals += 1;
        let longest = lease.granted_at + after.lifetime;
        if lease.deadline < longest {
            self.clock = self.clock.max(lease.deadline - self.ttl);
        }
        if self.clock >= old.deadline {
            self.findings.wrong(Wrong::RenewedLate, format!("{old:?} {lease:?}"));
        }
        if lease.deadline < old.deadline || lease.deadline > longest {
            self.findings.wrong(Wrong::DeadlineMoved, format!("{old:?} {lease:?}"));
        }
        if let Some(term) = self.findings.terms.get_mut(&lease.fence) {
            term.lease.deadline = lease.deadline;
        }
    }

    /// `now` is known in a call that grants.
    fn ended(&mut self, id: &str, lease: &Lease, after: &Picture, now: Option<u64>) {
        let place = after.places.get(id).and_then(|places| places.first().copied());
        let rested = lease.deadline + lease.cooldown;
        let reclaimed = (rested..rested + SPREAD).contains(&match place {
            Some(Place::Ready(at) | Place::Cooling(at)) => at,
            _ => 0,
        });
        // One that ran out may have been granted anew to the same token.
        let owns = after.leases.values().flatten().any(|other| other.token == lease.token);
        let left = after.live.contains(&lease.token) && !owns;
        let stranger = left && !reclaimed && now.is_none();
        if stranger {
            self.findings.wrong(Wrong::EndedByStranger, format!("{id}: {lease:?}"));
        } else if now.is_some_and(|now| now < lease.deadline) {
            self.findings.wrong(Wrong::ReclaimedEarly, format!("{id}: {lease:?}"));
        }
        // Where the server does not say when it was, it was no earlier than this.
        let mut since = self.clock;
        let free_from = match place {
            _ if reclaimed || now.is_some() => rested,
            // Its holder goes on relying on it.
            _ if stranger => lease.deadline,
            Some(Place::Ready(at)) => {
                since = since.max(at - SPREAD);
                at - SPREAD
            }
            Some(Place::Cooling(at)) => at,
            _ => 0,
        };
        self.free_from.insert(id.to_owned(), free_from);
        let cancelled = after.cancelled.contains(&lease.token);
        let end = match (cancelled, reclaimed || now.is_some()) {
            (true, _) => End::Cancelled,
            (_, true) => End::Reclaimed,
            _ => End::Released,
        };
        self.clock = self.clock.max(if end == End::Released { since } else { 0 });
        let parked = !matches!(place, Some(Place::Ready(_) | Place::Cooling(_)));
        if end == End::Released && !parked && since >= lease.deadline {
            self.findings.wrong(Wrong::ReleasedLate, format!("{id}: {lease:?} by {since}"));
        }
        if let Some(term) = self.findings.terms.get_mut(&lease.fence) {
            term.end = Some(end);
        }
    }
}
