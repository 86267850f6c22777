//! What was promised of a run, and what in it was otherwise.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::ledger::Granted;
use super::work::Sent;

/// A moment: what was granted until then, and how many marks had been set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) mark: usize,
    pub(super) fence: u64,
}

/// What must hold for a run.
#[derive(Debug, Default)]
pub(super) struct Promises {
    bans: Vec<Ban>,
    open: BTreeMap<String, u64>,
    rotations: Vec<Rotation>,
}

/// No grant of this endpoint, or of any with `*`, after one fence and up to another.
#[derive(Debug)]
struct Ban {
    endpoint: String,
    after: u64,
    until: u64,
}

/// No request with an older password from a moment on.
#[derive(Debug)]
struct Rotation {
    endpoint: String,
    password: usize,
    since: Moment,
}

/// One request as a proxy let it through to its site.
#[derive(Debug, Clone)]
pub(super) struct Carried {
    pub(super) number: usize,
    pub(super) endpoint: String,
    /// Unless the proxy is one that does not say.
    pub(super) password: Option<usize>,
}

/// What was seen in a run.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) sent: Vec<Sent>,
    pub(super) carried: Vec<Carried>,
    /// What the server wrote down; nothing where there is none.
    pub(super) granted: Vec<Granted>,
}

/// A promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    /// A request failed, or an attempt of it.
    Failed,
    /// A request was granted an endpoint that was out when an order's command had returned.
    GrantedAfterOrder,
    /// The server granted what one of its orders stood against.
    GrantedAgainstOrder,
    /// A request went out with the password of before.
    OldPassword,
    /// A request came to its site by another endpoint than its lease's, not once, or not at all.
    OtherWay,
    /// What a request says of its lease the server did not write down.
    NotGranted,
}

impl Promises {
    /// Nothing is to be granted of this from now on.
    pub(super) fn bans(&mut self, endpoint: &str, since: Moment) {
        self.open.entry(endpoint.to_owned()).or_insert(since.fence);
    }

    /// It may be granted again, after this fence.
    pub(super) fn lifts(&mut self, endpoint: &str, until: u64) {
        if let Some(after) = self.open.remove(endpoint) {
            self.bans.push(Ban { endpoint: endpoint.to_owned(), after, until });
        }
    }

    pub(super) fn is_banned(&self, endpoint: &str) -> bool {
        self.open.contains_key(endpoint)
    }

    pub(super) fn rotates(&mut self, endpoint: &str, password: usize, since: Moment) {
        self.rotations.push(Rotation { endpoint: endpoint.to_owned(), password, since });
    }

    /// What was otherwise.
    pub(super) fn broken(&self, evidence: &Evidence) -> Vec<(Wrong, String)> {
        let mut broken = Vec::new();
        let mut wrong =
            |wrong: Wrong, what: &dyn fmt::Debug| broken.push((wrong, format!("{what:?}")));
        let mut ways: HashMap<usize, Vec<&Carried>> = HashMap::new();
        for carried in &evidence.carried {
            ways.entry(carried.number).or_default().push(carried);
        }
        let granted: HashMap<u64, &str> =
            evidence.granted.iter().map(|one| (one.fence, one.endpoint.as_str())).collect();
        for sent in &evidence.sent {
            if sent.trouble.is_some() {
                wrong(Wrong::Failed, sent);
                continue;
            }
            match ways.get(&sent.number).map(Vec::as_slice) {
                Some([way]) if way.endpoint == sent.endpoint => {}
                other => wrong(Wrong::OtherWay, &(sent, other)),
            }
            if self.is_out(&sent.endpoint, sent.fence) {
                wrong(Wrong::GrantedAfterOrder, sent);
            }
            if !granted.is_empty() && granted.get(&sent.fence) != Some(&sent.endpoint.as_str()) {
                wrong(Wrong::NotGranted, sent);
            }
            for way in ways.get(&sent.number).into_iter().flatten() {
                if let Some(late) = self.rotations.iter().find(|one| one.is_late(sent, way)) {
                    wrong(Wrong::OldPassword, &(sent, way, late));
                }
            }
        }
        for one in &evidence.granted {
            if self.is_out(&one.endpoint, one.fence) {
                wrong(Wrong::GrantedAfterOrder, one);
            }
            if one.barred.is_some() {
                wrong(Wrong::GrantedAgainstOrder, one);
            }
        }
        broken
    }

    fn is_out(&self, endpoint: &str, fence: u64) -> bool {
        let open = self.open.iter().map(|(id, after)| (id.as_str(), *after, u64::MAX));
        let past = self.bans.iter().map(|ban| (ban.endpoint.as_str(), ban.after, ban.until));
        open.chain(past).any(|(id, after, until)| {
            (id == "*" || id == endpoint) && after < fence && fence <= until
        })
    }
}

impl Rotation {
    /// Whether a request went out with an older password though it began, or was granted its
    /// endpoint, when the new one was in force.
    fn is_late(&self, sent: &Sent, way: &Carried) -> bool {
        let after = sent.begun > self.since.mark || sent.fence > self.since.fence;
        let old = way.password.is_some_and(|password| password < self.password);
        way.endpoint == self.endpoint && after && old
    }
}

/// How often each promise was broken.
pub(super) fn counted(broken: &[(Wrong, String)]) -> BTreeMap<Wrong, usize> {
    let mut counted = BTreeMap::new();
    broken.iter().for_each(|(wrong, _)| *counted.entry(*wrong).or_default() += 1);
    counted
}
