//! A process that dies with its leases: they come back after deadline and cooldown, not before.

use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest_lease::{
    AcquireReply, AcquireRequest, Endpoint, HeldLease, Inventory, LeaseStore, Pool, RedisStore,
    Token,
};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::checker::{End, Findings, check};
use super::diary::{micros, wall};
use super::layout::{Flaw, NO_COOLDOWN_AFTER_EXPIRY};
use super::relay::Relay;
use super::server::Server;
use super::{
    APPEND_ONLY, COOLDOWN, ENDPOINTS, TTL, aof, config, connect, id, pool_name, prefix, set_up,
};
use crate::support::SOON;

const URL: &str = "REQWEST_LEASE_CRASH_URL";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leases_of_a_dead_process_come_back_after_deadline_and_cooldown() {
    let (findings, killed_at) = crash(&[]).await;
    assert!(findings.wrongs.is_empty(), "{:#?}", findings.wrongs);
    let late = come_back(&findings, killed_at);
    assert_eq!(late.len(), ENDPOINTS);
    println!("back after deadline and cooldown, in microseconds: {late:?}");
    assert!(late.iter().all(|late| *late >= 0), "{late:?}");
    // Whoever waits is told when to ask; all else is the machine's.
    assert!(late.iter().all(|late| *late < 2_000_000), "{late:?}");
}

/// The twin: without the cooldown they are back too early.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_of_a_dead_process_that_do_not_cool_are_found() {
    let (findings, killed_at) = crash(NO_COOLDOWN_AFTER_EXPIRY).await;
    let late = come_back(&findings, killed_at);
    assert!(late.iter().any(|late| *late < 0), "{late:?}");
    assert!(!findings.wrongs.is_empty());
}

/// For each endpoint how long after deadline and cooldown of the dead it was granted again.
fn come_back(findings: &Findings, killed_at: u64) -> Vec<i64> {
    let dead = findings.terms.values().filter(|term| term.lease.granted_at < killed_at);
    let again = |dead: &super::checker::Term| {
        let next = |fence: &u64| *fence > dead.lease.fence;
        let mut later = findings.terms.iter().filter(|(fence, _)| next(fence));
        let (_, next) = later.find(|(_, term)| term.id == dead.id).unwrap();
        let due = dead.lease.deadline + dead.lease.cooldown;
        assert_eq!(dead.end, Some(End::Reclaimed));
        next.lease.granted_at.cast_signed() - due.cast_signed()
    };
    dead.map(again).collect()
}

/// Kills a process that holds all endpoints, renewing them, and takes them as they come free.
async fn crash(flaw: Flaw) -> (Findings, u64) {
    let server = Server::start(APPEND_ONLY);
    let relay = Relay::start(server.port(), None, flaw).await;
    let store = connect(&relay.url()).await;
    set_up(&store, config()).await;
    let killed_at = start_and_kill(&relay.url()).await;
    assert_eq!(store.status(&pool_name()).await.unwrap().ready, 0);
    let begun = Instant::now();
    let mut taken = 0;
    while taken < ENDPOINTS {
        let mut request = AcquireRequest::new(pool_name(), Token::random(), TTL);
        request.expiry_cooldown = SOON;
        match store.acquire(request).await.unwrap() {
            AcquireReply::Granted(_) => taken += 1,
            AcquireReply::Empty { next, .. } => sleep(next.unwrap_or_default()).await,
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < SOON, "{taken} of {ENDPOINTS} came back");
    }
    (check(&aof::read(server.directory()), &prefix(), micros(TTL)), killed_at)
}

/// Starts a process that holds all endpoints, and kills it; when that was.
async fn start_and_kill(url: &str) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "truth::crash::a_process_holds_all_endpoints", "--nocapture"])
        .env(URL, url)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let holds = async { while !said.next_line().await.unwrap().unwrap().contains("holds all") {} };
    timeout(SOON, holds).await.unwrap();
    child.kill().await.unwrap();
    wall()
}

/// The tests above start this one in a process of its own, which never ends by itself.
#[tokio::test]
async fn a_process_holds_all_endpoints() {
    let Ok(url) = std::env::var(URL) else {
        let server = Server::start(&[]);
        let store = connect(&server.url()).await;
        set_up(&store, config()).await;
        let held = hold_all(store.clone()).await;
        assert!(held.iter().all(HeldLease::is_valid));
        assert_eq!(store.status(&pool_name()).await.unwrap().leased, ENDPOINTS);
        return;
    };
    let held = hold_all(connect(&url).await).await;
    // Renewals are under way by then.
    sleep(TTL / 2).await;
    println!("holds all {}", held.len());
    std::future::pending::<()>().await;
}

async fn hold_all(store: RedisStore) -> Vec<HeldLease> {
    let endpoint = |nth| Endpoint::new(id(nth), "http://127.0.0.1:1", None).unwrap();
    let inventory = Inventory::from_endpoints((0..ENDPOINTS).map(endpoint)).unwrap();
    let pool = Pool::builder(pool_name(), inventory).store(store).ttl(TTL);
    let pool = pool.expiry_cooldown(COOLDOWN).max_wait(Duration::ZERO).build().await.unwrap();
    let mut held = Vec::new();
    for _ in 0..ENDPOINTS {
        held.push(pool.hold().await.unwrap());
    }
    held
}
