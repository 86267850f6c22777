//! Bad values are refused with words, and odd ones do no harm.

use std::time::Duration;

use http::StatusCode;
use reqwest_lease::{
    AcquireRequest, Budget, Budgets, BudgetsBuilder, CancelRequest, DefaultJudge, EndpointId,
    Error, Kind, LeaseBuilder, LeaseMiddleware, LeaseOptions, LeaseStore, Member, MemoryStore,
    Order, Pool, PoolBuilder, PoolConfig, PoolName, Site, Token,
};
use reqwest_middleware::ClientWithMiddleware;

use crate::local::proxy::{ForwardProxy, Manners};
use crate::requests::{inventory, pool};
use crate::support::origin::{Origin, text};

const NONE: Duration = Duration::ZERO;
const EVER: Duration = Duration::MAX;

async fn proxy() -> ForwardProxy {
    ForwardProxy::start(Manners::default()).await.unwrap()
}

#[tokio::test]
async fn bad_values_of_a_client_are_refused() {
    type Change = fn(LeaseBuilder, Pool) -> LeaseBuilder;
    let cases: [(Change, Kind, &str); 10] = [
        (|builder, _| builder.most_clients(0), Kind::Config, "most_clients is zero"),
        (|builder, _| builder.connect_timeout(NONE), Kind::Config, "connect_timeout is zero"),
        (|builder, _| builder.timeout(NONE), Kind::Config, "timeout is zero"),
        (|builder, pool| builder.also(pool), Kind::Config, "two pools have the name test"),
        (
            |builder, _| builder.template(|builder| builder.unix_socket("/run/x")),
            Kind::Config,
            "the client template sets a unix socket",
        ),
        (|builder, _| default(builder, "authorization"), Kind::Config, "authorization header"),
        (|builder, _| default(builder, "cookie"), Kind::Config, "cookie header"),
        (|builder, _| default(builder, "proxy-authorization"), Kind::Config, "proxy-authorization"),
        (
            |builder, _| builder.template(|builder| builder.user_agent("\n")),
            Kind::Client,
            "building a client failed",
        ),
        (
            |builder, _| builder.template(|builder| builder.http1_only()).most_clients(0),
            Kind::Config,
            "most_clients is zero",
        ),
    ];
    let proxy = proxy().await;
    let pool = pool(&[&proxy]).await;
    for (change, kind, words) in cases {
        let builder = || change(LeaseMiddleware::builder(pool.clone()), pool.clone());
        refused(builder().build(), kind, words);
        refused(builder().build_layer(), kind, words);
    }
}

fn default(builder: LeaseBuilder, name: &'static str) -> LeaseBuilder {
    let headers = http::HeaderMap::from_iter([(name.parse().unwrap(), "x".parse().unwrap())]);
    builder.template(move |builder| builder.default_headers(headers.clone()))
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, kind: Kind, words: &str) {
    let error = result.err().unwrap_or_else(|| panic!("not refused: {words}"));
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error} has no {words}");
    assert!(!error.is_transient(), "{error}");
}

#[tokio::test]
async fn bad_values_of_a_pool_are_refused() {
    type Change = fn(PoolBuilder) -> PoolBuilder;
    let cases: [(Change, &str); 12] = [
        (|builder| builder.ttl(NONE), "ttl is zero"),
        (|builder| builder.ttl(Duration::from_secs(601)), "ttl is over the largest ttl"),
        (|builder| builder.ttl(EVER).largest_ttl(EVER).largest_lifetime(EVER), "over 365 days"),
        (|builder| builder.largest_ttl(NONE), "ttl is over the largest ttl"),
        (|builder| builder.largest_ttl(EVER), "the largest lifetime is under the largest ttl"),
        (|builder| builder.largest_lifetime(NONE), "the largest lifetime is under"),
        (|builder| builder.largest_lifetime(EVER), "over 365 days"),
        (|builder| builder.expiry_cooldown(EVER), "over 365 days"),
        (|builder| builder.max_wait(EVER), "over 365 days"),
        (|builder| builder.poll_every(NONE), "poll_every is zero"),
        (|builder| builder.poll_every(EVER), "over 365 days"),
        (|builder| builder.store(MemoryStore::new()).ttl(NONE), "ttl is zero"),
    ];
    let proxy = proxy().await;
    for (change, words) in cases {
        let builder = Pool::builder(PoolName::new("test").unwrap(), inventory(&[&proxy]));
        let result = change(builder).build().await;
        refused(result, Kind::Config, words);
    }
}

#[test]
fn bad_values_of_budgets_are_refused() {
    let once = Budget::per_second(1);
    let of = |budget| Budgets::builder().site("a.test", budget);
    let cases: [BudgetsBuilder; 12] = [
        of(Budget::per_second(0)),
        of(Budget::per_second(u32::MAX)),
        of(once.burst(0)),
        of(Budget::per_day(1).burst(u32::MAX)),
        of(once.max_wait(NONE)),
        Budgets::builder().default(Budget::per_day(0)),
        Budgets::builder().site("", once),
        Budgets::builder().site("https://a.test/", once),
        Budgets::builder().site("*.a.test", once),
        Budgets::builder().suffix("127.0.0.1", once),
        Budgets::builder().site("a.test", once).site("A.test.", once),
        Budgets::builder().max_sites(0),
    ];
    for (nth, case) in cases.into_iter().enumerate() {
        let error = case.build().err().unwrap_or_else(|| panic!("case {nth} was not refused"));
        assert_eq!(error.kind(), Kind::Config, "{error}");
    }
}

#[test]
fn bad_names_are_refused() {
    for name in ["", " ", "a b", "a.b", "a:b", "{a}", "ä", "a\n", &"a".repeat(65)] {
        assert!(EndpointId::new(name).is_err(), "{name:?}");
        let error = Error::from(PoolName::new(name).unwrap_err());
        assert_eq!(error.kind(), Kind::Config, "{name:?}");
    }
}

/// One origin, one proxy, one client, and what of its settings is odd.
async fn gets_through(change: impl FnOnce(LeaseBuilder) -> LeaseBuilder) {
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let proxy = proxy().await;
    let pool = pool(&[&proxy]).await;
    let client = change(LeaseMiddleware::builder(pool)).build().unwrap().into_client();
    let odd: [fn(reqwest_middleware::RequestBuilder) -> reqwest_middleware::RequestBuilder; 5] = [
        |request| request,
        |request| request.timeout(EVER),
        |request| request.with_extension(LeaseOptions::new().max_wait(EVER)),
        |request| request.with_extension(LeaseOptions::new().max_wait(NONE).renew(true)),
        |request| request.with_extension(LeaseOptions::new().attempts(u32::MAX)),
    ];
    for odd in odd {
        let response = odd(client.get(origin.url("/"))).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "hello");
    }
}

#[tokio::test]
async fn odd_values_of_a_client_do_no_harm() {
    gets_through(|builder| builder.attempts(0).idle_connections(0).most_clients(1)).await;
    gets_through(|builder| builder.attempts(u32::MAX).idle_connections(usize::MAX)).await;
    gets_through(|builder| builder.most_clients(usize::MAX)).await;
    gets_through(|builder| builder.timeout(EVER).connect_timeout(EVER)).await;
}

#[tokio::test]
async fn bad_options_are_refused_and_the_lease_is_free_for_the_next() {
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let proxy = proxy().await;
    let pool = pool(&[&proxy]).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let unknown = PoolName::new("unknown").unwrap();
    for (options, kind) in [
        (LeaseOptions::new().ttl(NONE), Kind::InvalidCall),
        (LeaseOptions::new().ttl(EVER), Kind::InvalidCall),
        (LeaseOptions::new().pool(unknown), Kind::UnknownPool),
    ] {
        let request = client.get(origin.url("/")).with_extension(options);
        let error = request.send().await.unwrap_err();
        assert_eq!(Error::find_in(&error).map(Error::kind), Some(kind));
    }
    let request = client.get(origin.url("/")).timeout(NONE).send().await;
    assert!(request.is_err(), "no time at all");
    assert_eq!(client.get(origin.url("/")).send().await.unwrap().status(), StatusCode::OK);
}

/// A judge, a limit on a site and a store are called with what users and programs come up with.
#[tokio::test]
async fn no_time_is_too_long_for_verdicts_slow_sites_and_stores() {
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let proxies = [proxy().await, proxy().await];
    let [one, other] = &proxies;
    let pool = Pool::builder(PoolName::new("test").unwrap(), inventory(&[one, other]))
        .judge(DefaultJudge::new(EVER))
        .max_wait(Duration::from_millis(50))
        .build()
        .await
        .unwrap();
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    for _ in 0..2 {
        fetch(&client, &origin).await;
    }
    let error = client.get(origin.url("/")).send().await.unwrap_err();
    assert_eq!(Error::find_in(&error).map(Error::kind), Some(Kind::PoolExhausted));
    assert_eq!(pool.status().await.unwrap().cooling, 2);

    let budgets = Budgets::unlimited();
    budgets.slow(&Site::parse("127.0.0.1").unwrap(), EVER, EVER);

    let (store, name) = (MemoryStore::new(), PoolName::new("odd").unwrap());
    let members = vec![Member::new(EndpointId::new("a").unwrap())];
    for order in [Order::Init(PoolConfig::default().into()), Order::Add(members)] {
        let request = reqwest_lease::AdminRequest::new(name.clone(), order);
        store.administer(request).await.unwrap();
    }
    let mut request = AcquireRequest::new(name.clone(), Token::random(), Duration::from_secs(1));
    request.expiry_cooldown = EVER;
    request.random = u64::MAX;
    store.acquire(request).await.unwrap();
    let request = CancelRequest::new(name, Token::random(), EVER);
    store.cancel(request).await.unwrap();
}

async fn fetch(client: &ClientWithMiddleware, origin: &Origin) {
    let response = client.get(origin.url("/")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "hello");
}
