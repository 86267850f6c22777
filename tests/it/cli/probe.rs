//! Probes through real proxies, and what they leave alone.

use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use reqwest_lease::conformance::Fixture as _;
use reqwest_lease::{LeaseStore as _, RedisRole, ReleaseReply, RenewReply, RenewRequest, Token};
use serde_json::Value;

use super::leases::{lease, release};
use super::roles::everything;
use super::{CANARY, Ended, Rig};
use crate::attempts::Dead;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::{Origin, text};
use crate::support::tinyproxy::Tinyproxy;
use crate::support::{Outgoing, direct_connections};

/// A page that tells its caller's address, and endpoints that reach it or not.
struct Scene {
    rig: Rig,
    origin: Origin,
    proxy: Tinyproxy,
    _dead: Dead,
}

impl Scene {
    /// `dead`, `fine` and `refused`: nobody listens, a proxy, and the same with a wrong password.
    async fn new() -> Self {
        let (proxy, dead) = (Tinyproxy::start(Some(("worker", CANARY))), Dead::new());
        let entry = |id: &str, url: String, word: &str| {
            format!(
                "[[endpoint]]\nid = '{id}'\nurl = '{url}'\nusername = 'worker'\n\
                 password.file = '{word}'\nprovider = '{id}'\n"
            )
        };
        let entries = entry("dead", dead.url(), "good")
            + &entry("fine", proxy.url(), "good")
            + &entry("refused", proxy.url(), "bad");
        let rig = Self::rig(&entries).await;
        Self { rig, origin: addresses().await, proxy, _dead: dead }
    }

    async fn rig(entries: &str) -> Rig {
        let rig = Rig::new().await;
        rig.file("good", CANARY);
        rig.file("bad", format!("no{CANARY}"));
        rig.file("proxies.toml", entries);
        rig.good("init --inventory proxies.toml").await;
        rig
    }

    async fn words(&self, line: &str) -> Ended {
        self.rig.words(&probe(&self.origin, line)).await
    }

    async fn json(&self, line: &str) -> Value {
        self.rig.json(&probe(&self.origin, line)).await
    }

    /// Where the members are, by ids: `ready`, `quarantined probe`.
    async fn places(&self) -> Vec<String> {
        let listed = self.rig.json("list").await;
        let word = |member: &Value| match member["reason"].as_str() {
            Some(reason) => format!("{} {reason}", member["state"].as_str().unwrap()),
            None => member["state"].as_str().unwrap().to_owned(),
        };
        listed.as_array().unwrap().iter().map(word).collect()
    }
}

async fn addresses() -> Origin {
    Origin::http(|visit| text(StatusCode::OK, format!("{{\"ip\": \"{}\"}}", visit.peer.ip()))).await
}

fn probe(origin: &Origin, line: &str) -> String {
    format!("probe --inventory proxies.toml --url {} {line}", origin.url("/ip"))
}

/// A field of each endpoint's result.
fn each<'a>(told: &'a Value, field: &str) -> Vec<&'a str> {
    let field = |row: &'a Value| row[field].as_str().unwrap_or("-");
    told["endpoints"].as_array().unwrap().iter().map(field).collect()
}

#[tokio::test]
async fn it_tells_which_endpoints_work_how_soon_and_from_where() {
    let scene = Scene::new().await;
    let told = scene.json("--all").await;
    assert_eq!(each(&told, "id"), ["dead", "fine", "refused"]);
    assert_eq!(each(&told, "result"), ["proxy_unreachable", "passed", "credentials_doubted"]);
    assert_eq!((&told["passed"], &told["failed"]), (&1.into(), &2.into()));
    let visits = scene.origin.visits();
    assert_eq!(visits.len(), 1);
    assert!(scene.proxy.owns(visits[0].peer));
    assert!(direct_connections(&scene.origin, &[&scene.proxy as &dyn Outgoing]).is_empty());
    let exit: IpAddr = each(&told, "exit_address")[1].parse().unwrap();
    assert_eq!(exit, visits[0].peer.ip());
    let latency = told["endpoints"][1]["latency_seconds"].as_f64().unwrap();
    assert!(latency > 0.0 && latency < told["took_seconds"].as_f64().unwrap());
    assert_eq!(scene.places().await, ["cooling", "ready", "cooling"], "leases end with verdicts");

    let told = scene.words("fine").await;
    assert_eq!(told.code, 0, "{told:?}");
    let first = told.out.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(first, ["ENDPOINT", "RESULT", "LATENCY", "EXIT", "ADDRESS", "NOW"]);
    assert!(told.out.contains("\n\n1 of 1 endpoint passed; it took "), "{told:?}");
    assert_eq!(told.err, "", "a bar is for terminals");
    let secure = probe(&scene.origin, "fine").replace("http:", "https:");
    assert_eq!(scene.rig.words(&secure).await.code, 6, "no TLS there");
}

#[tokio::test]
async fn with_quarantine_the_failed_go_in_by_one_order_and_the_passed_come_out() {
    let scene = Scene::new().await;
    scene.rig.good("quarantine fine --reason credentials").await;
    let told = scene.json("fine").await;
    assert_eq!(
        (each(&told, "result"), each(&told, "state")),
        (vec!["passed"], vec!["quarantined"])
    );
    let told = scene.words("--all --quarantine").await;
    assert_eq!(told.code, 6, "{told:?}");
    assert!(told.out.contains("put into quarantine: 2 (dead refused)\n"), "{told:?}");
    assert!(told.out.contains("taken out of quarantine: 1 (fine)\n"), "{told:?}");
    assert_eq!(scene.places().await, ["quarantined probe", "ready", "quarantined probe"]);
    let trail = scene.rig.json("audit --limit 2").await;
    let orders: Vec<_> = trail.as_array().unwrap().iter().map(|it| &it["order"]).collect();
    assert_eq!(orders, ["quarantine:probe", "end_quarantine:credentials"]);
    assert_eq!(trail[0]["by"], "kim@example.net");

    scene.rig.good("quarantine fine").await;
    scene.rig.good("disable dead").await;
    let told = scene.json("--all --quarantine").await;
    assert_eq!(each(&told, "result")[1], "passed");
    let told_again = scene.words("fine --quarantine").await;
    let hint = "1 passed and stay in quarantine by an administrator's word (fine)";
    assert!(told_again.err.contains(hint), "{told_again:?}");
    assert_eq!(scene.words("fine").await.err, "", "nothing was asked to be ended");
    assert_eq!(each(&told, "change"), ["-"; 3], "neither an administrator's word nor an order");
    assert_eq!(
        scene.places().await,
        ["quarantined probe", "quarantined administrator", "quarantined probe"]
    );
}

#[tokio::test]
async fn most_of_a_pool_goes_into_quarantine_only_when_that_is_confirmed() {
    let dead = Dead::new();
    let entry = |nth: usize| format!("[[endpoint]]\nid = 'e{nth}'\nurl = '{}'\n", dead.url());
    let scene_rig = Scene::rig(&(0..4).map(entry).collect::<String>()).await;
    let origin = addresses().await;
    let told = scene_rig.words(&probe(&origin, "--all --quarantine")).await;
    assert_eq!(told.code, 4, "{told:?}");
    assert!(told.err.contains("4 of 4 failed, and were not put into quarantine"), "{told:?}");
    assert_eq!(told.out.matches("proxy unreachable").count(), 4);
    assert_eq!(scene_rig.json("status").await["quarantined"], 0);
    let told = scene_rig.words(&probe(&origin, "--all --quarantine --yes")).await;
    assert_eq!(told.code, 6, "{told:?}");
    assert_eq!(scene_rig.json("status").await["quarantined"], 4);
}

#[tokio::test]
async fn one_that_a_worker_uses_is_left_to_it_and_waited_for() {
    let scene = Scene::new().await;
    scene.rig.good("disable dead refused").await;
    let held = lease(&scene.rig).await;
    let told = scene.json("fine --within 1s --quarantine").await;
    assert_eq!((each(&told, "result"), &told["late"]), (vec!["busy"], &1.into()));
    assert_eq!(scene.words("fine --within 300ms").await.code, 7);
    assert!(scene.origin.visits().is_empty());
    let renew = RenewRequest::new(scene.rig.redis.pool(), token(&held), Duration::from_secs(60));
    let renewed = scene.rig.store().renew(renew).await.unwrap();
    assert!(matches!(renewed, RenewReply::Renewed(_)), "{renewed:?}");

    let waiting = scene.words("fine --within 60s");
    tokio::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_secs(1), &mut waiting).await;
    assert!(early.is_err(), "it waits");
    assert_eq!(release(&scene.rig, &held).await, ReleaseReply::Released);
    let told = waiting.await;
    assert_eq!(told.code, 0, "{told:?}");
}

fn token(held: &reqwest_lease::Grant) -> Token {
    held.term.unwrap().token
}

#[tokio::test]
async fn one_that_rests_longer_than_there_is_time_is_not_waited_for() {
    let scene = Scene::new().await;
    scene.words("dead").await;
    scene.rig.plant("ZADD {cooling} XX 4000000000000000 dead").await;
    let told = scene.json("--all --within 100s").await;
    assert_eq!(each(&told, "result")[0], "at_rest");
    assert!(told["took_seconds"].as_f64().unwrap() < 90.0, "{told}");
}

#[tokio::test]
async fn who_is_no_administrator_is_refused_before_anything_is_done() {
    let scene = Scene::new().await;
    let before = everything(&scene.rig).await;
    let Scene { mut rig, origin, .. } = scene;
    for (role, user) in [(RedisRole::Observer, "lee"), (RedisRole::Worker, "pat")] {
        rig = rig.login(role, user).await;
        for line in ["--all --quarantine", "fine"] {
            let told = rig.words(&probe(&origin, line)).await;
            assert_eq!((told.code, &*told.out), (4, ""), "{user}: {told:?}");
            assert!(told.err.contains("may not do this"), "{told:?}");
        }
    }
    assert_eq!(everything(&rig).await, before);
    assert!(origin.visits().is_empty());
}

#[tokio::test]
async fn what_cannot_be_probed_is_said_in_words() {
    let scene = Scene::new().await;
    scene.rig.good("add stranger").await;
    for (line, code, words) in [
        ("fine nobody", 4, "pool conformance has no endpoint nobody"),
        ("fine stranger", 2, "the inventory has no endpoint stranger"),
        ("--state leased", 4, "pool conformance has no such endpoint"),
        ("--all --provider fine", 2, "--all is for all"),
        ("fine --state ready", 2, "not by both"),
        ("", 2, "which endpoints?"),
        ("fine --within 0", 2, "--within leaves no time"),
    ] {
        let told = scene.words(line).await;
        assert_eq!((told.code, &*told.out), (code, ""), "{line}: {told:?}");
        assert!(told.err.contains(words), "{line}: {told:?}");
    }
    assert!(scene.origin.visits().is_empty());
    let told = scene.json("--all").await;
    assert_eq!(each(&told, "result")[3], "not_in_inventory", "the others are probed");
    assert_eq!(each(&scene.json("--provider fine").await, "id"), ["fine"]);
    assert_eq!(each(&scene.json("--state ready").await, "id"), ["fine", "stranger"]);

    scene.rig.plant("HSET {meta} hold_until 4000000000000000").await;
    let told = scene.words("fine").await;
    assert_eq!((told.code, &*told.out), (4, ""), "{told:?}");
    assert!(told.err.contains("is on hold and grants nothing for "), "{told:?}");
    scene.rig.good("resume --now --yes").await;

    scene.rig.good("pause").await;
    let told = scene.words("fine").await;
    assert_eq!((told.code, &*told.out), (4, ""), "{told:?}");
    assert!(told.err.contains("is paused\nhint: "), "{told:?}");
    scene.rig.good("disable fine").await;
    let told = scene.json("fine").await;
    assert_eq!(each(&told, "result"), ["passed"], "one that is out needs no lease");
    assert_eq!(each(&told, "state"), ["disabled"]);
}

#[tokio::test]
async fn endpoints_of_a_shared_pool_are_probed_while_they_are_in_use() {
    let (origin, proxy) = (addresses().await, Tinyproxy::start(None));
    let rig = Rig::new().await;
    rig.file("proxies.toml", format!("[[endpoint]]\nid = 'a'\nurl = '{}'\n", proxy.url()));
    rig.good("init --mode shared --inventory proxies.toml").await;
    lease(&rig).await;
    let told = rig.json(&probe(&origin, "--all")).await;
    assert_eq!(each(&told, "result"), ["passed"]);
    assert_eq!(rig.json("list").await[0]["assignments"], 2);
}

#[tokio::test]
async fn an_interrupt_leaves_no_lease_and_tells_what_was_done() {
    let silent = FaultProxy::start(Fault::Stalls).await;
    let entry = |nth: usize| format!("[[endpoint]]\nid = 'e{nth}'\nurl = '{}'\n", silent.url());
    let rig = Scene::rig(&(0..4).map(entry).collect::<String>()).await;
    let line = "probe --all --inventory proxies.toml --url http://a.test/ --within 2m --quarantine";
    let child = rig.program().args(line.split(' ')).args(["--parallel", "2"]).spawn().unwrap();
    crate::support::eventually("two requests", || (silent.tries() == 2).then_some(())).await;
    assert_eq!(rig.json("status").await["leased"], 2);
    let id = child.id().unwrap().to_string();
    rig.run_other("kill", &["-s", "INT", &id]).await;
    let told = Ended::of(child.wait_with_output().await.unwrap());
    assert_eq!(told.code, 1, "{told:?}");
    assert_eq!(
        told.err,
        "reqwest-lease: interrupted; 0 of 4 endpoints probed; no quarantine was changed\n"
    );
    let status = rig.json("status").await;
    assert_eq!((&status["leased"], &status["quarantined"]), (&0.into(), &0.into()));
    assert_eq!(silent.tries(), 2, "no more than were asked for at a time");
}

#[tokio::test]
async fn a_store_that_goes_away_ends_it_with_what_was_found() {
    let silent = FaultProxy::start(Fault::Stalls).await;
    let scene = Scene::new().await;
    scene.rig.file(
        "proxies.toml",
        format!(
            "[[endpoint]]\nid = 'fine'\nurl = '{}'\nusername = 'worker'\npassword.file = 'good'\n\
             [[endpoint]]\nid = 'slow'\nurl = '{}'\n",
            scene.proxy.url(),
            silent.url()
        ),
    );
    scene.rig.good("add slow").await;
    scene.rig.good("quarantine slow").await;
    let line = probe(&scene.origin, "fine slow --within 2s --timeout 1s --parallel 1");
    let child = scene.rig.program().args(line.split(' ')).spawn().unwrap();
    crate::support::eventually("a request", || (silent.tries() == 1).then_some(())).await;
    scene.rig.redis.server.signal("STOP");
    let told = Ended::of(child.wait_with_output().await.unwrap());
    scene.rig.redis.server.signal("CONT");
    assert_eq!(told.code, 3, "{told:?}");
    assert!(told.out.starts_with("ENDPOINT") && told.out.contains("passed"), "{told:?}");
}

#[tokio::test]
async fn a_large_pool_is_not_listed_for_each_endpoint() {
    let (origin, proxy) = (addresses().await, Tinyproxy::start(None));
    let entry = |nth: usize| format!("[[endpoint]]\nid = 'e{nth}'\nurl = '{}'\n", proxy.url());
    let rig = Scene::rig(&(0..6000).map(entry).collect::<String>()).await;
    let ids: String = (0..20).map(|nth| format!("e{} ", nth * 299)).collect();
    rig.redis.send::<()>("CONFIG RESETSTAT").await;
    let told = rig.json(&probe(&origin, &ids)).await;
    assert_eq!(told["passed"], 20);
    let stats: String = rig.redis.send("INFO commandstats").await;
    // Of EVALSHA, EVAL and their kinds for what only reads.
    let calls = |line: &str| -> Option<usize> {
        let (_, told) = line.strip_prefix("cmdstat_eval")?.split_once(":calls=")?;
        told.split(',').next()?.parse().ok()
    };
    let all: usize = stats.lines().filter_map(calls).sum();
    // Two lists of 24 pages; for each endpoint a look, a lease and its end. A list for each would
    // alone be 480.
    assert!((60..140).contains(&all), "{all} calls");
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_failure_of_a_probe() {
    let scene = Scene::new().await;
    let line = probe(&scene.origin, "--all");
    let mut child = scene.rig.program().args(line.split(' ')).spawn().unwrap();
    drop(child.stdout.take());
    let told = Ended::of(child.wait_with_output().await.unwrap());
    assert_eq!((told.code, &*told.err), (0, ""));
    assert_eq!(scene.rig.json("status").await["leased"], 0);
}

#[tokio::test]
async fn a_terminal_has_a_bar_and_a_table_that_is_no_ribbon() {
    let proxy = Tinyproxy::start(None);
    let long = "l".repeat(64);
    let entry = |id: &str| format!("[[endpoint]]\nid = '{id}'\nurl = '{}'\n", proxy.url());
    let rig = Scene::rig(&format!("{}{}", entry("short"), entry(&long))).await;
    let origin = addresses().await;
    for width in [80, 200] {
        let shown = super::ends::terminal_of(&rig, width, &probe(&origin, "--all")).await;
        assert_eq!(shown.code, 0, "{shown:?}");
        assert!(shown.out.contains("probing "), "{shown:?}");
        let (_, table) = shown.out.rsplit_once("ENDPOINT").unwrap();
        let rows: Vec<_> = table.lines().skip(1).take(2).map(str::trim_end).collect();
        assert!(rows[0].starts_with(&long) && rows[1].starts_with("short"), "{rows:?}");
        assert!(rows.iter().all(|row| row.ends_with("  ready")), "{width}: {rows:?}");
        let shown = super::ends::terminal_of(&rig, width, "list").await;
        assert_eq!(shown.out.lines().count(), 3, "{shown:?}");
    }
}
