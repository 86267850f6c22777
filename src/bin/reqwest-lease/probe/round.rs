//! Some probes at a time, and those that are busy again.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest_lease::{EndpointId, Error, Kind, LeaseMiddleware, ProbeOptions, ProbeReport, State};
use tokio::time::{Instant, sleep_until};
use url::Url;

use crate::exit::Code;
use crate::failure::Failure;
use crate::output::count;

use super::finding::{Finding, Seen};
use super::target::Target;

/// Probes of one page.
pub(super) struct Round {
    middleware: LeaseMiddleware,
    url: Url,
    within: Duration,
    parallel: usize,
    bar: ProgressBar,
    findings: Vec<Finding>,
    /// Those that were busy, in the order in which they are asked for again.
    waiting: VecDeque<Turn>,
    failed: usize,
}

/// An endpoint's turn, which may be one of several.
struct Turn {
    id: EndpointId,
    from: Instant,
    until: Instant,
    /// Whether it was at rest: that ends when it ends, while a lease may be given back sooner.
    rests: bool,
}

impl Round {
    pub(super) fn new(
        middleware: LeaseMiddleware,
        url: Url,
        within: Duration,
        parallel: usize,
    ) -> Self {
        let style = ProgressStyle::with_template("probing {bar:30} {pos}/{len} {eta} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self {
            middleware,
            url,
            within,
            parallel,
            bar: ProgressBar::no_length().with_style(style),
            findings: Vec::new(),
            waiting: VecDeque::new(),
            failed: 0,
        }
    }

    /// Probes all of them, or until an interrupt or what concerns them all; what is under way then
    /// gives its lease back. Findings are in order of the ids.
    pub(super) async fn run(mut self, targets: Vec<Target>) -> (Vec<Finding>, Option<Failure>) {
        let all = targets.len();
        self.bar.set_length(all as u64);
        let (known, unknown): (Vec<_>, Vec<_>) = targets.into_iter().partition(|it| it.known);
        unknown.into_iter().for_each(|target| self.found(target.id, Seen::Unknown));
        let interrupted = tokio::select! {
            done = self.probe(known.into_iter()) => done.err(),
            _ = tokio::signal::ctrl_c() => Some(Failure::new(Code::FAILED, "interrupted")),
        };
        self.bar.finish_and_clear();
        self.findings.sort_by(|a, b| a.id.cmp(&b.id));
        let done = self.findings.len();
        let ended = interrupted.map(|failure| {
            failure.after(&format!("{} of {} probed", done, count(all, "endpoint")))
        });
        (self.findings, ended)
    }

    async fn probe(&mut self, mut fresh: impl Iterator<Item = Target>) -> Result<(), Failure> {
        let (middleware, url) = (self.middleware.clone(), self.url.clone());
        let options = ProbeOptions::new().timeout(self.within);
        let attempt = async |turn: Turn| {
            let seen = middleware.probe(&turn.id, url.clone(), &options).await;
            (turn, seen)
        };
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.parallel
                && let Some(turn) = self.next(&mut fresh)
            {
                running.push(attempt(turn));
            }
            let due = self.waiting.front().map(|turn| turn.from);
            let mut wake = pin!(async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            });
            tokio::select! {
                Some((turn, seen)) = running.next() => self.take(turn, seen)?,
                () = &mut wake, if running.len() < self.parallel && due.is_some() => {}
                else => return Ok(()),
            }
        }
    }

    /// One whose time has come again, or one that has had no turn yet.
    fn next(&mut self, fresh: &mut impl Iterator<Item = Target>) -> Option<Turn> {
        let now = Instant::now();
        if self.waiting.front().is_some_and(|turn| turn.from <= now) {
            return self.waiting.pop_front();
        }
        fresh.next().map(|Target { id, state, .. }| Turn {
            id,
            from: now,
            until: now + self.within,
            rests: matches!(state, State::Cooling(_)),
        })
    }

    fn take(&mut self, turn: Turn, seen: Result<ProbeReport, Error>) -> Result<(), Failure> {
        let error = match seen {
            Ok(report) => {
                self.found(turn.id, Seen::Probed(Box::new(report)));
                return Ok(());
            }
            Err(error) => error,
        };
        let seen = match error.kind() {
            Kind::PoolExhausted => {
                let rest = error.retry_after().filter(|_| turn.rests).unwrap_or_default();
                let from = Instant::now() + ASK_EVERY;
                if from.max(Instant::now() + rest) < turn.until {
                    self.waiting.push_back(Turn { from, ..turn });
                    return Ok(());
                }
                if turn.rests { Seen::Rests } else { Seen::Busy }
            }
            Kind::Config => Seen::Gone,
            kind if is_about_one(kind) => Seen::Refused(kind),
            _ => return Err(error.into()),
        };
        self.found(turn.id, seen);
        Ok(())
    }

    fn found(&mut self, id: EndpointId, seen: Seen) {
        let finding = Finding { id, seen };
        self.failed += usize::from(!finding.passed());
        if self.failed > 0 {
            self.bar.set_message(format!("{} not passed", self.failed));
        }
        self.bar.inc(1);
        self.findings.push(finding);
    }
}

/// Whether an error may concern one endpoint and no other.
fn is_about_one(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::BudgetExceeded
            | Kind::SiteRefuses
            | Kind::ProxyUnreachable
            | Kind::CredentialsRefused
            | Kind::ProxyDenied
            | Kind::LeaseExpired
            | Kind::TimedOut
            | Kind::TooManyRedirects
            | Kind::TargetRefused
    )
}

/// A look costs a call to the store.
const ASK_EVERY: Duration = Duration::from_millis(250);
