//! The server.

use std::time::{Duration, SystemTime};

use reqwest_lease::{Replica, ServerReport};

use crate::diagnosis::Diagnosis;
use crate::time;

/// Looks at what the server told, between two readings of the clock here.
pub(super) fn examine(
    report: &ServerReport,
    asked: SystemTime,
    answered: SystemTime,
    diagnosis: &mut Diagnosis,
) {
    diagnosis.fact("server", report.version.clone());
    if !report.is_primary {
        diagnosis.error(
            "role",
            "the server is a replica: it grants nothing",
            "put the primary's address into LEASE_REDIS_URL".into(),
        );
    }
    persistence(report, diagnosis);
    if report.eviction.starts_with("allkeys-") {
        diagnosis.error(
            "eviction",
            format!("the server may evict the pool: its maxmemory-policy is {}", report.eviction),
            "CONFIG SET maxmemory-policy noeviction, and the same in the server's file".into(),
        );
    }
    memory(report, diagnosis);
    for (nth, replica) in report.replicas.iter().enumerate() {
        examine_replica(nth + 1, replica, diagnosis);
    }
    if report.good_replicas == Some(0) {
        diagnosis.error(
            "replication",
            "the server wants replicas (min-replicas-to-write) and none follows closely: nothing is \
             granted",
            "see to the replicas, or lower min-replicas-to-write".into(),
        );
    }
    if report.replicas.is_empty() {
        diagnosis.fact("replicas", "none: the pool is as safe as this server's disk");
    } else {
        diagnosis.fact("replicas", report.replicas.len().to_string());
    }
    clock(report.time, asked, answered, diagnosis);
}

fn persistence(report: &ServerReport, diagnosis: &mut Diagnosis) {
    if !report.append_only {
        diagnosis.warning(
            "persistence",
            "the server keeps no append-only file: after a restart the pool is as old as the last \
             snapshot, or gone",
            "CONFIG SET appendonly yes, and the same in the server's file".into(),
        );
    }
    if report.append_failed || report.snapshot_failed {
        let what = if report.append_failed { "append-only file" } else { "snapshot" };
        diagnosis.error(
            "saving",
            format!("the server could not write its {what}: it may refuse all writes"),
            "see the server's log; make room on its disk and check the rights of its directory"
                .into(),
        );
    }
}

fn memory(report: &ServerReport, diagnosis: &mut Diagnosis) {
    let used = report.used_memory as f64 / MEGABYTE;
    let Some(limit) = report.memory_limit else {
        diagnosis.fact("memory", format!("{used:.0} MB used, no limit"));
        return;
    };
    let share = report.used_memory as f64 / limit as f64;
    diagnosis.fact("memory", format!("{used:.0} MB used, {:.0}% of the limit", share * 100.0));
    if share >= 1.0 {
        diagnosis.error(
            "memory",
            "the server's memory is full: nothing is granted, or it evicts what it keeps",
            "raise maxmemory, or move what else is on the server".into(),
        );
        return;
    }
    if share > FULL {
        diagnosis.warning(
            "memory",
            format!(
                "{:.0}% of the server's memory is used: when it is full nothing is granted",
                share * 100.0
            ),
            "raise maxmemory, or move what else is on the server".into(),
        );
    }
}

fn examine_replica(nth: usize, replica: &Replica, diagnosis: &mut Diagnosis) {
    if !replica.online || replica.lag > LATE || replica.behind > FAR_BEHIND {
        let how = if replica.online {
            format!(
                "was last heard of {} ago, {} bytes behind",
                time::short(replica.lag),
                replica.behind
            )
        } else {
            "is not following yet".to_owned()
        };
        diagnosis.warning(
            "replication",
            format!("replica {nth} {how}: promoted now, it would lack grants"),
            "see the replica's log and the network between the two".into(),
        );
    }
}

/// Leases go by the server's clock alone; a wrong one here only shows wrong times.
fn clock(server: SystemTime, asked: SystemTime, answered: SystemTime, diagnosis: &mut Diagnosis) {
    let behind = asked.duration_since(server).unwrap_or_default();
    let ahead = server.duration_since(answered).unwrap_or_default();
    let apart = behind.max(ahead);
    if apart > CLOCKS_APART {
        let which = if ahead > behind { "ahead of" } else { "behind" };
        diagnosis.warning(
            "clock",
            format!("the server's clock is {} {which} the one here", time::short(apart)),
            "set both by NTP; a server's clock that jumps ends leases early or late".into(),
        );
    }
}

const MEGABYTE: f64 = 1_000_000.0;

/// A share of memory from which it is time to act.
const FULL: f64 = 0.85;

/// A replica speaks once a second.
const LATE: Duration = Duration::from_secs(10);

/// Bytes of writes; a grant is about a thousand.
const FAR_BEHIND: u64 = 1_000_000;

const CLOCKS_APART: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_apart_are_found_and_the_way_to_the_server_is_not() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let found = |server, answered| {
            let mut diagnosis = Diagnosis::default();
            clock(server, now, answered, &mut diagnosis);
            diagnosis.has("clock")
        };
        let second = Duration::from_secs(1);
        assert!(!found(now, now) && !found(now + second, now + second * 9));
        assert!(found(now + second * 5, now + second));
        assert!(found(now - second * 5, now));
    }

    #[test]
    fn a_replica_that_does_not_follow_is_found() {
        let found = |online, lag, behind| {
            let mut diagnosis = Diagnosis::default();
            let replica = Replica::new(online, Duration::from_secs(lag), behind);
            examine_replica(1, &replica, &mut diagnosis);
            diagnosis.has("replication")
        };
        assert!(!found(true, 1, 5000));
        assert!(found(false, 0, 0) && found(true, 60, 0) && found(true, 0, 2_000_000));
    }
}
