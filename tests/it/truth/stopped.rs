//! A process that is stopped past its deadline touches nothing when it goes on.

mod worker;

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::stream;
use reqwest_lease::{
    AcquireReply, AcquireRequest, Endpoint, Inventory, Kind, LeaseMiddleware, LeaseStore, Member,
    Order, Pool, PoolConfig, RedisStore, RenewReply, RenewRequest, Token,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use self::worker::{ALL, PROXY, SITE, THREADS, TRUSTING, TTL, URL, WORK, Work};
use super::server::Server;
use super::witness::Witness;
use super::{APPEND_ONLY, aof, connect, id, order, pool_name, prefix};
use crate::support::SOON;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_slept_past_its_deadline_touches_nothing() {
    let scenes = ALL.into_iter().flat_map(|work| [(work, 1), (work, 2)]);
    let scenes = scenes.map(|(work, threads)| async move {
        let after = sleep_through(work, threads, false).await;
        assert_eq!(after.said, Kind::LeaseExpired.to_string(), "{work:?} on {threads}");
        assert_eq!(after.bytes, 0, "{work:?} on {threads}");
        assert_eq!(after.connections, 0, "{work:?} on {threads}");
        assert!(after.pool_is_as_before, "{work:?} on {threads}");
    });
    futures_util::future::join_all(scenes).await;
}

/// The twin: without the trust deadline each of them goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_trusts_for_too_long_goes_on() {
    let scenes = ALL.map(|work| async move {
        let after = sleep_through(work, 2, true).await;
        assert_eq!(after.said, "went on", "{work:?}");
        assert_eq!(after.bytes > 0, matches!(work, Work::Held | Work::Upload), "{work:?}");
    });
    futures_util::future::join_all(scenes).await;
}

/// A site may answer before it has all of a request. What is left of that is not sent either.
#[tokio::test]
async fn an_upload_ends_with_its_lease() {
    let witness = Witness::start().await;
    let inventory =
        Inventory::from_endpoints([Endpoint::new(id(0), &witness.url(), None).unwrap()]);
    let pool = Pool::builder(pool_name(), inventory.unwrap()).build().await.unwrap();
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let (sender, body) = pieces();
    sender.send("first").unwrap();
    let request = client.put(SITE).body(reqwest::Body::wrap_stream(body)).send();
    let response = request.await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), "x");
    assert_eq!(pool.status().await.unwrap().leased, 0);
    let before = witness.so_far();
    // Nobody may be there to take it any more.
    let _ = sender.send("second");
    witness.is_left_alone().await;
    assert_eq!(witness.so_far(), before);
}

type Pieces = stream::BoxStream<'static, Result<&'static str, std::io::Error>>;

/// A body whose pieces the test sends.
fn pieces() -> (tokio::sync::mpsc::UnboundedSender<&'static str>, Pieces) {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (Ok(piece), receiver))
    });
    (sender, Box::pin(pieces))
}

/// What came after the worker was woken.
struct After {
    said: String,
    /// At the proxy.
    bytes: usize,
    connections: usize,
    pool_is_as_before: bool,
}

/// Has a worker stopped in the middle of its work for twice its ttl, while its endpoint is leased
/// to another.
async fn sleep_through(work: Work, threads: usize, trusting: bool) -> After {
    let (server, witness) = (Server::start(APPEND_ONLY), Witness::start().await);
    let store = connect(&server.url()).await;
    order(&store, Order::Init(PoolConfig::default().into())).await;
    order(&store, Order::Add(vec![Member::new(id(0))])).await;
    let (mut child, mut said) = spawn(&server, &witness, work, threads, trusting);
    hears(&mut said, "under way").await;

    signal(&child, "STOP");
    let woken_at = Instant::now() + TTL * 2;
    child.stdin.take().unwrap().write_all(b"go\n").await.unwrap();
    let other = other_lease(&store).await;
    tokio::time::sleep_until(woken_at.into()).await;
    let before = (everything(&server), aof::read(server.directory()).len());
    let (bytes, connections) = witness.so_far();
    signal(&child, "CONT");

    let word = hears(&mut said, "woken: ").await;
    assert!(timeout(SOON, child.wait()).await.unwrap().unwrap().success());
    witness.is_left_alone().await;
    let after = (everything(&server), aof::read(server.directory()).len());
    let still = store.renew(RenewRequest::new(pool_name(), other, TTL)).await.unwrap();
    assert!(matches!(still, RenewReply::Renewed(_)), "the other's lease is gone");
    let (all_bytes, all_connections) = witness.so_far();
    After {
        said: word,
        bytes: all_bytes - bytes,
        connections: all_connections - connections,
        pool_is_as_before: before == after,
    }
}

/// Takes the endpoint as soon as it is free, for a long time.
async fn other_lease(store: &RedisStore) -> Token {
    let token = Token::random();
    let request = AcquireRequest::new(pool_name(), token, Duration::from_secs(60));
    let begun = Instant::now();
    loop {
        match store.acquire(request.clone()).await.unwrap() {
            AcquireReply::Granted(_) => return token,
            AcquireReply::Empty { next, .. } => sleep(next.unwrap()).await,
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < SOON);
    }
}

/// All keys of the pool with what they hold.
fn everything(server: &Server) -> BTreeMap<String, Vec<u8>> {
    let keys: Vec<String> = server.ask(&format!("KEYS {}*", prefix()));
    keys.into_iter().map(|key| (key.clone(), server.ask(&format!("DUMP {key}")))).collect()
}

fn spawn(
    server: &Server,
    witness: &Witness,
    work: Work,
    threads: usize,
    trusting: bool,
) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "truth::stopped::worker::a_worker_tells_that_its_lease_ran_out",
            "--nocapture",
        ])
        .env(URL, server.url())
        .env(PROXY, witness.url())
        .env(WORK, format!("{work:?}"))
        .env(THREADS, threads.to_string())
        .env(TRUSTING, if trusting { "1" } else { "" })
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, said)
}

/// Waits until the worker says this, and returns the rest of the line.
async fn hears(said: &mut Lines<BufReader<ChildStdout>>, words: &str) -> String {
    let waiting = async {
        loop {
            let line = said.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended without {words:?}"));
            if let Some(at) = line.find(words) {
                return line[at + words.len()..].to_owned();
            }
        }
    };
    timeout(SOON, waiting).await.unwrap()
}

fn signal(child: &Child, name: &str) {
    let id = child.id().unwrap();
    let kill = std::process::Command::new("kill").args(["-s", name, &id.to_string()]).status();
    assert!(kill.unwrap().success());
    let begun = Instant::now();
    while name == "STOP" && !is_stopped(id) {
        assert!(begun.elapsed() < SOON, "it does not stop");
        std::thread::yield_now();
    }
}

fn is_stopped(id: u32) -> bool {
    let mut threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    threads.all(|thread| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"))
    })
}
