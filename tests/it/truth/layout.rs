//! What the checker knows of the layout of the keys and of the scripts' sources: all of it.

use std::collections::{BTreeMap, BTreeSet};

use super::aof::Keyspace;

/// A pool at one moment. Times are microseconds of the server's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Picture {
    /// Each member with all the places in which it is.
    pub(super) places: BTreeMap<String, Vec<Place>>,
    /// Each leased id with its lease; none where the records do not make one.
    pub(super) leases: BTreeMap<String, Option<Lease>>,
    /// Tokens that are on record as having a lease.
    pub(super) live: BTreeSet<String>,
    /// Tokens that were given up.
    pub(super) cancelled: BTreeSet<String>,
    /// The number of the last grant.
    pub(super) fence: u64,
    /// The longest life of a lease.
    pub(super) lifetime: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Since this time.
    Ready(u64),
    /// Until this time.
    Cooling(u64),
    Leased,
    Parked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) token: String,
    pub(super) fence: u64,
    pub(super) granted_at: u64,
    pub(super) deadline: u64,
    /// After a deadline that passed.
    pub(super) cooldown: u64,
}

impl Picture {
    /// The pool whose keys begin with `prefix`; none before it was set up.
    pub(super) fn of(keys: &Keyspace, prefix: &str) -> Option<Self> {
        let hash = |name: &str| keys.hash(&format!("{prefix}{name}"));
        let set = |name: &str| keys.set(&format!("{prefix}{name}"));
        let meta = hash("meta");
        let mut picture = Self {
            fence: meta.get("fence")?.parse().unwrap(),
            lifetime: meta.get("largest_lifetime")?.parse().unwrap(),
            ..Self::default()
        };
        for id in set("members").into_keys() {
            picture.places.insert(id, Vec::new());
        }
        let mut place = |id: String, place| picture.places.entry(id).or_default().push(place);
        set("ready").into_iter().for_each(|(id, since)| place(id, Place::Ready(whole(since))));
        set("cooling").into_iter().for_each(|(id, until)| place(id, Place::Cooling(whole(until))));
        hash("parked").into_keys().for_each(|id| place(id, Place::Parked));
        let leases = set("leases");
        leases.keys().for_each(|id| place(id.clone(), Place::Leased));
        let requests = hash("requests");
        for (id, deadline) in leases {
            let token = requests.get(&format!("@{id}")).cloned().unwrap_or_default();
            let record = requests.get(&token).and_then(|record| record_of(record));
            let lease = record.filter(|record| record.3 == id).map(|record| Lease {
                token,
                fence: record.0,
                granted_at: record.1,
                cooldown: record.2,
                deadline: whole(deadline),
            });
            picture.leases.insert(id, lease);
        }
        for (token, record) in requests.into_iter().filter(|(name, _)| name.len() == TOKEN) {
            let gone = record.starts_with("cancelled:");
            if gone { &mut picture.cancelled } else { &mut picture.live }.insert(token);
        }
        Some(picture)
    }
}

/// A token's length in hexadecimal digits.
const TOKEN: usize = 32;

/// Fence, time of the grant, cooldown and id.
fn record_of(record: &str) -> Option<(u64, u64, u64, &str)> {
    let mut parts = record.splitn(4, ':');
    let mut number = || parts.next()?.parse().ok();
    let (fence, granted_at, cooldown) = (number()?, number()?, number()?);
    Some((fence, granted_at, cooldown, parts.next()?))
}

fn whole(score: f64) -> u64 {
    assert!(score >= 0.0 && score.fract() == 0.0, "{score} is no time");
    score as u64
}

/// Changes of the scripts' sources that turn one check off.
pub(crate) type Flaw = &'static [(&'static str, &'static str)];

/// The token of a lease that ran out goes on to end whatever lease its endpoint has then.
pub(super) const OLD_TOKENS_END_LEASES: Flaw = &[
    ("if id == ids[nth] then", "if false then"),
    ("valid = owners[nth] == one and ", "valid = "),
    ("call('HGET', requests, own) ~= one", "false"),
];

/// Leases are taken back whether or not their deadlines have passed.
pub(super) const DEADLINES_DO_NOT_COUNT: Flaw = &[
    (
        "split(due(leases))",
        "split(call('ZRANGE', leases, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES'))",
    ),
    ("ready_at[nth] = deadline + math.min(cooldown or 0, LONGEST)", "ready_at[nth] = now"),
];

/// A lease whose deadline has passed can be released while nobody has taken it back.
pub(super) const RELEASES_ARE_NEVER_LATE: Flaw = &[
    ("and tonumber(deadlines[nth] or 0) > now\n", "and deadlines[nth]\n"),
    ("(call('ZSCORE', leases, id) or 0) + 0 <= now", "not call('ZSCORE', leases, id)"),
];

/// Who ran out its lease does not rest.
pub(super) const NO_COOLDOWN_AFTER_EXPIRY: Flaw = &[(
    "ready_at[nth] = deadline + math.min(cooldown or 0, LONGEST)",
    "ready_at[nth] = deadline + 0",
)];
