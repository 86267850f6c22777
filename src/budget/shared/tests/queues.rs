//! Queues of two workers over one Redis.

use http::{HeaderMap, StatusCode};

use super::*;
use crate::budget::{Budget, Passage as Gone, Turn};
use crate::site::Site;

const LONG: Duration = Duration::from_secs(600);
const MOMENT: Duration = Duration::from_millis(300);

pub(super) fn site() -> Site {
    Site::parse("a.test").unwrap()
}

/// What a worker of its own process has.
pub(super) async fn worker(server: &Server, budget: Budget) -> (Budgets, SharedLimits) {
    let limits = limits(&server.url()).await;
    (Budgets::builder().shared(limits.clone()).default(budget).build().unwrap(), limits)
}

pub(super) fn turn(budgets: &Budgets) -> Turn {
    budgets.gate(&site(), None, &[]).turn(LONG).unwrap()
}

pub(super) async fn pass(budgets: &Budgets) -> Gone {
    let mut turn = turn(budgets);
    tokio::time::timeout(10 * SECOND, turn.slot()).await.expect("a slot").unwrap();
    turn.spend()
}

pub(super) async fn waits(budgets: &Budgets) -> Turn {
    let mut turn = turn(budgets);
    assert!(tokio::time::timeout(MOMENT, turn.slot()).await.is_err());
    turn
}

/// Tells of an answer that says stop for some seconds.
pub(super) fn refused(budgets: &Budgets, passage: &Gone, seconds: u64) {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", seconds.into());
    let status = StatusCode::TOO_MANY_REQUESTS;
    assert!(budgets.answered(&site(), None, passage, status, &headers).is_some());
}

pub(super) fn answered(budgets: &Budgets, passage: &Gone, status: StatusCode) {
    assert!(budgets.answered(&site(), None, passage, status, &HeaderMap::new()).is_none());
}

pub(super) fn flying(server: &Server) -> u64 {
    server.ask(&format!("ZCARD {KEY}:passages"))
}

#[tokio::test]
async fn a_place_is_for_all_workers_and_comes_back_with_its_passage() {
    let server = Server::start(&[]);
    let budget = Budget::unpaced().in_flight(1);
    let (one, other) = (worker(&server, budget).await.0, worker(&server, budget).await.0);
    let passage = pass(&one).await;
    assert_eq!(flying(&server), 1);
    let mut waiting = waits(&other).await;
    drop(passage);
    tokio::time::timeout(10 * SECOND, waiting.slot()).await.unwrap().unwrap();
    let passage = waiting.spend();
    assert_eq!(flying(&server), 1);
    drop(passage);
    server.wait_for("the place is free", |server| flying(server) == 0).await;
}

#[tokio::test]
async fn a_later_slot_takes_its_place_when_it_is_due() {
    let server = Server::start(&[]);
    let (budgets, _) = worker(&server, Budget::per_second(1).in_flight(3)).await;
    drop(pass(&budgets).await);
    server.wait_for("the place is free", |server| flying(server) == 0).await;
    let mut waiting = waits(&budgets).await;
    assert_eq!(flying(&server), 0);
    tokio::time::timeout(10 * SECOND, waiting.slot()).await.unwrap().unwrap();
    assert_eq!(flying(&server), 1);
    drop(waiting);
    server.wait_for("nobody used it", |server| flying(server) == 0).await;
}

#[tokio::test]
async fn a_slot_that_nobody_is_left_for_is_undone() {
    let server = Server::start(&[]);
    let (budgets, limits) = worker(&server, Budget::per_minute(1)).await;
    drop(pass(&budgets).await);
    let state = || server.ask::<String>(&format!("GET {KEY}"));
    let tat = |state: String| state.split(':').nth(1).unwrap().to_owned();
    let before = tat(state());
    let waiting = waits(&budgets).await;
    assert_ne!(tat(state()), before);
    drop(waiting);
    server.wait_for("it is undone", |_| limits.counts().undone == 1).await;
    assert_eq!(tat(state()), before);
}

#[tokio::test]
async fn what_a_site_says_to_one_worker_holds_for_all_and_is_one_event() {
    let server = Server::start(&[]);
    let budget = Budget::per_second(1_000).burst(10);
    let (one, other) = (worker(&server, budget).await.0, worker(&server, budget).await.0);
    let passages = [pass(&one).await, pass(&one).await, pass(&other).await];
    refused(&one, &passages[0], 20);
    let level = |server: &Server| -> u64 {
        let state: String = server.ask(&format!("GET {KEY}"));
        state.split(':').nth(5).map_or(0, |level| level.parse().unwrap())
    };
    server.wait_for("the pause is shared", |server| level(server) == 1).await;
    drop(waits(&other).await);
    assert!(other.gate(&site(), None, &[]).turn(SECOND).is_err(), "it was told of 20 s");
    refused(&one, &passages[1], 20);
    refused(&other, &passages[2], 20);
    drop(waits(&one).await);
    assert_eq!(level(&server), 1);
}

#[tokio::test]
async fn a_local_budget_and_a_site_without_one_ask_nobody() {
    let server = Server::start(&[]);
    let (budgets, limits) = worker(&server, Budget::per_second(1).local()).await;
    drop(pass(&budgets).await);
    assert_eq!(limits.counts().reservations, 0);
    let bad = limits.fallback_local(1.5);
    let error = Budgets::builder().shared(bad).build().unwrap_err();
    assert_eq!(error.to_string(), "the share of a fallback is more than 0 and at most 1");
}

#[tokio::test]
async fn those_without_room_have_a_bucket_that_no_site_and_no_key_has() {
    let server = Server::start(&[]);
    let budget = Budget::unpaced().in_flight(100);
    let limits = limits(&server.url()).await;
    let builder = Budgets::builder().shared(limits).default(budget).default_key(budget);
    let budgets = builder.max_sites(1).build().unwrap();
    let mut held = Vec::new();
    for nth in 0..40 {
        let site = Site::parse(&format!("s{nth}.test")).unwrap();
        let keys = [["*".into(), "overflow/".into()], [format!("k{nth}").into(), "x".into()]];
        let mut turn = budgets.gate(&site, None, &keys[nth % 2]).turn(LONG).unwrap();
        turn.slot().await.unwrap();
        held.push(turn.spend());
    }
    assert!(budgets.counts().overflowed > 20);
    let mut names: Vec<String> = server.ask("KEYS *{*}");
    names.retain(|name| name.contains("over") || name.contains('*'));
    names.sort();
    assert!(names.len() >= 2, "{names:?}");
    let fixed = ["lease:budget:{key/overflow/}", "lease:budget:{overflow/}"];
    assert!(fixed.iter().all(|name| names.iter().any(|found| found == name)), "{names:?}");
    assert!(!names.iter().any(|name| name == "lease:budget:{*}"), "{names:?}");
    drop(held);
}

#[tokio::test]
async fn names_that_rules_give_are_apart_in_redis() {
    let server = Server::start(&[]);
    let limits = limits(&server.url()).await;
    let budgets = Budgets::builder()
        .shared(limits)
        .site("a.test", Budget::per_second(100))
        .site("a.test:8080", Budget::per_second(100))
        .suffix("a.test", Budget::per_second(100))
        .key("a.test", Budget::per_second(100))
        .key("{x} y", Budget::per_second(100))
        .build()
        .unwrap();
    let keys = ["a.test".into(), "{x} y".into()];
    for (host, port, keys) in
        [("a.test", None, &keys[..]), ("a.test", Some(8080), &[]), ("b.a.test", None, &[])]
    {
        let site = Site::parse(host).unwrap();
        let mut turn = budgets.gate(&site, port, keys).turn(LONG).unwrap();
        turn.slot().await.unwrap();
        drop(turn.spend());
    }
    let mut all: Vec<String> = server.ask("KEYS *");
    all.sort();
    let names = ["%7Bx%7D%20y", "a.test"].map(|key| format!("lease:budget:{{key/{key}}}"));
    let mut expected = ["*.a.test", "a.test", "a.test:8080"]
        .map(|name| format!("lease:budget:{{{name}}}"))
        .to_vec();
    expected.extend(names);
    expected.sort();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn a_place_given_back_outside_a_runtime_comes_back_with_the_next_ones() {
    let server = Server::start(&[]);
    let budgets = worker(&server, Budget::unpaced().in_flight(2)).await.0;
    let passage = pass(&budgets).await;
    std::thread::spawn(move || drop(passage)).join().unwrap();
    server.wait_for("it is given back", |server| flying(server) == 0).await;
    for _ in 0..3 {
        drop(pass(&budgets).await);
        server.wait_for("so are later ones", |server| flying(server) == 0).await;
    }
}

#[tokio::test]
async fn a_place_given_back_in_a_runtime_that_ends_is_not_the_last_one() {
    let server = Server::start(&[]);
    let budgets = worker(&server, Budget::unpaced().in_flight(2)).await.0;
    let passage = pass(&budgets).await;
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let entered = runtime.enter();
        // What is spawned here never runs.
        drop(passage);
        drop(entered);
    })
    .join()
    .unwrap();
    for _ in 0..3 {
        drop(pass(&budgets).await);
        server.wait_for("all are given back", |server| flying(server) == 0).await;
    }
}

#[tokio::test]
async fn a_later_slot_with_a_place_that_nobody_is_left_for_is_undone_before_it_is_due() {
    let server = Server::start(&[]);
    let (budgets, limits) = worker(&server, Budget::per_minute(1).in_flight(3)).await;
    drop(pass(&budgets).await);
    let state = || server.ask::<String>(&format!("GET {KEY}"));
    let tat = |state: String| state.split(':').nth(1).unwrap().to_owned();
    let before = tat(state());
    let waiting = waits(&budgets).await;
    assert_ne!(tat(state()), before);
    drop(waiting);
    server.wait_for("it is undone", |_| limits.counts().undone == 1).await;
    assert_eq!(tat(state()), before);
    // One who comes meanwhile reserves anew.
    let waiting = waits(&budgets).await;
    assert_ne!(tat(state()), before);
    drop(waiting);
}

/// Each key takes one at a time, so that two who took them in two orders would hold what the
/// other one waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_pass_the_same_keys_in_one_order() {
    let server = Server::start(&[]);
    let site = Site::parse("z.test").unwrap();
    let go = async |budgets: &Budgets, keys: &[Box<str>]| {
        let mut turn = budgets.gate(&site, None, keys).turn(LONG).unwrap();
        turn.slot().await.unwrap();
        drop(turn.spend());
    };
    for _ in 0..5 {
        let mut workers = Vec::new();
        // Each meets the keys in an order of its own.
        for met in [["x", "y"], ["y", "x"]] {
            let limits = limits(&server.url()).await;
            let budget = Budget::unpaced().in_flight(1);
            let budgets = Budgets::builder().shared(limits).default_key(budget).build().unwrap();
            for key in met {
                go(&budgets, &[key.into()]).await;
            }
            workers.push(budgets);
        }
        let run = async |budgets: &Budgets| {
            for _ in 0..10 {
                go(budgets, &["x".into(), "y".into()]).await;
            }
        };
        let both = async { tokio::join!(run(&workers[0]), run(&workers[1])) };
        tokio::time::timeout(30 * SECOND, both).await.expect("nobody waits for each other");
    }
}
