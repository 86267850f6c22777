//! What is told of probes.

use std::collections::HashMap;
use std::time::Duration;

use reqwest_lease::{EndpointId, MemberState, PoolName, ProbeChange};
use serde_json::{Value, json};

use crate::exit::Code;
use crate::list;
use crate::output::{Report, count, some};
use crate::time;

use super::finding::Finding;
use super::orders::Changes;

/// All passed, or what is to be looked at.
pub(super) fn code(findings: &[Finding]) -> Code {
    let is_left = |it: &Finding| !it.passed() && !it.is_late();
    if findings.iter().any(is_left) {
        Code::FINDINGS
    } else if findings.iter().any(Finding::is_late) {
        Code::LATE
    } else {
        Code::DONE
    }
}

pub(super) fn report(
    pool: &PoolName,
    site: &str,
    took: Duration,
    findings: &[Finding],
    changes: &Changes,
    now: &[MemberState],
) -> Report {
    let now: HashMap<_, _> = now.iter().map(|member| (&member.endpoint, member)).collect();
    let number = |is: fn(&Finding) -> bool| findings.iter().filter(|it| is(it)).count();
    let (passed, failed) = (number(Finding::passed), number(Finding::failed));
    let late = number(Finding::is_late);
    let other = findings.len() - passed - failed - late;
    let rows: Vec<_> =
        findings.iter().map(|it| as_json(it, now.get(&it.id).copied(), changes)).collect();
    let json = json!({
        "pool": pool.as_str(), "site": site, "took_seconds": took.as_secs_f64(),
        "passed": passed, "failed": failed, "late": late, "other": other, "endpoints": rows,
    });
    let mut summary = format!("{passed} of {} passed", count(findings.len(), "endpoint"));
    for (number, what) in [(failed, "failed"), (other, "in doubt"), (late, "not free in time")] {
        if number > 0 {
            summary += &format!(", {number} {what}");
        }
    }
    let mut report = table(Report::new(json), findings, &now)
        .line("")
        .line(format!("{summary}; it took {}", time::short(took)));
    for change in [ProbeChange::Quarantined, ProbeChange::QuarantineEnded] {
        let ids: Vec<_> = changes.iter().filter(|(_, it)| **it == change).map(|it| it.0).collect();
        if !ids.is_empty() {
            let (_, what) = words(change);
            report = report.line(format!("{what}: {} ({})", ids.len(), some(&ids)));
        }
    }
    report
}

/// A row each, in those columns that say something.
fn table(report: Report, findings: &[Finding], now: &HashMap<&EndpointId, &MemberState>) -> Report {
    let columns = ["endpoint", "result", ">latency", "tls", "exit address", "now"];
    let rows: Vec<_> = findings.iter().map(|it| row(it, now.get(&it.id).copied())).collect();
    let said: Vec<_> =
        (0..columns.len()).filter(|nth| rows.iter().any(|row| !row[*nth].is_empty())).collect();
    let columns: Vec<_> = said.iter().map(|nth| columns[*nth]).collect();
    let rows = rows.iter().map(|row| said.iter().map(|nth| row[*nth].clone()).collect()).collect();
    report.table(&columns, rows)
}

fn row(finding: &Finding, now: Option<&MemberState>) -> [String; 6] {
    let report = finding.report();
    let tls = report.and_then(|report| report.tls);
    let address = report.and_then(|report| report.exit_address);
    [
        finding.id.to_string(),
        finding.told(),
        report.map(|report| time::short(report.latency)).unwrap_or_default(),
        tls.map(|good| if good { "good" } else { "bad" }).unwrap_or_default().to_owned(),
        address.map(|address| address.to_string()).unwrap_or_default(),
        now.map(list::place).unwrap_or_default(),
    ]
}

fn as_json(finding: &Finding, now: Option<&MemberState>, changes: &Changes) -> Value {
    let report = finding.report();
    json!({
        "id": finding.id.as_str(), "result": finding.word(),
        "passed": finding.passed(), "failed": finding.failed(),
        "status": report.and_then(|report| report.status).map(|status| status.as_u16()),
        "latency_seconds": report.map(|report| report.latency.as_secs_f64()),
        "tls": report.and_then(|report| report.tls),
        "exit_address": report.and_then(|report| report.exit_address),
        "state_before": report.map(|report| list::word(&report.state)),
        "state": now.map(|member| list::word(&member.state)),
        "reason": now.and_then(list::reason), "change": changes.get(&finding.id).map(|change| words(*change).0),
    })
}

/// What was ordered, for programs and for people.
fn words(change: ProbeChange) -> (&'static str, &'static str) {
    match change {
        ProbeChange::Quarantined => ("quarantined", "put into quarantine"),
        ProbeChange::QuarantineEnded => ("quarantine_ended", "taken out of quarantine"),
        _ => ("other", "changed otherwise"),
    }
}
