//! What workers write down of what they believe to hold, line by line, so that a kill loses none.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::checker::{Findings, Wrong};

/// The time of day in microseconds; servers and workers of a test have one clock.
pub(super) fn wall() -> u64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap())
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

/// A worker's diary.
pub(super) struct Diary(Mutex<File>);

impl Diary {
    pub(super) fn open(path: &Path) -> Self {
        Self(Mutex::new(File::options().append(true).create(true).open(path).unwrap()))
    }

    fn line(&self, line: fmt::Arguments<'_>) {
        self.0.lock().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// From `from` on an endpoint is relied on, until `trust` unless more is written.
    pub(super) fn begins(&self, id: impl fmt::Display, fence: u64, from: u64, trust: u64) {
        self.line(format_args!("begins {id} {fence} {from} {trust}"));
    }

    /// It is, or was, relied on until then.
    pub(super) fn lasts(&self, fence: u64, until: u64) {
        self.line(format_args!("lasts {fence} {until}"));
    }

    /// It is not relied on after this.
    pub(super) fn ends(&self, fence: u64, at: u64) {
        self.line(format_args!("ends {fence} {at}"));
    }

    /// The store did what it promised not to do.
    pub(super) fn wrong(&self, wrong: Wrong, what: impl fmt::Display) {
        self.line(format_args!("{wrong:?} {what}"));
    }

    pub(super) fn counts(&self, what: &str) {
        self.line(format_args!("counts {what}"));
    }
}

/// That somebody relied on an endpoint.
#[derive(Debug, Clone)]
struct Belief {
    id: String,
    fence: u64,
    from: u64,
    until: u64,
}

/// The diaries of a run.
#[derive(Default)]
pub(super) struct Diaries {
    beliefs: Vec<Belief>,
    wrongs: Vec<(Wrong, String)>,
    pub(super) counts: BTreeMap<String, usize>,
}

impl Diaries {
    /// Reads one on, whose writer lived until `end`.
    pub(super) fn read(&mut self, path: &Path, end: u64) {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut beliefs = BTreeMap::<u64, Belief>::new();
        // The last line may be torn by a kill.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let words: Vec<_> = line.split_whitespace().collect();
            let number = |nth: usize| words[nth].parse::<u64>().unwrap();
            match words[0] {
                "begins" => {
                    let (fence, from, until) = (number(2), number(3), number(4));
                    let id = words[1].to_owned();
                    beliefs.insert(fence, Belief { id, fence, from, until });
                }
                "lasts" => {
                    let belief = beliefs.get_mut(&number(1)).unwrap();
                    belief.until = belief.until.max(number(2));
                }
                "ends" => {
                    let belief = beliefs.get_mut(&number(1)).unwrap();
                    belief.until = belief.until.min(number(2));
                }
                "counts" => *self.counts.entry(words[1].to_owned()).or_default() += 1,
                "LostEarly" => self.wrongs.push((Wrong::LostEarly, line.to_owned())),
                "LateObeyed" => self.wrongs.push((Wrong::LateObeyed, line.to_owned())),
                other => panic!("{other} in a diary"),
            }
        }
        self.beliefs.extend(beliefs.into_values().map(|mut belief| {
            belief.until = belief.until.min(end).max(belief.from);
            belief
        }));
    }

    pub(super) fn beliefs(&self) -> usize {
        self.beliefs.len()
    }

    /// Adds to what the checker found.
    pub(super) fn check(mut self, findings: &mut Findings) {
        findings.wrongs.append(&mut self.wrongs);
        self.beliefs.sort_by_key(|belief| belief.from);
        let mut last = BTreeMap::<String, Belief>::new();
        for belief in self.beliefs {
            let term = findings.terms.get(&belief.fence);
            let granted = term.is_some_and(|term| {
                term.id == belief.id
                    && term.lease.granted_at <= belief.from
                    && belief.until <= term.lease.deadline.max(belief.from)
            });
            if !granted {
                findings.wrong(Wrong::BelievedWrongly, format!("{belief:?}, {term:?}"));
            }
            match last.get(&belief.id) {
                // A token that asks again has one lease.
                Some(other) if other.until > belief.from && other.fence != belief.fence => {
                    findings.wrong(Wrong::BelievedTwice, format!("{other:?}, {belief:?}"));
                }
                _ => {}
            }
            let until = last.get(&belief.id).map_or(0, |last| last.until);
            if belief.until > until {
                last.insert(belief.id.clone(), belief);
            }
        }
    }
}
