//! `status`: a pool's counts.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use reqwest_lease::{LeaseStore as _, PoolName, RedisStore, Status as Counts};
use serde_json::{Value, json};

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::init::words;
use super::output::{Format, Report, write};
use super::time;

/// Show a pool's counts
///
/// Shows how many endpoints are in which state, telling valid leases from those that have run out
/// and that nobody has taken back.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Show it again and again, each so often; default: every second
    #[arg(
        long,
        value_parser = time::parse,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s"
    )]
    watch: Option<Duration>,
}

impl Status {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let pool = context.pool()?;
        let store = context.store().await?;
        let Some(pause) = self.watch else {
            let counts = store.status(&pool).await?;
            context.print(&report(&pool, &counts, None))?;
            return Ok(Code::DONE);
        };
        tokio::select! {
            never = watch(context, &store, &pool, pause.max(LEAST_PAUSE)) => return never,
            _ = tokio::signal::ctrl_c() => {}
        }
        if io::stdout().is_terminal() {
            // The terminal has shown the key that was pressed.
            write("\n")?;
        }
        Ok(Code::DONE)
    }
}

/// Shows the counts until somebody ends it, or nobody reads on.
async fn watch(
    context: &Context,
    store: &RedisStore,
    pool: &PoolName,
    pause: Duration,
) -> Result<Code, Failure> {
    let redraws = io::stdout().is_terminal() && context.format() == Format::Table;
    let (mut before, mut shown): (Option<(Counts, Instant)>, _) = (None, String::new());
    loop {
        let (told, taken) = (store.status(pool).await, Instant::now());
        let mut trouble = String::new();
        match told {
            Ok(counts) => {
                let rate = before.as_ref().and_then(|before| rate(before, &counts, taken));
                shown = report(pool, &counts, rate).render(context.format());
                before = Some((counts, taken));
            }
            // Whoever watches wants to see it come back.
            Err(error) if redraws && error.is_transient() => {
                trouble = format!("{error}; this was before:\n\n");
            }
            Err(error) => return Err(error.into()),
        }
        let now = time::local(SystemTime::now());
        write(&if redraws { frame(&format!("{now}\n\n{trouble}{shown}")) } else { shown.clone() })?;
        tokio::time::sleep(pause).await;
    }
}

const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// The text over what was drawn before: from the top, each line cut off where it ends.
fn frame(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// Grants a second since the last look.
fn rate((before, then): &(Counts, Instant), now: &Counts, taken: Instant) -> Option<f64> {
    let seconds = taken.duration_since(*then).as_secs_f64();
    let grants = now.fence.0.checked_sub(before.fence.0)?;
    (seconds > 0.0).then_some(grants as f64 / seconds)
}

/// The states with what they are, in the order of an endpoint's life.
fn states(counts: &Counts) -> [(&'static str, usize, &'static str); 6] {
    [
        ("ready", counts.ready, "can be granted now"),
        ("cooling", counts.cooling, "can be granted later"),
        ("leased", counts.leased, "valid leases"),
        ("expired", counts.expired, "run out, not taken back"),
        ("disabled", counts.disabled, "out by an order"),
        ("quarantined", counts.quarantined, "out for evidence"),
    ]
}

fn report(pool: &PoolName, counts: &Counts, rate: Option<f64>) -> Report {
    let members = counts.members();
    let rows = states(counts)
        .into_iter()
        .map(|(name, number, what)| {
            let share = if members == 0 { 0.0 } else { number as f64 / members as f64 };
            let percent = format!("{:.0}%", share * 100.0);
            vec![name.to_owned(), number.to_string(), percent, bar(share), what.to_owned()]
        })
        .collect();
    Report::new(as_json(pool, counts, rate))
        .facts(&facts(pool, counts, rate))
        .line("")
        .table(&["state", ">endpoints", ">share", "", "what"], rows)
}

fn facts(pool: &PoolName, counts: &Counts, rate: Option<f64>) -> Vec<(&'static str, String)> {
    let (mode, policy) = words(&counts.config);
    let ttl = time::short(counts.config.largest_ttl);
    let mut facts = vec![
        ("pool", format!("{pool}: {mode}, {policy}, largest ttl {ttl}")),
        ("state", condition(counts)),
        ("members", counts.members().to_string()),
    ];
    if let Some(version) = counts.config_version {
        facts.push(("inventory", format!("version {version}")));
    }
    let rate = rate.map(|rate| format!(", {rate:.1} a second")).unwrap_or_default();
    facts.push(("grants", format!("fence {}{rate}", counts.fence)));
    if let Some(next) = counts.next {
        let next = time::short(next);
        facts.push(("next", format!("a deadline or the end of a cooldown in {next}")));
    }
    facts
}

fn as_json(pool: &PoolName, counts: &Counts, rate: Option<f64>) -> Value {
    let (mode, policy) = words(&counts.config);
    let seconds = |time: Duration| time.as_secs_f64();
    json!({
        "pool": pool.as_str(), "mode": mode, "policy": policy,
        "largest_ttl_seconds": seconds(counts.config.largest_ttl),
        "largest_lifetime_seconds": seconds(counts.config.largest_lifetime),
        "failover_hold": counts.config.failover_hold,
        "version": counts.config_version, "loading": counts.loading, "paused": counts.paused,
        "hold_seconds": counts.hold.map(seconds), "members": counts.members(),
        "ready": counts.ready, "cooling": counts.cooling, "leased": counts.leased,
        "expired": counts.expired, "disabled": counts.disabled,
        "quarantined": counts.quarantined, "fence": counts.fence.0,
        "next_seconds": counts.next.map(seconds), "grants_per_second": rate,
    })
}

/// Whether the pool grants, and why not.
fn condition(counts: &Counts) -> String {
    match counts.hold {
        _ if counts.loading => "being loaded: grants nothing until init has run to its end".into(),
        _ if counts.paused => "paused: grants nothing until resume".into(),
        Some(left) => format!("on hold: grants nothing for {}", time::short(left)),
        None if counts.members() == 0 => "open, without members".into(),
        None => "open".into(),
    }
}

/// A share as a bar of ten.
fn bar(share: f64) -> String {
    let full = (share * 10.0).round() as usize;
    let some = if share > 0.0 && full == 0 { 1 } else { full };
    format!("{:10}", "#".repeat(some))
}
