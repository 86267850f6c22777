//! `init`: a pool from nothing.

use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest_lease::{Inventory, LeaseStore as _, Mode, Policy, Pool, PoolConfig, Setup};
use serde_json::json;

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, count};
use super::time;

/// Set a pool up from the inventory
///
/// Sets a pool up with the endpoints of the inventory. Interrupted, it goes on where it was when it
/// is called again.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Whether an endpoint has one holder at a time
    #[arg(long, value_enum, default_value_t = Modes::Exclusive)]
    mode: Modes,
    /// Which of the ready endpoints is granted
    #[arg(long, value_enum, default_value_t = Policies::Earliest)]
    policy: Policies,
    /// Longest time that a lease may ask for
    #[arg(long, default_value = "10m", value_parser = time::parse_some, value_name = "TIME")]
    largest_ttl: Duration,
    /// Longest life of a lease with all renewals
    #[arg(long, default_value = "1h", value_parser = time::parse_some, value_name = "TIME")]
    largest_lifetime: Duration,
    /// Grant at once after a failover or restart that may have lost leases
    #[arg(long)]
    no_failover_hold: bool,
    /// The pool was lost while workers used it: grant nothing for the largest ttl
    #[arg(long)]
    after_loss: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Modes {
    /// One valid lease an endpoint
    Exclusive,
    /// Any number of holders; assignments are counted
    Shared,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Policies {
    /// The one that has been available longest
    Earliest,
    /// The one with the fewest assignments for its weight
    LeastAssigned,
    /// Any
    Random,
}

impl Init {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let name = context.pool()?;
        if self.largest_lifetime < self.largest_ttl {
            return Err(Failure::usage("--largest-lifetime is below --largest-ttl"));
        }
        let snapshot = context.labels("init").await?;
        let (number, version) = (snapshot.len(), snapshot.version());
        let inventory = Inventory::open(snapshot).await?;
        let store = context.store().await?;
        let mut builder = Pool::builder(name.clone(), inventory).store(store.clone());
        if let Some(by) = context.by()? {
            builder = builder.administrator(by);
        }
        let pool = builder.build().await?;
        let changed = watched(pool.set_up(self.setup()), &pool, number).await?.changed;
        let status = store.status(&name).await?;
        let json = json!({
            "pool": name.as_str(), "members": status.members(), "loaded": changed,
            "version": version, "hold_seconds": status.hold.map(|left| left.as_secs_f64()),
        });
        let mut report = Report::new(json)
            .line(format!("pool {name} is open with {}", count(status.members(), "endpoint")));
        if let Some(left) = status.hold {
            let left = time::short(left);
            report = report.line(format!(
                "it grants nothing for {left}: what was leased before the loss runs out"
            ));
        }
        context.print(&report)?;
        Ok(Code::DONE)
    }

    fn setup(&self) -> Setup {
        let mut config = PoolConfig::default();
        config.mode = match self.mode {
            Modes::Exclusive => Mode::Exclusive,
            Modes::Shared => Mode::Shared,
        };
        config.policy = match self.policy {
            Policies::Earliest => Policy::Earliest,
            Policies::LeastAssigned => Policy::LeastAssigned,
            Policies::Random => Policy::Random,
        };
        config.largest_ttl = self.largest_ttl;
        config.largest_lifetime = self.largest_lifetime;
        config.failover_hold = !self.no_failover_hold;
        let setup = Setup::new(config);
        if self.after_loss { setup.after_loss() } else { setup }
    }
}

/// Shows how many of the members are there while the pool is loaded.
async fn watched<F: Future>(loading: F, pool: &Pool, number: usize) -> F::Output {
    let bar = ProgressBar::new(number as u64).with_style(style("loading"));
    tokio::pin!(loading);
    loop {
        tokio::select! {
            done = &mut loading => {
                bar.finish_and_clear();
                return done;
            }
            () = tokio::time::sleep(Duration::from_millis(200)) => {
                if let Ok(status) = pool.status().await {
                    bar.set_position(status.members() as u64);
                }
            }
        }
    }
}

/// A bar with what goes on in front. It is drawn on standard error, and only on a terminal.
pub(crate) fn style(what: &str) -> ProgressStyle {
    ProgressStyle::with_template(&format!("{what} {{bar:30}} {{pos}}/{{len}} {{eta}}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The pool's mode and policy in a word each.
pub(crate) fn words(config: &PoolConfig) -> (&'static str, &'static str) {
    let mode = match config.mode {
        Mode::Shared => "shared",
        _ => "exclusive",
    };
    let policy = match config.policy {
        // Shared pools always go by assignments.
        Policy::Earliest if config.mode == Mode::Shared => "least_assigned",
        Policy::LeastAssigned => "least_assigned",
        Policy::Random => "random",
        _ => "earliest",
    };
    (mode, policy)
}
