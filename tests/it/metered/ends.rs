//! Every request is counted and measured once, in each way that it can end.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use reqwest_lease::{
    Budget, Budgets, Endpoint, EndpointId, Inventory, LeaseBuilder, LeaseMiddleware, LeaseOptions,
    Mode, Pool, PoolConfig, PoolName, RedisStore,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::time::timeout;

use super::Scraped;
use crate::support::client::pool_of;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::{Origin, text};
use crate::support::redis::{Redis, Server};
use crate::support::{SOON, eventually};

const SHORT: Duration = Duration::from_millis(60);
const URL: &str = "http://site.test/page";

/// Nothing listens on port 1.
const NOWHERE: &str = "http://127.0.0.1:1";

/// What one request has left in the metrics.
#[derive(Debug, Default, PartialEq)]
struct Account {
    /// How often its time was measured, with which outcome.
    ended: Vec<(String, u64)>,
    /// Errors of ours.
    failed: Vec<(String, u64)>,
    retries: u64,
    /// How often its waits were measured: for leases, for budgets.
    waits: [u64; 2],
}

impl Account {
    fn of(scraped: &Scraped) -> Self {
        let of = |metric: &str, label: &str| {
            let page = scraped.handle.render();
            let values = page.lines().filter_map(|line| {
                let labels = line.strip_prefix("reqwest_lease_")?.strip_prefix(metric)?;
                let (labels, value) = labels.strip_prefix('{')?.rsplit_once("} ")?;
                let (_, word) = labels.split_once(&format!("{label}=\""))?;
                Some((word.trim_end_matches('"').to_owned(), value.parse().unwrap()))
            });
            let mut values: Vec<_> = values.filter(|(_, value)| *value > 0).collect();
            values.sort();
            values
        };
        let sum = |values: Vec<(String, u64)>| values.into_iter().map(|(_, value)| value).sum();
        Self {
            ended: of("request_seconds_count", "outcome"),
            failed: of("requests_failed_total", "code"),
            retries: sum(of("retries_total", "outcome")),
            waits: ["lease_wait_seconds_count", "budget_wait_seconds_count"]
                .map(|metric| sum(of(metric, "pool"))),
        }
    }
}

/// How one request goes, and what is to be told of it.
struct End {
    outcome: Option<&'static str>,
    code: Option<&'static str>,
    retries: u64,
}

impl End {
    fn outcome(outcome: &'static str) -> Self {
        Self { outcome: Some(outcome), code: None, retries: 0 }
    }

    fn code(code: &'static str) -> Self {
        Self { outcome: None, code: Some(code), retries: 0 }
    }

    fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    fn with_retries(self, retries: u64) -> Self {
        Self { retries, ..self }
    }

    /// Lets one request end, and looks at the books.
    async fn told_of<T>(self, pool: &Pool, request: impl Future<Output = T>) -> Scraped {
        let scraped = Scraped::start();
        let before = pool.counts();
        request.await;
        let once = |word: Option<&str>| word.map(|word| (word.to_owned(), 1)).into_iter().collect();
        let expected = Account {
            ended: once(self.outcome),
            failed: once(self.code),
            retries: self.retries,
            waits: [1, 1],
        };
        assert_eq!(Account::of(&scraped), expected);
        // What was granted comes back.
        eventually("all leases", || {
            let now = pool.counts();
            let back = now.releases + now.not_owner + now.releases_failed;
            let was = before.releases + before.not_owner + before.releases_failed;
            (now.grants - before.grants == back - was).then_some(())
        })
        .await;
        scraped
    }
}

async fn pool(urls: &[&str]) -> Pool {
    pool_of(&urls.iter().map(|&url| url.to_owned()).collect::<Vec<_>>()).await
}

async fn faulty(fault: Fault) -> (FaultProxy, Pool) {
    let proxy = FaultProxy::start(fault).await;
    let pool = pool(&[&proxy.url()]).await;
    (proxy, pool)
}

fn client(pool: &Pool) -> ClientWithMiddleware {
    client_with(pool, |builder| builder)
}

fn client_with(
    pool: &Pool,
    choose: impl FnOnce(LeaseBuilder) -> LeaseBuilder,
) -> ClientWithMiddleware {
    let builder = LeaseMiddleware::builder(pool.clone()).timeout(SOON);
    choose(builder).build().unwrap().into_client()
}

async fn fetch(client: &ClientWithMiddleware, options: LeaseOptions) {
    if let Ok(response) = client.get(URL).with_extension(options).send().await {
        let _ = response.bytes().await;
    }
}

async fn hello() -> Origin {
    Origin::http(|_| text(StatusCode::OK, "hello")).await
}

/// Redirects so often, and then says hello.
async fn moves(times: usize) -> Origin {
    Origin::http(move |visit| {
        let nth = visit.path.trim_start_matches('/').parse().unwrap_or(0);
        if nth == times {
            return text(StatusCode::OK, "hello");
        }
        let mut moved = text(StatusCode::FOUND, "");
        let to = HeaderValue::try_from(format!("/{}", nth + 1)).unwrap();
        moved.headers_mut().insert(LOCATION, to);
        moved
    })
    .await
}

#[tokio::test]
async fn one_that_is_read_to_its_end() {
    let proxy = hello().await;
    let pool = pool(&[&proxy.url("")]).await;
    End::outcome("success").told_of(&pool, fetch(&client(&pool), LeaseOptions::new())).await;
}

#[tokio::test]
async fn one_that_is_redirected() {
    let proxy = moves(3).await;
    let pool = pool(&[&proxy.url("")]).await;
    End::outcome("success").told_of(&pool, fetch(&client(&pool), LeaseOptions::new())).await;
}

#[tokio::test]
async fn one_that_is_redirected_too_often() {
    let proxy = moves(100).await;
    let pool = pool(&[&proxy.url("")]).await;
    let end = End::outcome("success").with_code("too_many_redirects");
    end.told_of(&pool, fetch(&client(&pool), LeaseOptions::new())).await;
}

#[tokio::test]
async fn one_whose_body_is_dropped_or_dies() {
    for (fault, outcome) in
        [(Fault::StallsAfter(10), "cancelled"), (Fault::DiesAfter(10), "body_cut")]
    {
        let (_proxy, pool) = faulty(fault).await;
        let client = client(&pool);
        let read = async {
            let mut response = client.get(URL).send().await.unwrap();
            response.chunk().await.unwrap().unwrap();
            let _ = timeout(SHORT, response.chunk()).await;
        };
        End::outcome(outcome).told_of(&pool, read).await;
    }
}

#[tokio::test]
async fn one_that_is_dropped_before_its_answer() {
    let (_proxy, pool) = faulty(Fault::Stalls).await;
    let client = client(&pool);
    let dropped = async { drop(timeout(SHORT, fetch(&client, LeaseOptions::new())).await) };
    End::outcome("cancelled").told_of(&pool, dropped).await;
}

#[tokio::test]
async fn one_whose_lease_runs_out_before_its_answer_or_in_its_body() {
    let options = || LeaseOptions::new().ttl(SHORT);
    let (_proxy, pool) = faulty(Fault::Stalls).await;
    let end = End::outcome("expired").with_code("lease_expired");
    end.told_of(&pool, fetch(&client(&pool), options())).await;
    assert_eq!(pool.counts().expirations, 1);
    let (_proxy, pool) = faulty(Fault::StallsAfter(10)).await;
    End::outcome("expired").told_of(&pool, fetch(&client(&pool), options())).await;
    assert_eq!(pool.counts().expirations, 1);
}

#[tokio::test]
async fn one_that_no_endpoint_serves() {
    let pool = pool(&[NOWHERE]).await;
    let end = End::outcome("proxy_unreachable").with_code("proxy_unreachable");
    end.told_of(&pool, fetch(&client(&pool), LeaseOptions::new())).await;
}

#[tokio::test]
async fn one_that_a_second_endpoint_serves() {
    let proxy = hello().await;
    let pool = pool(&[NOWHERE, &proxy.url("")]).await;
    let end = End::outcome("success").with_retries(1);
    end.told_of(&pool, fetch(&client(&pool), LeaseOptions::new())).await;
}

#[tokio::test]
async fn one_that_is_tried_again_in_vain() {
    let proxy = hello().await;
    let pool = pool(&[NOWHERE, &proxy.url("")]).await;
    let (first, _second) = (pool.hold().await.unwrap(), pool.hold().await.unwrap());
    assert_eq!(first.endpoint().as_str(), "a");
    drop(first);
    // No other endpoint comes free, so there is no second try.
    let options = LeaseOptions::new().max_wait(SHORT);
    let end = End::outcome("proxy_unreachable").with_code("proxy_unreachable");
    end.told_of(&pool, async { fetch(&client(&pool), options).await }).await;
}

#[tokio::test]
async fn one_that_gets_no_lease() {
    let pool = pool(&[NOWHERE]).await;
    let held = pool.hold().await.unwrap();
    let options = LeaseOptions::new().max_wait(SHORT);
    End::code("pool_exhausted").told_of(&pool, fetch(&client(&pool), options)).await;
    drop(held);
}

/// How long it has waited is told, or the metrics would show the waits of the patient alone.
#[tokio::test]
async fn one_that_is_dropped_while_it_waits() {
    let proxy = hello().await;
    let pool = pool(&[&proxy.url("")]).await;
    let budgets = Budgets::builder().default(Budget::per_second(1)).build().unwrap();
    let limited = client_with(&pool, |builder| builder.budgets(budgets));
    fetch(&limited, LeaseOptions::new()).await;
    let _held = pool.hold().await.unwrap();
    let (plain, waits) = (client(&pool), ["lease_wait_seconds_sum", "budget_wait_seconds_sum"]);
    for (client, wait) in [(&plain, waits[0]), (&limited, waits[1])] {
        let dropped = async { drop(timeout(SHORT, fetch(client, LeaseOptions::new())).await) };
        let scraped = End::outcome("cancelled").told_of(&pool, dropped).await;
        let waited = scraped.value(&format!("{wait}{{pool=\"test\"}}")).unwrap();
        assert!(waited >= SHORT.as_secs_f64() - 0.002, "{waited} s in {wait}");
    }
}

#[tokio::test]
async fn one_that_its_budget_refuses() {
    let proxy = hello().await;
    let pool = pool(&[&proxy.url("")]).await;
    let budgets = Budgets::builder().default(Budget::per_minute(1)).build().unwrap();
    let client = client_with(&pool, |builder| builder.budgets(budgets));
    fetch(&client, LeaseOptions::new()).await;
    let options = LeaseOptions::new().max_wait(SHORT);
    End::code("budget_exceeded").told_of(&pool, fetch(&client, options)).await;
}

#[tokio::test]
async fn one_that_fails_on_the_wire_or_is_not_made_at_all() {
    let (_proxy, pool) = faulty(Fault::Drops).await;
    End::outcome("unknown").told_of(&pool, fetch(&client(&pool), LeaseOptions::new())).await;
    let pool = pool_of(&[NOWHERE.to_owned()]).await;
    let never = async { fetch(&client(&pool), LeaseOptions::new().ttl(SHORT * 1_000_000)).await };
    End::code("invalid_call").told_of(&pool, never).await;
}

#[tokio::test]
async fn one_of_a_shared_pool() {
    let proxy = hello().await;
    let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), &proxy.url(""), None).unwrap();
    let inventory = Inventory::from_endpoints([endpoint]).unwrap();
    let builder = Pool::builder(PoolName::new("test").unwrap(), inventory).mode(Mode::Shared);
    let pool = builder.build().await.unwrap();
    End::outcome("success").told_of(&pool, fetch(&client(&pool), LeaseOptions::new())).await;
}

#[tokio::test]
async fn one_whose_store_is_away() {
    let server = Server::start(&[]);
    let store = RedisStore::connect(server.url()).await.unwrap();
    let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), NOWHERE, None).unwrap();
    let inventory = Inventory::from_endpoints([endpoint]).unwrap();
    let builder = Pool::builder(PoolName::new("test").unwrap(), inventory).store(store);
    let pool = builder.build().await.unwrap();
    pool.set_up(PoolConfig::default()).await.unwrap();
    drop(server);
    let (client, options) = (client(&pool), LeaseOptions::new().max_wait(SHORT));
    let away = fetch(&client, options);
    let scraped = End::code("store_unavailable").told_of(&pool, away).await;
    let errors = r#"store_errors_total{pool="test",code="store_unavailable"}"#;
    assert!(scraped.value(errors).unwrap() >= 1.0);
}

/// Polls a future at most so often, and says whether it came to its end.
async fn at_most(mut polls: usize, future: impl Future) -> bool {
    let mut future = std::pin::pin!(future);
    poll_fn(|cx| {
        polls -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if polls == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// As long as nothing is in doubt, each grant comes back as one release.
async fn books_balance(pool: &Pool, requests: u64) {
    let scraped = Scraped::start();
    let budgets = Budgets::builder().default(Budget::per_second(1000).in_flight(1));
    let budgets = budgets.build().unwrap();
    let client = client_with(pool, |builder| builder.budgets(budgets));
    let (mut made, mut polls) = (0, 1);
    loop {
        made += 1;
        if at_most(polls, fetch(&client, LeaseOptions::new())).await {
            break;
        }
        polls += 1;
    }
    assert!(made >= requests, "{made} await points");
    eventually("all leases", || {
        let now = pool.counts();
        (now.grants == now.releases + now.not_owner + now.releases_failed).then_some(())
    })
    .await;
    eventually("all books", || {
        let account = Account::of(&scraped);
        let ended: u64 = account.ended.iter().map(|(_, times)| times).sum();
        (account.waits == [made, made] && ended == made && account.failed.is_empty()).then_some(())
    })
    .await;
    let status = pool.status().await.unwrap();
    assert_eq!((status.leased, status.expired, pool.counts().expirations), (0, 0, 0));
}

#[tokio::test]
async fn those_that_are_dropped_at_each_poll() {
    let proxy = moves(1).await;
    books_balance(&pool(&[&proxy.url("")]).await, 3).await;

    let (redis, url) = (Redis::new().await, proxy.url(""));
    let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), &url, None).unwrap();
    let inventory = Inventory::from_endpoints([endpoint]).unwrap();
    let builder = Pool::builder(PoolName::new("test").unwrap(), inventory);
    let pool = builder.store(redis.store.clone()).build().await.unwrap();
    pool.set_up(PoolConfig::default()).await.unwrap();
    books_balance(&pool, 4).await;
}
