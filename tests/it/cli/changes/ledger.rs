//! Who was granted what, as the server wrote it down, with the orders that stood then.

use std::path::Path;

use crate::truth::aof::{self, Keyspace};

/// What a server is started with to write all down, and at once.
pub(super) const WRITES_ALL_DOWN: &[&str] = &[
    "--appendonly",
    "yes",
    "--appendfsync",
    "no",
    "--aof-use-rdb-preamble",
    "no",
    "--auto-aof-rewrite-percentage",
    "0",
];

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) fence: u64,
    pub(super) endpoint: String,
    /// The order that stood against it.
    pub(super) barred: Option<String>,
}

/// All grants in their order, from the files of a server in this directory.
pub(super) fn granted(directory: &Path, prefix: &str) -> Vec<Granted> {
    let key = |name: &str| format!("{prefix}{name}");
    let (orders, parked, requests) = (key("orders"), key("parked"), key("requests"));
    let (mut keys, mut granted) = (Keyspace::default(), Vec::new());
    for step in aof::read(directory) {
        let before = (keys.hash(&orders), keys.hash(&parked));
        for command in &step {
            if command[0].eq_ignore_ascii_case("HSET") && command[1] == requests {
                let records = command[2..].chunks(2).filter_map(|pair| record(&pair[0], &pair[1]));
                granted.extend(records.map(|(fence, id)| {
                    let order = before.0.get("*").or(before.0.get(&id)).or(before.1.get(&id));
                    Granted { fence, barred: order.cloned(), endpoint: id }
                }));
            }
            keys.apply(command);
        }
    }
    granted
}

/// The fence and the id in the record of a lease.
fn record(token: &str, record: &str) -> Option<(u64, String)> {
    let mut parts = record.splitn(4, ':');
    let fence = parts.next().filter(|_| token.len() == 32)?.parse().ok()?;
    Some((fence, parts.nth(2)?.to_owned()))
}
