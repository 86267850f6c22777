//! The pool as a whole.

use std::time::{Duration, Instant};

use reqwest_lease::{
    Error, Kind, LeaseStore as _, Mode, RedisStore, Remains, SettingsReport, Status,
};

use crate::context::Context;
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::output::count;
use crate::shell::quoted;
use crate::time;

use super::members::STATE;

/// Leases that have run out and that nobody has taken back.
pub(super) const EXPIRED: &str = "expired";

/// Keys that hold something else.
pub(super) const TYPES: &str = "types";

/// Settings of the pool that are damaged beyond repair.
pub(super) const SETTINGS: &str = "settings";

/// Gives workers the time that they take to take back what has run out.
pub(super) async fn await_workers(
    store: &RedisStore,
    mut status: Status,
    context: &Context,
) -> Result<Status, Failure> {
    let begun = Instant::now();
    eprintln!("looking whether workers take back {}", count(status.expired, "lease"));
    while status.expired > 0 && begun.elapsed() < WORKERS_REAP_WITHIN {
        tokio::time::sleep(Duration::from_millis(500)).await;
        status = store.status(&context.pool()?).await?;
    }
    Ok(status)
}

/// Each worker reaps every five to six seconds.
const WORKERS_REAP_WITHIN: Duration = Duration::from_secs(7);

pub(super) fn examine(status: &Status, context: &Context, diagnosis: &mut Diagnosis) {
    diagnosis.fact("members", status.members().to_string());
    examine_gates(status, context, diagnosis);
    if status.expired > 0 {
        diagnosis.warning(
            EXPIRED,
            format!(
                "{} run out and not taken back: workers do that within 6 seconds, so perhaps none runs",
                count(status.expired, "lease")
            ),
            context.command("reap"),
        );
    }
    if status.members() == 0 && !status.loading {
        diagnosis.warning(
            "members",
            "the pool has no members",
            context.command_with_inventory("sync"),
        );
    }
    if !status.config.failover_hold && status.config.mode == Mode::Exclusive {
        diagnosis.note(
            "failover_hold",
            "the failover hold is off: after a failover two workers may use one endpoint for a \
             largest ttl",
        );
    }
    if status.disabled > 0 {
        diagnosis
            .note("disabled", format!("{} disabled by orders", count(status.disabled, "endpoint")));
    }
}

/// What stands before all grants.
fn examine_gates(status: &Status, context: &Context, diagnosis: &mut Diagnosis) {
    if status.loading {
        diagnosis.error(
            "loading",
            "the pool is being loaded and not open: it grants nothing",
            context.command_with_inventory("init"),
        );
    }
    if status.paused {
        diagnosis.warning(
            "paused",
            "an administrator has paused the pool: it grants nothing",
            context.command("resume"),
        );
    }
    if let Some(left) = status.hold {
        diagnosis.warning(
            "hold",
            format!(
                "the pool grants nothing for {}: its server was restarted or replaced, or it was \
                 set up after a loss, and grants of before run out first",
                time::short(left)
            ),
            format!(
                "wait, or when no worker uses a lease of before: {}",
                context.command("resume --now")
            ),
        );
    }
}

pub(super) fn examine_types(remains: &Remains, context: &Context, diagnosis: &mut Diagnosis) {
    let (trail, state): (Vec<&str>, Vec<&str>) =
        remains.foreign.iter().map(String::as_str).partition(|name| *name == "audit");
    if !trail.is_empty() {
        let key = context.key("audit");
        diagnosis.error(
            TYPES,
            "the key of the trail holds something else, so that no order can be given",
            format!("redis-cli RENAME {} {}", quoted(&key), quoted(&format!("{key}.other"))),
        );
    }
    if !state.is_empty() {
        let is_open = !state.contains(&"meta") && !state.contains(&"orders");
        diagnosis.error(
            TYPES,
            format!("keys of the pool hold something else: {}", state.join(", ")),
            begin_anew(context, is_open),
        );
    }
}

/// Says whether there are such settings of a pool in a layout that is known here, that nothing else
/// needs to explain why it cannot be used.
pub(super) fn examine_settings(
    settings: &SettingsReport,
    context: &Context,
    diagnosis: &mut Diagnosis,
) -> bool {
    if settings.layout != Some(settings.known_layout.to_string()) {
        return false;
    }
    let (mendable, lost): (Vec<&str>, Vec<&str>) =
        settings.damaged.iter().map(String::as_str).partition(|name| MENDABLE.contains(name));
    if !mendable.is_empty() {
        diagnosis.error(
            STATE,
            format!("settings of the pool are lost or damaged: {}", mendable.join(", ")),
            context.command("doctor --repair"),
        );
    }
    if !lost.is_empty() {
        diagnosis.error(
            SETTINGS,
            format!(
                "settings that the pool cannot do without are lost or damaged: {}",
                lost.join(", ")
            ),
            format!("restore the server's backup, or: {}", begin_anew(context, true)),
        );
    }
    !settings.damaged.is_empty()
}

/// Settings that have a safe value, or follow from the rest.
const MENDABLE: [&str; 4] = ["due", "weighted", "config_version", "failover_hold"];

/// What it means that the pool does not tell its state.
pub(super) fn examine_refusal(
    error: Error,
    remains: Option<Remains>,
    settings: Option<SettingsReport>,
    context: &Context,
    diagnosis: &mut Diagnosis,
) -> Result<(), Failure> {
    match (error.kind(), remains) {
        (Kind::PoolUninitialised, Some(remains)) if !remains.is_empty() => {
            let parts = [remains.sound, remains.foreign].concat().join(", ");
            diagnosis.error(
                "leftovers",
                format!(
                    "the pool has lost its configuration and grants nothing; what is left of it: {parts}"
                ),
                format!("restore the server's backup, or: {}", begin_anew(context, false)),
            );
        }
        (Kind::PoolUninitialised, _) => diagnosis.error(
            "set_up",
            "the pool is not set up",
            format!(
                "{}, with --after-loss if workers may still use its endpoints",
                context.command_with_inventory("init")
            ),
        ),
        (Kind::PoolTooNew, _) => examine_layout(settings.unwrap_or_default(), context, diagnosis),
        (Kind::StoreRefused, Some(remains)) if !remains.foreign.is_empty() => {
            examine_types(&remains, context, diagnosis);
        }
        (Kind::StoreRefused, _) => diagnosis.error(
            "user",
            format!("the pool cannot be read: {error}"),
            format!(
                "run the command of `reqwest-lease acl observer --namespace {}` for this user",
                quoted(context.namespace())
            ),
        ),
        (Kind::PoolWithoutOrders, _) => diagnosis.error(
            "orders",
            format!("nothing is granted: {error}"),
            format!(
                "wait while a slot of the cluster moves; else restore the server's backup, or: {}",
                begin_anew(context, false)
            ),
        ),
        _ => return Err(error.into()),
    }
    Ok(())
}

fn examine_layout(settings: SettingsReport, context: &Context, diagnosis: &mut Diagnosis) {
    let known = settings.known_layout;
    match settings.layout.and_then(|layout| layout.parse::<u32>().ok()) {
        Some(layout) => {
            let age = if layout > known { "a newer" } else { "an older" };
            diagnosis.error(
                "layout",
                format!(
                    "the pool's state was written by {age} version of this program: it has layout \
                     {layout}, and this version knows {known}"
                ),
                "use that version, here and for all workers".into(),
            );
        }
        None => diagnosis.error(
            "layout",
            "the number of the pool's layout is damaged",
            format!(
                "restore the server's backup; or, if all workers are of this version: \
                 redis-cli HSET {} schema {known}",
                quoted(&context.key("meta"))
            ),
        ),
    }
}

/// How a pool that is beyond repair is set up again.
fn begin_anew(context: &Context, is_open: bool) -> String {
    let pause = if is_open { format!("{}; ", context.command("pause")) } else { String::new() };
    format!(
        "{pause}{}; {}",
        context.command("destroy"),
        context.command_with_inventory("init --after-loss")
    )
}
