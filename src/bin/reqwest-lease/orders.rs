//! Orders on endpoints and on the whole pool.

use clap::{Args, ValueEnum};
use reqwest_lease::{Order, QuarantineCode};
use serde_json::json;

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::members::changed;
use super::output::Report;
use super::selection::Selection;

/// Keep endpoints from being granted until they are enabled
///
/// Keeps endpoints from being granted until they are enabled. Leases go on; what is leased is out
/// when its lease ends.
#[derive(Debug, Args)]
pub(crate) struct Disable {
    #[command(flatten)]
    selection: Selection,
}

impl Disable {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let (store, ids) = self.selection.resolve(context).await?;
        let named = ids.len();
        let reply = context.order(&store, Order::Disable(ids), None).await?;
        changed(context, "disabled", "disable", named, reply.changed)
    }
}

/// End orders to disable or drain, and quarantines
///
/// Ends orders to disable or drain, and quarantines.
#[derive(Debug, Args)]
pub(crate) struct Enable {
    #[command(flatten)]
    selection: Selection,
}

impl Enable {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let (store, ids) = self.selection.resolve(context).await?;
        let named = ids.len();
        let reply = context.order(&store, Order::Enable(ids), None).await?;
        changed(context, "enabled", "enable", named, reply.changed)
    }
}

/// Put endpoints into quarantine
///
/// Puts endpoints into quarantine, leased ones when their lease ends.
#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    /// What is held against them
    #[arg(long, value_enum, default_value_t = Reason::Administrator)]
    reason: Reason,
    // Last: what comes after its labels would stand under their heading.
    #[command(flatten)]
    selection: Selection,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Reason {
    /// An administrator's word
    Administrator,
    /// A probe that failed
    Probe,
    /// Credentials that are refused
    Credentials,
}

impl Quarantine {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let code = match self.reason {
            Reason::Administrator => QuarantineCode::Administrator,
            Reason::Probe => QuarantineCode::Probe,
            Reason::Credentials => QuarantineCode::Credentials,
        };
        let (store, ids) = self.selection.resolve(context).await?;
        let named = ids.len();
        let reply = context.order(&store, Order::Quarantine(ids, code), None).await?;
        changed(context, "put into quarantine", "quarantine", named, reply.changed)
    }
}

pub(crate) async fn pause(context: &Context) -> Result<Code, Failure> {
    let store = context.store().await?;
    let reply = context.order(&store, Order::Pause, None).await?;
    whole(context, "pause", reply.changed, "is paused", "was paused already")
}

/// End a pause
///
/// Ends a pause; with --now also a hold after a failover or a loss.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// End a hold too: on your word that no lease of before is in use any more
    #[arg(long)]
    now: bool,
}

impl Resume {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        if self.now {
            context.confirm("end the hold: no worker uses a lease of before")?;
        }
        let store = context.store().await?;
        let mut reply = context.order(&store, Order::Resume, None).await?;
        if self.now {
            reply.changed |= context.order(&store, Order::EndHold, None).await?.changed;
        }
        whole(context, "resume", reply.changed, "grants again", "was neither paused nor on hold")
    }
}

pub(crate) async fn destroy(context: &Context) -> Result<Code, Failure> {
    let pool = context.pool()?;
    context.confirm(&format!("erase pool {pool} with all that is known of its endpoints"))?;
    let store = context.store().await?;
    let reply = context.order(&store, Order::DestroyPool, None).await?;
    whole(context, "destroy", reply.changed, "is erased; its trail of orders stays", "is gone")
}

/// Tells what an order on the pool changed.
fn whole(
    context: &Context,
    order: &str,
    changed: usize,
    done: &str,
    same: &str,
) -> Result<Code, Failure> {
    let pool = context.pool()?;
    let changed = changed > 0;
    let json = json!({"pool": pool.as_str(), "order": order, "changed": changed});
    let what = if changed { done } else { same };
    context.print(&Report::new(json).line(format!("pool {pool} {what}")))?;
    Ok(Code::DONE)
}
