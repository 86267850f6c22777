//! What becomes of the one request that finds out whether a pause is over.

use http::{HeaderMap, StatusCode};
use url::Url;

use super::queues::{answered, pass, refused, site, turn, worker};
use super::*;
use crate::budget::Budget;
use crate::site::Site;

fn level(server: &Server) -> u64 {
    let state: Option<String> = server.ask(&format!("GET {KEY}"));
    state.unwrap_or_default().split(':').nth(5).map_or(0, |level| level.parse().unwrap())
}

/// Has the site of a URL refuse one request of this worker, and waits until some bucket in Redis
/// is paused that was not.
pub(super) async fn is_refused_at(server: &Server, budgets: &Budgets, url: &Url, seconds: u64) {
    let paused = |server: &Server| {
        let keys: Vec<String> = server.ask("KEYS *");
        let level = |key: &String| {
            let state: String = server.ask(&format!("GET {key}"));
            state.split(':').nth(5).is_some_and(|level| level != "0")
        };
        keys.iter().filter(|key| level(key)).count()
    };
    let (site, port) = (Site::of(url).unwrap(), url.port_or_known_default());
    let before = paused(server);
    let mut turn = budgets.gate(&site, port, &[]).turn(SECOND).unwrap();
    tokio::time::timeout(10 * SECOND, turn.slot()).await.unwrap().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", seconds.into());
    let status = StatusCode::TOO_MANY_REQUESTS;
    budgets.answered(&site, port, &turn.spend(), status, &headers).unwrap();
    server.wait_for("the pause is shared", |server| paused(server) == before + 1).await;
}

/// Has the site refuse one request of this worker, and waits until Redis knows.
async fn is_refused(server: &Server, budgets: &Budgets, seconds: u64) {
    let before = level(server);
    refused(budgets, &pass(budgets).await, seconds);
    server.wait_for("the pause is shared", |server| level(server) == before + 1).await;
}

#[tokio::test]
async fn a_success_of_a_worker_that_was_never_refused_ends_the_pause_for_all() {
    let server = Server::start(&[]);
    let budget = Budget::per_second(100);
    let (one, other) = (worker(&server, budget).await.0, worker(&server, budget).await.0);
    is_refused(&server, &one, 1).await;
    let probe = pass(&other).await;
    assert_eq!(level(&server), 1);
    answered(&other, &probe, StatusCode::OK);
    server.wait_for("the pause is over", |server| level(server) == 0).await;
    drop(probe);
    let begun = std::time::Instant::now();
    // Nothing is one at a time any more, here or there.
    let all = [pass(&other).await, pass(&other).await, pass(&one).await, pass(&one).await];
    assert!(begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
    drop(all);
}

/// The twin of the above, and all that a dead worker's probe costs.
#[tokio::test]
async fn without_news_of_its_success_the_next_one_waits() {
    let server = Server::start(&[]);
    let budget = Budget::per_second(100);
    let (one, other) = (worker(&server, budget).await.0, worker(&server, budget).await.0);
    is_refused(&server, &one, 1).await;
    let probe = pass(&other).await;
    let mut next = turn(&one);
    assert!(tokio::time::timeout(3 * SECOND, next.slot()).await.is_err());
    assert_eq!(level(&server), 1);
    drop(probe);
}

#[tokio::test]
async fn a_probe_that_is_refused_is_a_further_pause_whoever_sent_it() {
    let server = Server::start(&[]);
    let budget = Budget::per_second(100);
    let (one, other) = (worker(&server, budget).await.0, worker(&server, budget).await.0);
    is_refused(&server, &one, 1).await;
    is_refused(&server, &other, 1).await;
    assert_eq!(level(&server), 2);
    let why = other.explain(&"http://a.test".parse().unwrap());
    assert!(why.paused().is_some());
}

#[tokio::test]
async fn a_probe_that_was_never_answered_is_followed_by_another_at_once() {
    let server = Server::start(&[]);
    let budget = Budget::per_second(100);
    let (one, other) = (worker(&server, budget).await.0, worker(&server, budget).await.0);
    is_refused(&server, &one, 1).await;
    for budgets in [&one, &other, &other, &one] {
        let begun = std::time::Instant::now();
        drop(pass(budgets).await);
        assert!(begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
        assert_eq!(level(&server), 1);
    }
}

#[tokio::test]
async fn looks_at_another_workers_probe_are_no_pauses() {
    let server = Server::start(&[]);
    let budget = Budget::per_second(100);
    let (one, other) = (worker(&server, budget).await.0, worker(&server, budget).await.0);
    is_refused(&server, &one, 1).await;
    let mut waiting = turn(&other);
    // It is told of the pause before the probe goes out.
    assert!(tokio::time::timeout(SECOND / 4, waiting.slot()).await.is_err());
    let probe = pass(&one).await;
    assert!(tokio::time::timeout(3 * SECOND, waiting.slot()).await.is_err());
    assert_eq!(waiting.pauses(), 1);
    assert!(waiting.overdue().to_string().contains("by a pause it asked for"));
    answered(&one, &probe, StatusCode::OK);
    tokio::time::timeout(5 * SECOND, waiting.slot()).await.unwrap().unwrap();
    assert_eq!(waiting.pauses(), 1);
    drop(waiting.spend());
}

#[tokio::test]
async fn another_workers_last_probe_is_waited_for_and_no_refusal() {
    let server = Server::start(&[]);
    let limits = limits(&server.url()).await;
    let pauses = Pauses::new().most_in_a_row(1);
    let budget = Budget::per_second(100);
    let builder = Budgets::builder().shared(limits).default(budget).pauses(pauses);
    let (one, other) = (worker(&server, budget).await.0, builder.build().unwrap());
    for _ in 0..2 {
        is_refused(&server, &one, 1).await;
    }
    let probe = pass(&one).await;
    let mut waiting = turn(&other);
    assert!(tokio::time::timeout(2 * SECOND, waiting.slot()).await.is_err(), "it is refused");
    let newcomer = other.gate(&site(), None, &[]).turn(SECOND);
    assert!(newcomer.is_ok(), "{:?}", newcomer.err());
    drop(newcomer);
    answered(&one, &probe, StatusCode::OK);
    tokio::time::timeout(5 * SECOND, waiting.slot()).await.unwrap().unwrap();
    drop(waiting.spend());
}
