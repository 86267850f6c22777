//! A request's span: what it is told, and until when it lasts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use reqwest_lease::{
    Endpoint, EndpointId, Inventory, LeaseMiddleware, LeaseOptions, Order, Pool, PoolName,
};
use reqwest_middleware::ClientWithMiddleware;
use tracing::Instrument as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::support::client::pool_of;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::{Origin, text};
use crate::support::{SOON, eventually};

/// Keeps what is logged on this thread, each span at its end.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    fn start(&self, level: LevelFilter) -> tracing::subscriber::DefaultGuard {
        let logged = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(level)
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(move || logged.clone());
        tracing::subscriber::set_default(subscriber.finish())
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The fields of requests whose spans have ended.
    fn closed(&self) -> Vec<String> {
        let closed = |line: &str| {
            let (_, fields) = line.split_once("lease.request{")?;
            line.contains(" close ").then(|| fields.split_once('}').unwrap().0.to_owned())
        };
        self.text().lines().filter_map(closed).collect()
    }
}

impl std::io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn client(pool: &Pool) -> ClientWithMiddleware {
    LeaseMiddleware::builder(pool.clone()).timeout(SOON).build().unwrap().into_client()
}

/// A client of this pool, after another one has made a request: a place that logs for the first
/// time while a log begins may be missed by it.
async fn warm_client(pool: &Pool) -> ClientWithMiddleware {
    let other = pool_of(&["http://127.0.0.1:1".to_owned()]).await;
    client(&other).get("http://site.test/").send().await.unwrap_err();
    client(pool)
}

async fn hello() -> Origin {
    Origin::http(|_| text(StatusCode::OK, "hello")).await
}

/// A field's value, the last one if it was recorded again.
fn field<'a>(fields: &'a str, name: &str) -> &'a str {
    let of = |field: &'a str| field.strip_prefix(name)?.strip_prefix('=');
    let found = fields.split(' ').filter_map(of).next_back();
    found.unwrap_or_else(|| panic!("no {name} in {fields}")).trim_matches('"')
}

#[tokio::test]
async fn a_span_lasts_until_the_body_has_been_read_and_says_what_came_of_it() {
    let (logged, proxy) = (Logged::default(), hello().await);
    // Nothing listens on port 1.
    let pool = pool_of(&["http://127.0.0.1:1".to_owned(), proxy.url("")]).await;
    let client = warm_client(&pool).await;
    let _guard = logged.start(LevelFilter::DEBUG);
    let response = client.get("http://site.test/page").send().await.unwrap();
    assert_eq!(logged.closed(), [""; 0], "the body has not been read");
    response.bytes().await.unwrap();
    let closed = logged.closed();
    let [fields] = closed.as_slice() else { panic!("{}", logged.text()) };
    for (name, value) in [
        ("pool", "test"),
        ("site", "site.test"),
        ("endpoint", "b"),
        ("attempt", "2"),
        ("hops", "0"),
    ] {
        assert_eq!(field(fields, name), value, "{fields}");
    }
    assert_eq!(field(fields, "outcome"), "success");
    for wait in ["lease_wait_ms", "budget_wait_ms"] {
        assert!(field(fields, wait).parse::<f64>().unwrap() < 10_000.0);
    }
    for name in ["endpoint", "attempt", "lease_wait_ms", "budget_wait_ms", "hops", "outcome"] {
        let times = fields.matches(&format!("{name}=")).count();
        assert_eq!(times, 1, "OpenTelemetry would have {name} {times} times: {fields}");
    }
    assert!(logged.text().contains("endpoint=a"), "an event tells of the first attempt");
    assert!(!logged.text().contains("/page"), "{}", logged.text());
}

#[tokio::test]
async fn a_span_tells_an_error_by_its_code_and_a_dropped_request_as_cancelled() {
    let (logged, proxy) = (Logged::default(), FaultProxy::start(Fault::Stalls).await);
    let pool = pool_of(&[proxy.url()]).await;
    let client = warm_client(&pool).await;
    let _guard = logged.start(LevelFilter::DEBUG);
    let hangs = client.get("http://site.test/").send();
    assert!(tokio::time::timeout(Duration::from_millis(50), hangs).await.is_err());
    pool.shutdown().await;
    client.get("http://site.test/").send().await.unwrap_err();
    let closed = eventually("two spans", || {
        let closed = logged.closed();
        (closed.len() == 2).then_some(closed)
    })
    .await;
    assert_eq!(field(&closed[0], "outcome"), "cancelled");
    assert_eq!(field(&closed[1], "code"), "pool_closed");
}

#[tokio::test]
async fn a_span_is_the_child_of_the_one_that_the_request_is_made_in() {
    let (logged, proxy) = (Logged::default(), hello().await);
    let pool = pool_of(&[proxy.url("")]).await;
    let client = warm_client(&pool).await;
    let _guard = logged.start(LevelFilter::DEBUG);
    let request = async move { client.get("http://site.test/").send().await.unwrap() };
    let sent = tokio::spawn(request.instrument(tracing::info_span!("page")));
    let response = sent.await.unwrap();
    let read = async move { drop(response.bytes().await.unwrap()) };
    tokio::spawn(read.instrument(tracing::info_span!("reader"))).await.unwrap();
    let text = logged.text();
    let closed: Vec<_> = text.lines().filter(|line| line.contains(" close ")).collect();
    assert!(closed.iter().any(|line| line.contains(" page:lease.request{")), "{closed:#?}");
    assert!(!text.contains("reader:lease.request"), "{closed:#?}");
}

#[tokio::test]
async fn that_a_pool_grants_nothing_is_told_once_and_its_end_too() {
    let proxy = hello().await;
    let pool = pool_of(&[proxy.url("")]).await;
    let client = warm_client(&pool).await;
    let fetch = async || client.get("http://site.test/").send().await;
    let wait = LeaseOptions::new().max_wait(Duration::from_millis(10));
    for pauses in [true, false] {
        let logged = Logged::default();
        let _guard = logged.start(LevelFilter::INFO);
        for _ in 0..2 {
            if pauses {
                pool.administer(Order::Pause).await.unwrap();
            }
            for _ in 0..3 {
                let request = client.get("http://site.test/").with_extension(wait.clone());
                assert_eq!(request.send().await.is_err(), pauses);
            }
            pool.administer(Order::Resume).await.unwrap();
            fetch().await.unwrap();
            fetch().await.unwrap();
        }
        let text = logged.text();
        let times = ["the pool grants nothing", "the pool grants again"]
            .map(|what| text.matches(what).count());
        assert_eq!(times, if pauses { [2, 2] } else { [0, 0] }, "{text}");
        assert_eq!(text.contains("reason=\"paused\""), pauses, "{text}");
    }
}

#[tokio::test]
async fn a_quarantine_is_told_at_every_level_and_once() {
    let proxy = FaultProxy::start(Fault::RefusesCredentials).await;
    let pool = pool_of(&[proxy.url()]).await;
    let client = warm_client(&pool).await;
    for (level, events) in [(LevelFilter::WARN, 1), (LevelFilter::ERROR, 0)] {
        let logged = Logged::default();
        let _guard = logged.start(level);
        client.get("https://site.test/").send().await.unwrap_err();
        let text = logged.text();
        assert_eq!(
            text.lines().filter(|line| line.contains("quarantine")).count(),
            events,
            "{text}"
        );
        assert_eq!(text.contains("endpoint=a"), events > 0, "{text}");
        pool.administer(Order::Enable(vec![EndpointId::new("a").unwrap()])).await.unwrap();
    }
}

#[tokio::test]
async fn neither_spans_nor_events_hold_a_secret_and_above_debug_there_are_none() {
    let proxy = hello().await;
    let url = proxy.url("");
    let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), &url, Some(("u", "c4n4ry")));
    let inventory = Inventory::from_endpoints([endpoint.unwrap()]).unwrap();
    let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory).build().await.unwrap();
    let client = warm_client(&pool).await;
    for (level, spans) in [(LevelFilter::DEBUG, 1), (LevelFilter::INFO, 0)] {
        let logged = Logged::default();
        let _guard = logged.start(level);
        client
            .get("http://u:c4n4ry@site.test/c4n4ry?c4n4ry")
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        assert_eq!(logged.closed().len(), spans, "{}", logged.text());
        assert!(!logged.text().contains("c4n4ry"), "{}", logged.text());
    }
}
