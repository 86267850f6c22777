//! Commands on pools whose endpoints are in use.

use std::time::Duration;

use http::StatusCode;
use reqwest_lease::conformance::Fixture as _;
use reqwest_lease::{
    AcquireReply, AcquireRequest, Grant, LeaseStore as _, Release, ReleaseReply, ReleaseRequest,
    Token, Verdict,
};

use super::Rig;
use crate::support::origin::{Origin, text};
use crate::support::tinyproxy::Tinyproxy;
use crate::support::{Outgoing, direct_connections};

const TTL: Duration = Duration::from_secs(300);

pub(super) async fn lease(rig: &Rig) -> Grant {
    let request = AcquireRequest::new(rig.redis.pool(), Token::random(), TTL);
    match rig.store().acquire(request).await.unwrap() {
        AcquireReply::Granted(mut grants) => grants.remove(0),
        other => panic!("a grant expected, not {other:?}"),
    }
}

pub(super) async fn release(rig: &Rig, grant: &Grant) -> ReleaseReply {
    let releases = vec![Release::new(grant.claim(), Verdict::default(), None)];
    let request = ReleaseRequest::new(rig.redis.pool(), releases);
    rig.store().release(request).await.unwrap()[0]
}

#[tokio::test]
async fn valid_leases_are_told_from_those_that_have_run_out() {
    let rig = Rig::new().await;
    rig.set_up(4).await;
    lease(&rig).await;
    rig.redis.advance(TTL).await;
    lease(&rig).await;
    // An acquire takes back what has run out; this one runs out afterwards.
    lease(&rig).await;
    rig.redis.advance(TTL).await;
    let status = rig.json("status").await;
    assert_eq!((status["leased"].as_u64(), status["expired"].as_u64()), (Some(0), Some(2)));
    let listed = rig.json("list --state expired").await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let reaped = rig.json("reap").await;
    assert_eq!(reaped["reclaimed"], 2);
    assert_eq!(rig.json("status").await["expired"], 0);
    lease(&rig).await;
    assert_eq!(rig.json("status").await["leased"], 1);
    assert_eq!(rig.json("list --state leased").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn as_many_valid_leases_as_have_run_out_are_told_apart() {
    let rig = Rig::new().await;
    rig.set_up(12).await;
    let take = async |ttl| {
        let request = AcquireRequest::new(rig.redis.pool(), Token::random(), ttl);
        let reply = rig.store().acquire(request).await.unwrap();
        assert!(matches!(reply, AcquireReply::Granted(_)), "{reply:?}");
    };
    for _ in 0..5 {
        take(TTL).await;
        take(TTL / 2).await;
    }
    rig.redis.advance(TTL / 2).await;
    let counts = async || {
        let status = rig.json("status").await;
        ["ready", "leased", "expired"].map(|state| status[state].as_u64().unwrap())
    };
    assert_eq!(counts().await, [2, 5, 5]);
    let shown = rig.good("status").await.out;
    let row = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for name in ["leased", "expired"] {
        assert_eq!(row(name).split_whitespace().nth(1), Some("5"), "{shown}");
    }
    rig.good("reap").await;
    assert_eq!(counts().await, [2, 5, 0], "those that ran out rest");
}

#[tokio::test]
async fn a_drain_waits_for_the_last_lease() {
    let rig = Rig::new().await;
    rig.set_up(1).await;
    let held = lease(&rig).await;
    let drained = rig.words("drain e0 --wait=0").await;
    assert_eq!(drained.code, 7, "{drained:?}");
    assert!(drained.out.contains("still leased: 1 (e0)"), "{drained:?}");

    let waiting = rig.words("drain e0 --wait");
    tokio::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_millis(1500), &mut waiting).await;
    assert!(early.is_err(), "the lease goes on");
    release(&rig, &held).await;
    let drained = waiting.await;
    assert_eq!(drained.code, 0, "{drained:?}");
    assert_eq!(rig.json("list").await[0]["state"], "disabled");
}

#[tokio::test]
async fn a_sync_removes_what_is_leased_when_its_lease_ends() {
    let rig = Rig::new().await;
    rig.set_up(2).await;
    let held = lease(&rig).await;
    rig.file("next.toml", super::inventory(2).replace("e0", "new"));
    assert_eq!(held.endpoint.as_str(), "e0");
    let synced = rig.good("sync --inventory next.toml --yes").await;
    assert!(synced.out.contains("- e0 (when its lease ends)"), "{synced:?}");
    assert_eq!(rig.json("list").await.as_array().unwrap().len(), 3);
    rig.good("sync --inventory next.toml --dry-run").await;
    release(&rig, &held).await;
    assert_eq!(rig.json("list").await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_pool_that_was_lost_begins_on_hold_and_grants_when_told() {
    let rig = Rig::new().await;
    rig.file("proxies.toml", super::inventory(2));
    let init = rig.good("init --inventory proxies.toml --after-loss").await;
    assert!(init.out.contains("it grants nothing for"), "{init:?}");
    let ask = || AcquireRequest::new(rig.redis.pool(), Token::random(), TTL);
    let reply = rig.store().acquire(ask()).await.unwrap();
    assert!(matches!(reply, AcquireReply::Hold(_)), "{reply:?}");
    assert_eq!(rig.words("resume --now").await.code, 4);
    rig.good("resume --now --yes").await;
    lease(&rig).await;
}

#[tokio::test]
async fn a_bench_leaves_nothing_behind() {
    let rig = Rig::new().await;
    rig.set_up(20).await;
    let keys = async || {
        let mut keys: Vec<String> = rig.redis.send("KEYS *").await;
        keys.sort();
        keys
    };
    let before = keys().await;
    let measured = rig.json("bench --for 300ms --clients 4").await;
    assert!(measured["leases"].as_u64().unwrap() > 0, "{measured}");
    assert_eq!(measured["endpoints"], 20);
    assert_eq!(keys().await, before);
    assert_eq!(rig.json("status").await["fence"], 0);
}

#[tokio::test]
async fn a_bench_that_is_interrupted_leaves_nothing_behind_either() {
    let rig = Rig::new().await;
    let child = rig.program().args(["bench", "--for", "1m"]).spawn().unwrap();
    let patience = std::time::Instant::now() + super::RUNS_WITHIN;
    // It leases as soon as its pool is open.
    while !rig.redis.send::<Vec<String>>("KEYS *").await.iter().any(|key| key.ends_with(":leases"))
    {
        assert!(std::time::Instant::now() < patience, "no lease");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let id = child.id().unwrap().to_string();
    rig.run_other("kill", &["-s", "INT", &id]).await;
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rig.redis.send::<Vec<String>>("KEYS *").await, [""; 0]);
}

#[tokio::test]
async fn leases_that_workers_take_back_in_time_are_no_finding() {
    let rig = Rig::new().await;
    rig.set_up(2).await;
    lease(&rig).await;
    rig.redis.advance(TTL).await;
    let doctor = rig.words("doctor");
    tokio::pin!(doctor);
    let early = tokio::time::timeout(Duration::from_secs(1), &mut doctor).await;
    assert!(early.is_err(), "it gives workers some time");
    rig.store().reap(reqwest_lease::ReapRequest::new(rig.redis.pool())).await.unwrap();
    let doctor = doctor.await;
    assert_eq!(doctor.code, 0, "{doctor:?}");
}

#[tokio::test]
async fn a_fetch_goes_through_a_leased_endpoint_and_says_how() {
    let rig = Rig::new().await;
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let proxy = Tinyproxy::start(Some(("worker", "c4n4ry")));
    rig.file("word", "c4n4ry\n");
    let entry = format!(
        "[[endpoint]]\nid = 'gw'\nurl = '{}'\nusername = 'worker'\npassword.file = 'word'\n",
        proxy.url()
    );
    rig.file("proxies.toml", &entry);
    rig.good("init --inventory proxies.toml").await;
    let fetch = format!("fetch --inventory proxies.toml {}", origin.url("/"));
    let fetched = rig.json(&fetch).await;
    assert_eq!((fetched["status"].as_u64(), fetched["bytes"].as_u64()), (Some(200), Some(5)));
    assert_eq!((fetched["endpoint"].as_str(), fetched["attempts"].as_u64()), (Some("gw"), Some(1)));
    assert!(direct_connections(&origin, &[&proxy as &dyn Outgoing]).is_empty());
    assert_eq!(origin.visits().len(), 1);
    assert_eq!(rig.json("status").await["ready"], 1, "the lease was given back");

    rig.good("pause").await;
    let paused = rig.words(&format!("{fetch} --max-wait 1s")).await;
    assert_eq!(paused.code, 4, "{paused:?}");
    rig.good("resume").await;
    lease(&rig).await;
    let late = rig.words(&format!("{fetch} --max-wait 1s")).await;
    assert_eq!(late.code, 7, "{late:?}");
}
