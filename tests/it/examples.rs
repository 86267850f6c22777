//! The examples, run as a reader would run them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use reqwest_lease::{LeaseStore, PoolName, RedisStore};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpSocket;
use tokio::process::Command;

use crate::local::site::PAGES;
use crate::support::cargo;
use crate::support::origin::{Origin, text};
use crate::support::redis::Server;
use crate::support::tinyproxy::Tinyproxy;
use crate::support::{direct_connections, eventually};

/// Builds an example unless it is there, and runs it.
async fn run(example: &str, arguments: &[&str]) -> Output {
    let run = Command::new(build(example).await)
        .args(arguments)
        .envs(NOWHERE.map(|name| (name, "http://127.0.0.1:9")))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    tokio::time::timeout(RUNS_WITHIN, run).await.expect("an end in time").unwrap()
}

/// The path of an example, from what cargo says about the build.
async fn build(example: &str) -> String {
    let mut cargo = Command::from(cargo());
    let build = cargo
        .args(["build", "--quiet", "--locked", "--all-features", "--message-format=json"])
        .args(["--example", example])
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BUILDS_WITHIN, build).await.expect("an end").unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let messages = stdout(&output);
    let mut messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.find_map(|message| Some(message["executable"].as_str()?.to_owned())).unwrap()
}

/// The longest that an example may take, on a machine that does other things too.
const RUNS_WITHIN: Duration = Duration::from_secs(60);

/// The longest that cargo may take, when it builds all dependencies.
const BUILDS_WITHIN: Duration = Duration::from_secs(900);

/// Whoever goes by the environment gets nowhere.
const NOWHERE: [&str; 3] = ["http_proxy", "https_proxy", "all_proxy"];

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The addresses in the lines of pages with this status, as often as they are there.
fn pages(output: &Output, status: &str) -> Vec<String> {
    let lines = stdout(output);
    let words = lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.first() == Some(&status)).map(|words| words[4].to_owned()).collect()
}

/// The cells of the summary's row for this name.
fn row(output: &Output, name: &str) -> Vec<String> {
    let lines = stdout(output);
    let line = lines.lines().rev().find(|line| line.split_whitespace().next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no row for {name} in\n{lines}"));
    line.split_whitespace().map(str::to_owned).collect()
}

fn inventory(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("inventory.toml");
    std::fs::write(&file, text).unwrap();
    (directory, file)
}

fn printed(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[tokio::test]
async fn crawl_fetches_the_whole_local_site_although_a_proxy_dies() {
    let output = run("crawl", &[]).await;
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{out}\n{err}");
    assert_eq!(err, "", "no bar where there is no terminal");

    let fetched = pages(&output, "200");
    let distinct: BTreeSet<_> = fetched.iter().collect();
    assert_eq!(fetched.len(), distinct.len(), "each page once\n{out}");
    // The old address and robots.txt count too.
    assert_eq!(distinct.len(), PAGES + 2, "{out}");
    assert!(pages(&output, "404").concat().ends_with("/missing.html"), "{out}");
    assert!(pages(&output, "robots").concat().ends_with("/private/diary.html"), "{out}");
    assert!(!out.contains("login.html") && !out.contains("elsewhere.test"), "{out}");

    let mortal = row(&output, "mortal");
    assert_ne!(mortal[1], "0", "it carried some\n{out}");
    assert_ne!(mortal[2], "0", "and failed on some\n{out}");
    assert!(mortal.contains(&"cooling".to_owned()), "{out}");
    assert!(row(&output, "open").contains(&"ready".to_owned()), "{out}");
    let requests = &row(&output, "127.0.0.1")[1];
    let closing = format!("\n{requests} requests reached the site, 0 of them direct\n");
    assert!(out.ends_with(&closing), "the sums agree with the site\n{out}");
}

#[tokio::test]
async fn crawl_goes_through_real_proxies_and_no_other_way() {
    let origin = Origin::files(PathBuf::from(PAGES_OF_DOCUTILS)).await;
    let (open, locked) = (Tinyproxy::start(None), Tinyproxy::start(Some(("worker", "pa55word"))));
    let (directory, file) = inventory(&format!(
        "[[endpoint]]\nid = \"open\"\nurl = \"{}\"\n\
         [[endpoint]]\nid = \"locked\"\nurl = \"{}\"\nusername = \"worker\"\n\
         password = {{ file = \"secret\" }}\n",
        open.url(),
        locked.url()
    ));
    std::fs::write(directory.path().join("secret"), "pa55word\n").unwrap();

    let start = origin.url("/docs/index.html");
    let arguments = ["--inventory", printed(&file), "--per-second", "200", &start];
    let output = run("crawl", &arguments).await;
    let out = stdout(&output);
    assert!(output.status.success(), "{out}\n{}", stderr(&output));
    assert!(pages(&output, "200").len() >= 40, "{out}");
    assert!(!out.contains("pa55word") && !stderr(&output).contains("pa55word"));

    assert!(direct_connections(&origin, &[&open, &locked]).is_empty());
    let url = |path: &str| ("GET".to_owned(), origin.url(path));
    let mut reached: Vec<_> = origin.visits().iter().map(|visit| url(&visit.path)).collect();
    reached.sort();
    let asked = || [open.requests(), locked.requests()];
    eventually("every request in a proxy's log", || {
        let mut logged = asked().concat();
        logged.sort();
        (logged == reached).then_some(())
    })
    .await;
    assert!(asked().iter().all(|requests| requests.len() > 10), "both have worked");
}

/// Debian's docutils-doc: some sixty pages with relative links, in a tree.
const PAGES_OF_DOCUTILS: &str = "/usr/share/doc/docutils-doc";

#[tokio::test]
async fn crawl_without_a_reachable_proxy_fetches_nothing_and_says_why() {
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    // A port that is taken, so that nobody else gets it, and not listened on.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = taken.local_addr().unwrap();
    let (_directory, file) =
        inventory(&format!("[[endpoint]]\nid = \"gone\"\nurl = \"http://{closed}\"\n"));
    let output = run("crawl", &["--inventory", printed(&file), &origin.url("/")]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let err = stderr(&output);
    assert!(err.starts_with("crawl: no page was fetched: "), "{err}");
    assert!(err.contains("proxy_unreachable"), "{err}");
    assert!(origin.visits().is_empty());
}

#[tokio::test]
async fn crawl_with_a_wrong_password_fetches_nothing_and_keeps_it_to_itself() {
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let proxy = Tinyproxy::start(Some(("worker", "right")));
    let (directory, file) = inventory(&format!(
        "[[endpoint]]\nid = \"locked\"\nurl = \"{}\"\nusername = \"worker\"\n\
         password = {{ file = \"secret\" }}\n",
        proxy.url()
    ));
    std::fs::write(directory.path().join("secret"), "wr0ng").unwrap();
    let output = run("crawl", &["--inventory", printed(&file), &origin.url("/")]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(!stderr(&output).contains("wr0ng") && !stdout(&output).contains("wr0ng"));
    assert!(origin.visits().is_empty());
}

#[tokio::test]
async fn crawl_ends_well_when_its_reader_has_seen_enough() {
    let mut crawl = Command::new(build("crawl").await)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut first = [0; 6];
    crawl.stdout.take().unwrap().read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"STATUS");
    let output = tokio::time::timeout(RUNS_WITHIN, crawl.wait_with_output()).await;
    let output = output.expect("an end in time").unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}

#[tokio::test]
async fn crawl_refuses_what_it_cannot_do() {
    let (_directory, broken) = inventory("[[endpoint]]\nid = \"a\"\nurl = \"ftp://a.test:1\"\n");
    let broken = printed(&broken);
    let page = "http://127.0.0.1:9/";
    for (arguments, code, said) in [
        (&[page][..], 2, "--inventory <FILE>"),
        (&["--inventory", broken], 2, "<URL>"),
        (&["--per-second", "0"], 2, "--per-second"),
        (&["--inventory", broken, "gopher://a.test/"], 2, "gopher is not http or https"),
        (&["--inventory", "/nonexistent.toml", page], 1, "crawl: "),
        (&["--inventory", broken, page], 1, "crawl: "),
    ] {
        let output = run("crawl", arguments).await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[tokio::test]
async fn quickstart_says_which_way_it_went() {
    let output = run("quickstart", &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("200 OK through vn-a01\n"), "{}", stdout(&output));
}

#[tokio::test]
async fn retry_stack_gets_another_endpoint() {
    let output = run("retry_stack", &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "200 OK through b-steady\n");
}

#[tokio::test]
async fn two_crawls_share_a_pool_in_redis() {
    let server = Server::start(&[]);
    let url = server.url();
    let arguments = ["--redis", &url, "--pool", "shared"];
    for output in join_all([run("crawl", &arguments), run("crawl", &arguments)]).await {
        let (out, err) = (stdout(&output), stderr(&output));
        assert!(output.status.success(), "{out}\n{err}");
        assert!(out.ends_with("requests reached the site, 0 of them direct\n"), "{out}");
        // The other crawl may hold it at this moment.
        let open = row(&output, "open");
        assert!(open.iter().any(|cell| cell == "ready" || cell == "leased"), "{out}");
    }
    let store = RedisStore::connect(url).await.unwrap();
    let pool = PoolName::new("shared").unwrap();
    assert_eq!(store.check(&pool).await.unwrap(), []);
    let status = store.status(&pool).await.unwrap();
    assert_eq!((status.members(), status.leased), (3, 0));
    // Both crawls were granted leases by the one pool.
    assert!(status.fence.0 > PAGES as u64 * 2, "{status:?}");
}

#[tokio::test]
async fn a_redis_that_is_not_there_is_told_without_its_password() {
    let output = run("crawl", &["--redis", "redis://user:canary@127.0.0.1:9"]).await;
    assert!(!output.status.success());
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(err.contains("the store cannot be reached"), "{err}");
    assert!(!(out + &err).contains("canary"));
}

#[tokio::test]
async fn a_pool_of_four_workers_heals_when_one_is_killed() {
    let output = run("workers", &[]).await;
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("worker 2 killed while it held "), "{out}");
    assert!(out.contains("\n84 of 84 pages fetched\n"), "{out}");
    let last = out.lines().rfind(|line| line.starts_with("  after ")).unwrap();
    assert_eq!(last.matches(" ready").count(), 2, "{out}");
    assert!(out.ends_with("the pool's state is sound\n"), "{out}");
}

#[cfg(feature = "metrics")]
#[tokio::test]
async fn metrics_are_served_as_prometheus_reads_them() {
    let output = run("metrics", &[]).await;
    let out = stdout(&output);
    assert!(output.status.success(), "{out}\n{}", stderr(&output));
    for line in [
        "# TYPE reqwest_lease_request_seconds histogram",
        "# TYPE reqwest_lease_grants_total counter",
        r#"reqwest_lease_retries_total{pool="vn",outcome="proxy_unreachable"} 1"#,
        r#"reqwest_lease_endpoints_ready{pool="vn"} 2"#,
    ] {
        assert!(out.lines().any(|said| said == line), "no {line} in\n{out}");
    }
}

#[tokio::test]
async fn otel_prints_a_request_as_a_child_of_the_callers_span() {
    let output = run("otel", &[]).await;
    let out = stdout(&output);
    assert!(output.status.success(), "{out}\n{}", stderr(&output));
    let values = |span: &str| {
        let (key, value) = span.trim().trim_start_matches("->").split_once(':')?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    // Of two lines with one key, the scope's name and the span's, the second one counts.
    let spans = out.split("Span #").map(|span| span.lines().filter_map(values));
    let spans: Vec<BTreeMap<_, _>> = spans.map(Iterator::collect).collect();
    let of = |name: &str, key: &str| {
        let span = spans.iter().find(|span| span.get("Name").is_some_and(|named| named == name));
        span.unwrap_or_else(|| panic!("no {name} in\n{out}")).get(key).cloned()
    };
    assert_eq!(of("lease.request", "ParentSpanId"), of("page", "SpanId"), "{out}");
    for field in ["pool", "site", "endpoint", "attempt", "lease_wait_ms", "outcome"] {
        assert!(of("lease.request", field).is_some(), "no {field} in\n{out}");
    }
}
