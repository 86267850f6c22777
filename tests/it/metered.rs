//! What goes to the recorder of the `metrics` facade.

mod ends;
mod gauges;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::StatusCode;
use http::header::RETRY_AFTER;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use reqwest_lease::{
    Budget, Budgets, Endpoint, EndpointId, Error, Inventory, LeaseMiddleware, LeaseOptions,
    MemoryStore, Metric, MetricKind, Pool, PoolName, RedisStore, SharedLimits,
};
use reqwest_middleware::ClientWithMiddleware;

use crate::support::client::pool_of;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::{Origin, text};
use crate::support::redis::Server;
use crate::support::{SOON, eventually};

/// A recorder for what happens on this thread.
struct Scraped {
    handle: PrometheusHandle,
    _guard: metrics::LocalRecorderGuard<'static>,
}

impl Scraped {
    fn start() -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &[0.1, 1.0, 10.0])
            .unwrap()
            .build_recorder();
        let handle = recorder.handle();
        // It is there as long as the test is, and so is what it borrows.
        let recorder = Box::leak(Box::new(recorder));
        Self { handle, _guard: metrics::set_default_local_recorder(recorder) }
    }

    /// The value of a series, without `reqwest_lease_`.
    fn value(&self, series: &str) -> Option<f64> {
        let page = self.handle.render();
        let line = page.lines().find_map(|line| {
            line.strip_prefix("reqwest_lease_")?.strip_prefix(series)?.strip_prefix(' ')
        });
        line.map(|value| value.parse().unwrap())
    }

    async fn reaches(&self, series: &str, value: f64) {
        eventually(&format!("{series} {value}\n{}", self.handle.render()), || {
            (self.value(series) == Some(value)).then_some(())
        })
        .await;
    }
}

async fn hello() -> Origin {
    Origin::http(|_| text(StatusCode::OK, "hello")).await
}

fn client(pool: &Pool) -> ClientWithMiddleware {
    LeaseMiddleware::builder(pool.clone()).timeout(SOON).build().unwrap().into_client()
}

async fn fetch(client: &ClientWithMiddleware) {
    let response = client.get("http://site.test/").send().await.unwrap();
    response.bytes().await.unwrap();
}

#[tokio::test]
async fn requests_leases_and_retries_are_counted_and_measured() {
    let scraped = Scraped::start();
    let (gone, proxy) = (FaultProxy::start(Fault::Closes).await, hello().await);
    drop(gone.url());
    // Nothing listens on port 1.
    let pool = pool_of(&["http://127.0.0.1:1".to_owned(), proxy.url("")]).await;
    let client = client(&pool);
    for _ in 0..3 {
        fetch(&client).await;
    }
    let counts = pool.counts();
    let of = |series: &str| scraped.value(series).unwrap_or_else(|| panic!("no {series}"));
    assert_eq!(of(r#"grants_total{pool="test"}"#), counts.grants as f64);
    assert_eq!(of(r#"releases_total{pool="test",outcome="success"}"#), 3.0);
    assert_eq!(of(r#"releases_total{pool="test",outcome="proxy_unreachable"}"#), 1.0);
    assert_eq!((counts.grants, counts.releases, counts.retries), (4, 4, 1));
    assert_eq!(of(r#"retries_total{pool="test",outcome="proxy_unreachable"}"#), 1.0);
    assert_eq!(of(r#"lease_held_seconds_count{pool="test",outcome="success"}"#), 3.0);
    assert_eq!(of(r#"request_seconds_count{pool="test",outcome="success"}"#), 3.0);
    assert_eq!(of(r#"lease_wait_seconds_count{pool="test"}"#), 3.0);
    assert_eq!(of(r#"budget_wait_seconds_count{pool="test"}"#), 3.0);
    assert_eq!(of(r#"expirations_total{pool="test"}"#), 0.0, "there from the beginning");
}

#[tokio::test]
async fn requests_that_come_to_no_response_are_told_by_why() {
    let scraped = Scraped::start();
    let proxy = FaultProxy::start(Fault::Stalls).await;
    let pool = pool_of(&[proxy.url()]).await;
    let client = client(&pool);
    let hangs = client.get("http://site.test/").send();
    assert!(tokio::time::timeout(Duration::from_millis(50), hangs).await.is_err());
    scraped.reaches(r#"request_seconds_count{pool="test",outcome="cancelled"}"#, 1.0).await;

    let _held = pool.hold().await.unwrap();
    let wait = Duration::from_millis(20);
    let request =
        client.get("http://site.test/").with_extension(LeaseOptions::new().max_wait(wait));
    let error = request.send().await.unwrap_err();
    let error = Error::find_in(&error).unwrap();
    assert_eq!(error.kind().as_str(), "pool_exhausted");
    scraped.reaches(r#"requests_failed_total{pool="test",code="pool_exhausted"}"#, 1.0).await;
    let waited = scraped.value(r#"lease_wait_seconds_sum{pool="test"}"#).unwrap();
    assert!(waited >= wait.as_secs_f64(), "{waited}");

    client.get("unix://nowhere/").send().await.unwrap_err();
    client.get("http://10.0.0.1/").version(http::Version::HTTP_3).send().await.unwrap_err();
    scraped.reaches(r#"requests_failed_total{pool="test",code="unsupported_request"}"#, 2.0).await;
    assert_eq!(pool.counts().requests_failed, 3);
}

#[tokio::test]
async fn errors_of_the_store_are_told_by_code() {
    let scraped = Scraped::start();
    let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), "http://127.0.0.1:1", None);
    let inventory = Inventory::from_endpoints([endpoint.unwrap()]).unwrap();
    let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory)
        .store(MemoryStore::new())
        .build()
        .await
        .unwrap();
    pool.hold().await.unwrap_err();
    pool.status().await.unwrap_err();
    scraped.reaches(r#"store_errors_total{pool="vn",code="pool_uninitialised"}"#, 2.0).await;
    assert_eq!(pool.counts().store_errors, 2);
}

#[tokio::test]
async fn pauses_and_refusals_of_budgets_are_counted() {
    let scraped = Scraped::start();
    let proxy = Origin::http(|_| {
        let mut answer = text(StatusCode::TOO_MANY_REQUESTS, "");
        answer.headers_mut().insert(RETRY_AFTER, "3000".parse().unwrap());
        answer
    })
    .await;
    let pool = pool_of(&[proxy.url("")]).await;
    let budgets = Budgets::builder().default(Budget::per_second(100)).build().unwrap();
    let client = LeaseMiddleware::builder(pool).budgets(budgets).build().unwrap().into_client();
    fetch(&client).await;
    client.get("http://site.test/").send().await.unwrap_err();
    assert_eq!(scraped.value("budget_pauses_total"), Some(1.0));
    assert_eq!(scraped.value(r#"budget_refusals_total{reason="too_long"}"#), Some(1.0));
    let code = r#"requests_failed_total{pool="test",code="budget_exceeded"}"#;
    assert_eq!(scraped.value(code), Some(1.0));
}

#[tokio::test]
async fn a_store_that_shared_budgets_lack_is_told() {
    let scraped = Scraped::start();
    let (proxy, server) = (hello().await, Server::start(&[]));
    let pool = pool_of(&[proxy.url("")]).await;
    let store = RedisStore::connect(server.url()).await.unwrap();
    let limits = SharedLimits::new(store.connection());
    let limit = |limits: SharedLimits| {
        let budgets = Budgets::builder().shared(limits).default(Budget::per_second(100));
        let builder = LeaseMiddleware::builder(pool.clone()).budgets(budgets.build().unwrap());
        builder.build().unwrap().into_client()
    };
    fetch(&limit(limits.clone())).await;
    let errors = r#"budget_store_errors_total{code="store_unavailable"}"#;
    assert_eq!((scraped.value("budget_fallbacks_total"), scraped.value(errors)), (Some(0.0), None));
    drop(server);
    limit(limits.clone()).get("http://site.test/").send().await.unwrap_err();
    assert_eq!(scraped.value(errors), Some(limits.counts().failures as f64));
    assert!(limits.counts().failures > 0);
    fetch(&limit(limits.clone().fallback_local(1.0))).await;
    assert_eq!(scraped.value("budget_fallbacks_total"), Some(1.0));
    assert_eq!(limits.counts().fallbacks, 1);
}

/// As it happens when the pool is built before the application's exporter is.
#[tokio::test]
async fn a_recorder_that_comes_late_is_told_too() {
    let pool = pool_of(&["http://127.0.0.1:1".to_owned()]).await;
    pool.hold().await.unwrap();
    let scraped = Scraped::start();
    pool.hold().await.unwrap();
    assert_eq!(scraped.value(r#"grants_total{pool="test"}"#), Some(1.0));
    assert_eq!(pool.counts().grants, 2);
}

#[tokio::test]
async fn every_series_is_in_the_table_with_its_labels_and_help() {
    let scraped = Scraped::start();
    let (proxy, canary) = (hello().await, "c4n4ry");
    let endpoint =
        Endpoint::new(EndpointId::new("e-c4n4ry").unwrap(), &proxy.url(""), Some((canary, canary)));
    let inventory = Inventory::from_endpoints([endpoint.unwrap()]).unwrap();
    let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory)
        .gauges_every(Duration::from_millis(20))
        .build()
        .await
        .unwrap();
    let client = client(&pool);
    let response = client.get("http://c4n4ry.test/c4n4ry").send().await.unwrap();
    response.bytes().await.unwrap();
    scraped.reaches(r#"endpoints_ready{pool="vn"}"#, 1.0).await;

    let page = scraped.handle.render();
    assert!(!page.contains(canary), "{page}");
    let table: BTreeMap<_, _> = Metric::ALL.iter().map(|metric| (metric.name(), metric)).collect();
    let mut met = BTreeSet::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert_eq!(help, table[name].help());
            met.insert(name);
        } else if !line.is_empty() && !line.starts_with('#') {
            let (metric, labels) = series(line, &table);
            let expected: BTreeSet<_> = metric.labels().iter().copied().collect();
            assert_eq!(labels, expected, "{line}");
        }
    }
    for metric in Metric::ALL {
        let told = met.contains(metric.name());
        // What has a label beside the pool is there once there is something to tell.
        let always = metric.labels() == ["pool"];
        assert!(told || !always, "{metric} has no help in\n{page}");
    }
}

/// A line's metric and labels.
fn series<'a>(
    line: &'a str,
    table: &BTreeMap<&str, &'a Metric>,
) -> (&'a Metric, BTreeSet<&'a str>) {
    let (series, _) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let plain = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    let is_histogram = |metric: &&&Metric| metric.kind() == MetricKind::Histogram;
    let metric = plain.and_then(|plain| table.get(plain)).filter(is_histogram);
    let metric = metric.or_else(|| table.get(name)).unwrap_or_else(|| panic!("{name}"));
    let labels = labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty());
    let labels = labels.map(|label| label.split_once('=').unwrap().0);
    (metric, labels.filter(|label| *label != "le").collect())
}
