//! `add` and `remove`.

use clap::Args;
use reqwest_lease::{MAX_ASSIGNMENTS, MAX_WEIGHT, Member, Order};
use serde_json::json;

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, count, note, some};
use super::selection::{Selection, parse};

/// Add endpoints to a pool, or change their weights
///
/// Adds endpoints, or changes the weight of those that are there. Without --weight it is the one of
/// the inventory, or 1.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Ids of endpoints
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Share of assignments beside the others', 1 to 1000
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WEIGHT))
    )]
    weight: Option<u32>,
    /// Assignments to start with; default: its own of before, and not below the lowest of the pool
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u64).range(..=MAX_ASSIGNMENTS)
    )]
    count: Option<u64>,
}

impl Add {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let ids = parse(&self.ids)?;
        let snapshot = context.labels_if_any().await;
        let mut members = Vec::with_capacity(ids.len());
        for id in ids {
            let endpoint = snapshot.as_ref().map(|snapshot| snapshot.get(&id));
            if matches!(endpoint, Some(None)) {
                note(&format!("warning: the inventory has no endpoint {id}"));
            }
            let labelled = endpoint.flatten().map(|endpoint| endpoint.labels().weight);
            let mut member = Member::new(id).with_weight(self.weight.or(labelled).unwrap_or(1));
            member.assignments = self.count;
            members.push(member);
        }
        let named = members.len();
        let store = context.store().await?;
        let reply = context.order(&store, Order::Add(members), None).await?;
        changed(context, "added or changed", "add", named, reply.changed)
    }
}

/// Take endpoints out of a pool, leased ones when their lease ends
///
/// Takes endpoints out of the pool, leased ones when their lease ends. Their counts of assignments
/// are kept for a return.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    selection: Selection,
}

impl Remove {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let (store, ids) = self.selection.resolve(context).await?;
        let named = ids.len();
        let pool = context.pool()?;
        let what = format!("remove {} from pool {pool} ({})", count(named, "endpoint"), some(&ids));
        context.confirm(&what)?;
        let reply = context.order(&store, Order::Remove(ids), None).await?;
        changed(context, "removed", "remove", named, reply.changed)
    }
}

/// Tells what an order on endpoints changed.
pub(crate) fn changed(
    context: &Context,
    done: &str,
    order: &str,
    named: usize,
    changed: usize,
) -> Result<Code, Failure> {
    let pool = context.pool()?;
    let json = json!({
        "pool": pool.as_str(), "order": order, "named": named, "changed": changed,
    });
    let same = match named.saturating_sub(changed) {
        0 => String::new(),
        same => format!(", {same} as before"),
    };
    let leased = if order == "remove" { "; leased ones leave when their lease ends" } else { "" };
    let line = format!("{done} {}{same}{leased}", count(changed, "endpoint"));
    context.print(&Report::new(json).line(line))?;
    Ok(Code::DONE)
}
