//! Budgets that several processes share. The workers are processes: this program, started again.

mod outages;
mod pauses;
mod rates;
mod worker;

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::timed;
use crate::support::web::Web;

/// A worker process; ended with the test.
struct Worker(Child);

impl Worker {
    /// Starts this program as a worker with these settings.
    fn start(web: &Web, redis: &str, settings: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shared_budgets::worker::works", "--nocapture", "--test-threads=1"])
            .env("SHARED_BUDGETS_WORKER", format!("{} {redis} {settings}", web.url()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// What it has told, when it is done.
    fn told(mut self) -> Vec<String> {
        let mut told = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(self.0.wait().unwrap().success(), "{told}");
        let told = told.lines().filter_map(|line| line.split_once("told: "));
        told.map(|(_, line)| line.to_owned()).collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The most that any of the workers was late.
fn latest(told: &[String]) -> Duration {
    let late = told.iter().filter_map(|line| line.strip_prefix("late ")?.parse().ok());
    Duration::from_micros(late.max().unwrap())
}

/// Starts as many workers, and waits for what they tell.
async fn work(web: &Web, redis: &str, settings: &str, workers: usize) -> Vec<String> {
    let workers: Vec<_> = (0..workers).map(|_| Worker::start(web, redis, settings)).collect();
    let told = tokio::task::spawn_blocking(|| workers.into_iter().flat_map(Worker::told).collect());
    told.await.unwrap()
}

/// When the web was asked for pages of this site, in order.
fn times(web: &Web, site: &str) -> Vec<Instant> {
    let start = format!("http://{site}/");
    let mut asked = web.asked();
    asked.retain(|asked| asked.url.starts_with(&start));
    let mut times: Vec<_> = asked.into_iter().map(|asked| asked.at).collect();
    times.sort();
    times
}

/// The most requests of any window beyond what the rate allows in it.
fn excess(times: &[Instant], interval: Duration) -> f64 {
    let windows = times.iter().enumerate().flat_map(|(first, from)| {
        times[first..].iter().enumerate().map(move |(more, to)| {
            1.0 + more as f64 - (*to - *from).as_secs_f64() / interval.as_secs_f64()
        })
    });
    windows.fold(0.0, f64::max)
}
