//! What is ordered when all have been probed: one order for all that failed, not one each.

use std::collections::{BTreeMap, HashMap, HashSet};

use reqwest_lease::{
    EndpointId, MemberState, Order, ProbeChange, QuarantineCode, RedisStore, State,
};

use crate::context::Context;
use crate::exit::Code;
use crate::failure::Failure;

use super::finding::Finding;

/// Endpoints that were put into quarantine, and that came out.
pub(super) type Changes = BTreeMap<EndpointId, ProbeChange>;

/// Ends and starts quarantines by what was found, of those that are in the pool still; tells what
/// was done, and what kept it from being all.
pub(super) async fn give(
    context: &Context,
    store: &RedisStore,
    findings: &[Finding],
    now: &[MemberState],
) -> (Changes, Option<Failure>) {
    let mut changes = Changes::default();
    let given = all(context, store, findings, now, &mut changes).await;
    (changes, given.err())
}

async fn all(
    context: &Context,
    store: &RedisStore,
    findings: &[Finding],
    now: &[MemberState],
    changes: &mut Changes,
) -> Result<(), Failure> {
    let here: HashSet<_> = now.iter().map(|member| &member.endpoint).collect();
    let (mut failed, mut passed) = (Vec::new(), HashMap::<_, Vec<_>>::new());
    for report in findings.iter().filter_map(Finding::report) {
        let id = report.endpoint.clone();
        match (report.due(), report.state) {
            _ if !here.contains(&id) => {}
            (Some(ProbeChange::QuarantineEnded), State::Quarantined(code)) => {
                passed.entry(code).or_default().push(id);
            }
            (Some(ProbeChange::Quarantined), _) => failed.push(id),
            _ => {}
        }
    }
    for (code, ids) in passed {
        context.order(store, Order::EndQuarantine(ids.clone(), code), None).await?;
        changes.extend(ids.into_iter().map(|id| (id, ProbeChange::QuarantineEnded)));
    }
    if failed.is_empty() {
        return Ok(());
    }
    let probed = findings.iter().filter(|finding| finding.report().is_some()).count();
    if failed.len() >= FEW && failed.len() * 2 > probed && !context.is_confirmed() {
        let what = format!("{} of {probed} failed, and were not put into quarantine", failed.len());
        return Err(Failure::new(Code::REFUSED, what)
            .with_hint("perhaps it is the network here, or the page; --yes does it all the same"));
    }
    let order = Order::Quarantine(failed.clone(), QuarantineCode::Probe);
    context.order(store, order, None).await?;
    changes.extend(failed.into_iter().map(|id| (id, ProbeChange::Quarantined)));
    Ok(())
}

/// Those that passed and stay in quarantine all the same: only `enable` undoes an administrator's
/// word.
pub(super) fn kept(findings: &[Finding]) -> Vec<&EndpointId> {
    let passed = findings.iter().filter(|finding| finding.passed()).filter_map(Finding::report);
    passed
        .filter(|report| report.state == State::Quarantined(QuarantineCode::Administrator))
        .map(|report| &report.endpoint)
        .collect()
}

/// Fewer may well fail by chance; the brake of a pool's workers begins at as many.
const FEW: usize = 3;
