//! Commands that are told to end leave nothing behind.

use std::time::{Duration, Instant};

use http::StatusCode;
use reqwest_lease::conformance::Fixture as _;
use reqwest_lease::{AcquireRequest, LeaseStore as _, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;

use super::Rig;
use crate::support::origin::{Origin, text};
use crate::support::tinyproxy::Tinyproxy;

async fn send(rig: &Rig, signal: &str, child: &Child) {
    rig.run_other("kill", &["-s", signal, &child.id().unwrap().to_string()]).await;
}

/// Waits until it is so.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let patience = Instant::now() + super::RUNS_WITHIN;
    while !is_so().await {
        assert!(Instant::now() < patience, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn keys(rig: &Rig) -> Vec<String> {
    rig.redis.send("KEYS *").await
}

async fn leases_a_bench(rig: &Rig) -> bool {
    let is_one = |key: &String| key.contains("bench") && key.ends_with(":leases");
    keys(rig).await.iter().any(is_one)
}

#[tokio::test]
async fn a_fetch_that_is_told_to_end_gives_its_endpoint_back() {
    let rig = Rig::new().await;
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let proxy = Tinyproxy::start(None);
    rig.file("proxies.toml", format!("[[endpoint]]\nid = 'gw'\nurl = '{}'\n", proxy.url()));
    rig.good("init --inventory proxies.toml").await;
    // An address that never answers: a listener that nobody accepts from.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let fetch = |url: &str| {
        let mut program = rig.program();
        program.args(["fetch", "--inventory", "proxies.toml", url]);
        program
    };
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let child = fetch(&url).spawn().unwrap();
        until("a lease", async || rig.json("status").await["leased"] == 1).await;
        send(&rig, signal, &child).await;
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{signal}: {output:?}");
        assert_eq!(rig.json("status").await["leased"], 0, "{signal}");
    }
    // The twin: whoever is killed cannot.
    let mut child = fetch(&url).spawn().unwrap();
    until("a lease", async || rig.json("status").await["leased"] == 1).await;
    child.kill().await.unwrap();
    assert_eq!(rig.json("status").await["leased"], 1);
    drop(origin);
}

#[tokio::test]
async fn a_fetch_that_takes_too_long_is_late() {
    let rig = Rig::new().await;
    let proxy = Tinyproxy::start(None);
    rig.file("proxies.toml", format!("[[endpoint]]\nid = 'gw'\nurl = '{}'\n", proxy.url()));
    rig.good("init --inventory proxies.toml").await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let late = rig.words(&format!("fetch --inventory proxies.toml {url} --within 1s")).await;
    assert_eq!(late.code, 7, "{late:?}");
    assert!(late.err.contains("not over in time"), "{late:?}");
}

#[tokio::test]
async fn a_body_that_is_cut_off_leaves_no_file_and_tells_the_endpoint() {
    let rig = Rig::new().await;
    // A proxy that forwards nothing, and answers with part of what it says.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").await;
        }
    });
    rig.file("proxies.toml", format!("[[endpoint]]\nid = 'gw'\nurl = '{url}'\n"));
    rig.good("init --inventory proxies.toml").await;
    let cut = rig.words("fetch --inventory proxies.toml http://192.0.2.1/ --to body").await;
    assert_eq!(cut.code, 1, "{cut:?}");
    assert!(cut.err.contains("endpoint gw: the answer was cut off"), "{cut:?}");
    assert!(!rig.path().join("body").exists());
}

#[tokio::test]
async fn a_bench_that_is_told_to_end_leaves_nothing_behind() {
    let rig = Rig::new().await;
    for signal in ["TERM", "HUP", "QUIT"] {
        let child = rig.program().args(["bench", "--for", "1m"]).spawn().unwrap();
        until("a lease", async || leases_a_bench(&rig).await).await;
        send(&rig, signal, &child).await;
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{signal}");
        assert_eq!(keys(&rig).await, [""; 0], "{signal}");
    }
}

#[tokio::test]
async fn what_a_killed_bench_left_is_removed_by_the_next_one() {
    let rig = Rig::new().await;
    let mut child = rig.program().args(["bench", "--for", "1m"]).spawn().unwrap();
    until("a lease", async || leases_a_bench(&rig).await).await;
    let second = rig.words("bench --for 100ms").await;
    assert_eq!(second.code, 4, "{second:?}");
    assert!(second.err.contains("another bench is running"), "{second:?}");
    child.kill().await.unwrap();
    assert!(keys(&rig).await.iter().any(|key| key.ends_with("{reqwest-lease-bench}:meta")));
    // Standing still for a while proves nothing: it may be somebody's own pool.
    let third = rig.words("bench --for 100ms").await;
    assert_eq!(third.code, 4, "{third:?}");
    assert!(third.err.contains("perhaps of a killed bench"), "{third:?}");
    rig.good("bench --for 100ms --yes").await;
    assert_eq!(keys(&rig).await, [""; 0]);
}

#[tokio::test]
async fn a_bench_beside_workers_asks_first() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    let ask = AcquireRequest::new(rig.redis.pool(), Token::random(), Duration::from_secs(60));
    rig.store().acquire(ask).await.unwrap();
    let asked = rig.words("bench --for 100ms").await;
    assert_eq!(asked.code, 4, "{asked:?}");
    assert!(asked.err.contains("workers use pool conformance"), "{asked:?}");
    rig.good("bench --for 100ms --yes").await;
}

#[tokio::test]
async fn a_drain_that_is_told_to_end_says_what_stays() {
    let rig = Rig::new().await;
    rig.set_up(1).await;
    let ask = AcquireRequest::new(rig.redis.pool(), Token::random(), Duration::from_secs(60));
    rig.store().acquire(ask).await.unwrap();
    let child = rig.program().args(["drain", "e0", "--wait"]).spawn().unwrap();
    until("the order", async || rig.json("list").await[0]["order"] == "drain").await;
    // It listens to signals when it waits, which is after the order.
    let handled = format!("/proc/{}/status", child.id().unwrap());
    until("a handler", async || {
        let status = std::fs::read_to_string(&handled).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 14) != 0
    })
    .await;
    send(&rig, "TERM", &child).await;
    let ended = super::Ended::of(child.wait_with_output().await.unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("the order to drain stays"), "{ended:?}");
    let trap = rig.words("drain e0 --wait 10s").await;
    assert!(trap.code == 4 && trap.err.contains("--wait=10s"), "{trap:?}");
}
