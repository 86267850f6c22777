//! No window holds more than rate and burst allow, whoever sends.

use std::time::Duration;

use http::StatusCode;

use super::*;
use crate::support::origin::text;
use crate::support::redis::Server;

/// A thousand requests from four processes at a hundred a second.
async fn thousand(mode: &str) -> (Web, Vec<String>, Duration) {
    let redis = Server::start(&[]);
    let web = Web::start(|_| text(StatusCode::OK, "hello")).await;
    let settings = format!("{mode} 100 5 250 1 60000 a.test");
    let (told, late) = timed(work(&web, &redis.url(), &settings, WORKERS)).await;
    assert_eq!(told.iter().filter(|line| *line == "200").count(), 1_000, "{told:?}");
    let late = late + latest(&told);
    (web, told, late)
}

#[tokio::test]
async fn four_processes_keep_to_one_rate_with_one_call_an_admission() {
    let (web, told, late) = thousand("shared").await;
    let times = times(&web, "a.test");
    assert_eq!(times.len(), 1_000);
    // A slot may be used late: one request more for each process, and what a machine that is
    // late by itself holds up.
    let (excess, most) = (excess(&times, INTERVAL), most(late));
    assert!(excess <= most, "{excess} of {most} in one window");
    let took = times[999] - times[0];
    assert!(took >= INTERVAL * (999 - 5), "{took:?}");
    // One call for each admission, and for each slot that this machine was too late for.
    let sum = |word: &str| -> u64 {
        told.iter().filter_map(|line| line.strip_prefix(word)?.parse::<u64>().ok()).sum()
    };
    let (calls, lapsed) = (sum("calls "), sum("lapsed "));
    let used = calls - lapsed;
    assert!((1_000..=1_000 + WORKERS as u64).contains(&used), "{calls} calls, {lapsed} lapsed");
    // How many those are is the machine's; if slots lapsed by themselves each would.
    assert!(lapsed <= used / 2, "{calls} calls, {lapsed} lapsed");
}

/// The twin: limits of each process's own.
#[tokio::test]
async fn four_processes_that_share_nothing_exceed_the_rate() {
    let (web, _, late) = thousand("local").await;
    let (excess, most) = (excess(&times(&web, "a.test"), INTERVAL), most(late));
    assert!(excess > 2.0 * most, "{excess} and {most} in one window");
}

/// The most requests that a window may hold beyond its rate.
fn most(late: Duration) -> f64 {
    5.0 + WORKERS as f64 + late.as_secs_f64() / INTERVAL.as_secs_f64()
}

const WORKERS: usize = 4;
const INTERVAL: Duration = Duration::from_millis(10);
