//! Facts about budgets, on tokio's paused clock.

mod asked;
mod flight;
mod keys;
mod matching;
mod pacing;
mod pauses;
mod sharing;
mod twins;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::clock::At;
use super::queue::{Limits, Queue};
use super::{Budget, Budgets, Passage, Pauses, Turn};
use crate::error::Error;
use crate::site::Site;

/// Longer than any test.
const PATIENT: Duration = Duration::from_secs(100_000);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn example() -> Url {
    url("https://example.com/")
}

impl Budgets {
    async fn turn_for(&self, url: &Url, max_wait: Duration) -> Result<Turn, Error> {
        self.gate(&Site::of(url).unwrap(), url.port_or_known_default(), &[]).turn(max_wait)
    }

    fn try_pass_for(&self, url: &Url) -> Option<Passage> {
        self.gate(&Site::of(url).unwrap(), url.port_or_known_default(), &[]).try_pass()
    }

    /// The bucket of a URL that has one.
    fn queue(&self, url: &Url) -> Arc<Queue> {
        self.0.find(&Site::of(url).unwrap(), url.port_or_known_default(), At::default()).unwrap()
    }
}

fn only(budget: Budget) -> Budgets {
    Budgets::builder().default(budget).build().unwrap()
}

async fn pass(budgets: &Budgets, url: &Url) {
    let mut turn = budgets.turn_for(url, PATIENT).await.unwrap();
    turn.slot().await.unwrap();
    drop(turn.spend());
}

fn checks(budgets: &Budgets, url: &Url) -> usize {
    let queue = budgets.queue(url);
    let Limits::Local(local) = &queue.limiter else { panic!("no rate") };
    local.checks.load(std::sync::atomic::Ordering::Relaxed)
}

/// What was let through: who and when.
#[derive(Clone)]
struct Starts {
    since: Instant,
    seen: Arc<Mutex<Vec<(usize, Duration)>>>,
}

impl Starts {
    fn new() -> Self {
        Self { since: Instant::now(), seen: Arc::default() }
    }

    fn note(&self, who: usize) {
        self.seen.lock().unwrap().push((who, self.since.elapsed()));
    }

    fn order(&self) -> Vec<usize> {
        self.seen.lock().unwrap().iter().map(|(who, _)| *who).collect()
    }

    fn times(&self) -> Vec<Duration> {
        self.seen.lock().unwrap().iter().map(|(_, at)| *at).collect()
    }

    /// The largest excess of any window over `rate x window + burst`, judged at every pair.
    fn excess(&self, interval: Duration, burst: usize) -> f64 {
        let times = self.times();
        let mut worst = f64::MIN;
        for (first, from) in times.iter().enumerate() {
            for (last, to) in times.iter().enumerate().skip(first) {
                let allowed = (*to - *from).as_secs_f64() / interval.as_secs_f64() + burst as f64;
                worst = worst.max((last - first + 1) as f64 - allowed);
            }
        }
        worst
    }

    /// The share of the rate that was used between the first and the last start, beside the
    /// burst that was stored up before.
    fn used(&self, interval: Duration, burst: usize) -> f64 {
        let times = self.times();
        let span = times[times.len() - 1] - times[0];
        (times.len() - burst) as f64 * interval.as_secs_f64() / span.as_secs_f64()
    }
}

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

async fn turn_with_slot(budgets: &Budgets, url: &Url) -> Turn {
    let mut turn = budgets.turn_for(url, PATIENT).await.unwrap();
    turn.slot().await.unwrap();
    turn
}
