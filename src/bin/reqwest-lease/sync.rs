//! `sync`: a pool's members follow the inventory.

use std::collections::HashSet;

use clap::Args;
use reqwest_lease::{
    EndpointId, LeaseStore as _, Member, MemberState, Order, RedisStore, Snapshot, StandingOrder,
    State,
};
use serde_json::json;

use super::context::{Context, members};
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, note, some};

/// Make a pool's members those of the inventory
///
/// Adds what the inventory has and the pool has not, changes weights that differ, and removes what
/// the inventory has not; leased ones go when their lease ends. What is as it should be is not
/// touched.
#[derive(Debug, Args)]
pub(crate) struct Sync {
    /// Only show the differences; there are some when the exit code is 6
    #[arg(long)]
    dry_run: bool,
}

/// What is between a pool and an inventory.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub(crate) add: Vec<Member>,
    /// Members with another weight, which they had before.
    pub(crate) reweigh: Vec<(Member, u32)>,
    pub(crate) remove: Vec<EndpointId>,
    /// Those of `remove` that are leased now.
    pub(crate) leased: HashSet<EndpointId>,
}

impl Difference {
    pub(crate) fn between(snapshot: &Snapshot, members: &[MemberState]) -> Self {
        let mut difference = Self::default();
        let leaving = |member: &MemberState| member.order == Some(StandingOrder::Remove);
        let mut there = HashSet::with_capacity(members.len());
        for member in members {
            let id = &member.endpoint;
            match snapshot.get(id) {
                None if leaving(member) => {}
                None => {
                    difference.remove.push(id.clone());
                    if matches!(member.state, State::Leased(_) | State::Expired) {
                        difference.leased.insert(id.clone());
                    }
                }
                // It would leave when its lease ends.
                Some(_) if leaving(member) => {}
                Some(endpoint) => {
                    there.insert(id);
                    let weight = endpoint.labels().weight;
                    if weight != member.weight {
                        let wanted = Member::new(id.clone()).with_weight(weight);
                        difference.reweigh.push((wanted, member.weight));
                    }
                }
            }
        }
        let missing = snapshot.iter().filter(|endpoint| !there.contains(endpoint.id()));
        difference.add = missing
            .map(|endpoint| {
                Member::new(endpoint.id().clone()).with_weight(endpoint.labels().weight)
            })
            .collect();
        difference
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.add.is_empty() && self.reweigh.is_empty() && self.remove.is_empty()
    }

    fn report(&self, applied: bool, version: Option<u64>) -> Report {
        let ids = |members: &[Member]| -> Vec<String> {
            members.iter().map(|member| member.endpoint.to_string()).collect()
        };
        let reweigh: Vec<_> = self
            .reweigh
            .iter()
            .map(|(member, before)| {
                json!({"id": member.endpoint.as_str(), "from": before, "to": member.weight})
            })
            .collect();
        let remove: Vec<_> = self.remove.iter().map(EndpointId::as_str).collect();
        let mut report = Report::new(json!({
            "add": ids(&self.add), "reweigh": reweigh, "remove": remove,
            "version": version, "applied": applied,
        }));
        for member in &self.add {
            report = report.line(format!("+ {} (weight {})", member.endpoint, member.weight));
        }
        for (member, before) in &self.reweigh {
            report = report
                .line(format!("~ {} (weight {before} to {})", member.endpoint, member.weight));
        }
        for id in &self.remove {
            let when = if self.leased.contains(id) { " (when its lease ends)" } else { "" };
            report = report.line(format!("- {id}{when}"));
        }
        let done = if applied { "done" } else { "nothing was changed" };
        report.line(format!(
            "{} to add, {} to reweigh, {} to remove: {done}",
            self.add.len(),
            self.reweigh.len(),
            self.remove.len()
        ))
    }
}

impl Sync {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let pool = context.pool()?;
        let snapshot = context.labels("sync").await?;
        let version = snapshot.version();
        let store = context.store().await?;
        let status = store.status(&pool).await?;
        let difference = Difference::between(&snapshot, &members(&store, &pool).await?);
        let back = goes_back(version, status.config_version);
        if self.dry_run {
            back.iter().for_each(|what| note(&format!("warning: {what}")));
            context.print(&difference.report(false, version))?;
            return Ok(if difference.is_empty() { Code::DONE } else { Code::FINDINGS });
        }
        if let Some(what) = back {
            context.confirm(&format!("{what}: go back"))?;
        }
        if !difference.remove.is_empty() {
            let (number, which) = (difference.remove.len(), some(&difference.remove));
            let members = status.members();
            context.confirm(&format!("remove {number} of {members} endpoints ({which})"))?;
        }
        let changed = difference.reweigh.iter().map(|(member, _)| member.clone());
        let put: Vec<Member> = difference.add.iter().cloned().chain(changed).collect();
        // An order that adds nothing records the version.
        let is_news = version.is_some() && version != status.config_version;
        if !put.is_empty() || (difference.remove.is_empty() && is_news) {
            context.order(&store, Order::Add(put), version).await?;
        }
        if !difference.remove.is_empty() {
            remove(context, &store, difference.remove.clone(), version).await?;
        }
        context.print(&difference.report(true, version))?;
        Ok(Code::DONE)
    }
}

/// Says so when the inventory is older than the pool, and warns when that cannot be told.
fn goes_back(here: Option<u64>, there: Option<u64>) -> Option<String> {
    let there = there?;
    let Some(here) = here else {
        note(&format!(
            "warning: the inventory has no version, the pool {there}: it may be an old copy"
        ));
        return None;
    };
    (here < there).then(|| format!("the inventory has version {here}, the pool {there} already"))
}

/// Removes members. Some may be gone by now, by another sync perhaps: that is as it should be.
async fn remove(
    context: &Context,
    store: &RedisStore,
    mut ids: Vec<EndpointId>,
    version: Option<u64>,
) -> Result<(), Failure> {
    let pool = context.pool()?;
    while let Err(failure) = context.order(store, Order::Remove(ids.clone()), version).await {
        let members = members(store, &pool).await?;
        let there: HashSet<_> = members.iter().map(|member| &member.endpoint).collect();
        let before = ids.len();
        ids.retain(|id| there.contains(id));
        match ids.len() {
            0 => break,
            // None of them is the reason.
            same if same == before => return Err(failure),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest_lease::Endpoint;

    fn id(name: &str) -> EndpointId {
        EndpointId::new(name).unwrap()
    }

    #[test]
    fn only_what_differs_is_touched() {
        let endpoint = |name: &str| Endpoint::new(id(name), "http://h:1", None).unwrap();
        let snapshot = Snapshot::new(["a", "b", "c", "d"].map(endpoint), None).unwrap();
        let mut members: Vec<_> =
            ["a", "b", "d", "x", "y"].map(|name| MemberState::new(id(name), 1)).into();
        members[1].weight = 3;
        members[2].order = Some(StandingOrder::Remove);
        members[2].state = State::Expired;
        members[3].state = State::Expired;
        members[4].order = Some(StandingOrder::Remove);
        let difference = Difference::between(&snapshot, &members);
        let added: Vec<_> = difference.add.iter().map(|member| member.endpoint.as_str()).collect();
        assert_eq!(added, ["c", "d"]);
        assert_eq!(difference.reweigh, [(Member::new(id("b")), 3)]);
        assert_eq!(difference.remove, [id("x")]);
        assert!(difference.leased.contains(&id("x")));
    }
}
