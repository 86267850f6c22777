//! `drain`: endpoints that nobody uses any more.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;
use reqwest_lease::{EndpointId, LeaseStore as _, Order, PoolName, ReapRequest, RedisStore, State};
use serde_json::json;

use super::context::{Context, members};
use super::exit::Code;
use super::failure::Failure;
use super::init::style;
use super::interrupt;
use super::output::{Report, count, some};
use super::selection::Selection;
use super::time;

/// Let leases of endpoints end, and grant these no more
///
/// Grants endpoints no more; their leases may end in peace.
#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// Wait until no lease is left; at most this long, or as long as it takes
    #[arg(
        long,
        value_parser = time::parse,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "8760h"
    )]
    wait: Option<Duration>,
    // Last: what comes after its labels would stand under their heading.
    #[command(flatten)]
    selection: Selection,
}

impl Drain {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let (store, ids) = self.selection.resolve(context).await?;
        let (pool, named) = (context.pool()?, ids.len());
        let wanted: HashSet<EndpointId> = ids.iter().cloned().collect();
        let is_time = ids.iter().any(|id| time::parse(id.as_str()).is_ok());
        let drained = context.order(&store, Order::Drain(ids), None).await;
        let changed = match drained {
            Err(failure) if is_time && failure.code() == Code::REFUSED => {
                return Err(failure.with_hint("a time to wait stands behind =, as in --wait=10s"));
            }
            drained => drained?.changed,
        };
        let left = match self.wait {
            None => still_leased(&store, &pool, &wanted).await?,
            Some(longest) => tokio::select! {
                left = wait(&store, &pool, &wanted, longest) => left?,
                _ = interrupt::wanted() => {
                    return Err(Failure::interrupted().with_hint(
                        "the order to drain stays; `reqwest-lease enable` ends it",
                    ));
                }
            },
        };
        let json = json!({
            "pool": pool.as_str(), "order": "drain", "named": named, "changed": changed,
            "leased": left.iter().map(EndpointId::as_str).collect::<Vec<_>>(),
        });
        let mut report = Report::new(json).line(format!("draining {}", count(named, "endpoint")));
        report = match left.len() {
            0 => report.line("none of them is leased any more"),
            leased => report.line(format!("still leased: {leased} ({})", some(&left))),
        };
        context.print(&report)?;
        let late = self.wait.is_some() && !left.is_empty();
        Ok(if late { Code::LATE } else { Code::DONE })
    }
}

/// Those that are leased when it ends.
async fn wait(
    store: &RedisStore,
    pool: &PoolName,
    wanted: &HashSet<EndpointId>,
    longest: Duration,
) -> Result<Vec<EndpointId>, Failure> {
    let begun = Instant::now();
    let bar = ProgressBar::new(wanted.len() as u64).with_style(style("drained"));
    loop {
        let asked = Instant::now();
        // A lease that has run out is over when somebody takes it back.
        store.reap(ReapRequest::new(pool.clone())).await?;
        let left = still_leased(store, pool, wanted).await?;
        bar.set_position((wanted.len() - left.len()) as u64);
        let rest = longest.saturating_sub(begun.elapsed());
        if left.is_empty() || rest.is_zero() {
            bar.finish_and_clear();
            return Ok(left);
        }
        // A large pool is not asked all the time.
        tokio::time::sleep(rest.min(ASK_EVERY.max(asked.elapsed() * 10))).await;
    }
}

async fn still_leased(
    store: &RedisStore,
    pool: &PoolName,
    wanted: &HashSet<EndpointId>,
) -> Result<Vec<EndpointId>, Failure> {
    let leased = members(store, pool)
        .await?
        .into_iter()
        .filter(|member| matches!(member.state, State::Leased(_) | State::Expired))
        .map(|member| member.endpoint);
    Ok(leased.filter(|id| wanted.contains(id)).collect())
}

const ASK_EVERY: Duration = Duration::from_secs(1);
