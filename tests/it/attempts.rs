//! What the endpoint failed at, and the target cannot have seen, is tried again elsewhere.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{Method, StatusCode, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use reqwest::{Body, Request, Response};
use reqwest_lease::{
    Attempt, BoxError, Budget, Budgets, Endpoint, EndpointId, Error, Evidence, ExchangeError,
    Inventory, Judge, Kind, LeaseBuilder, LeaseInfo, LeaseLayer, LeaseMiddleware, LeaseOptions,
    LeaseRetryStrategy, Mode, Outcome, Outgoing, Policy, Pool, PoolName, QuarantineCode, Sender,
    State, Strike, Verdict,
};
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use tokio::net::TcpSocket;
use tower::{Layer as _, Service, ServiceExt as _};

use crate::support::client::{failure, get, pool_of, stream};
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::text;
use crate::support::socks_fault::{SocksFault, SocksFaultProxy};
use crate::support::web::{Web, moved};

/// An endpoint that refuses every connection, on a port that stays its own.
pub(crate) struct Dead(TcpSocket);

impl Dead {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }
}

async fn hello() -> Web {
    Web::start(|_| text(StatusCode::OK, "hello")).await
}

/// A client of these endpoints, which are asked in this order.
async fn client(web: &Web, urls: &[String]) -> (Pool, ClientWithMiddleware) {
    let pool = pool_of(urls).await;
    (pool.clone(), with(web, &pool, |builder| builder))
}

fn with(
    web: &Web,
    pool: &Pool,
    choose: impl FnOnce(LeaseBuilder) -> LeaseBuilder,
) -> ClientWithMiddleware {
    let builder = LeaseMiddleware::builder(pool.clone()).tls(web.authority().client_config());
    choose(builder).build().unwrap().into_client()
}

fn info(response: &Response) -> LeaseInfo {
    response.extensions().get::<LeaseInfo>().unwrap().clone()
}

fn names(attempts: &[Attempt]) -> Vec<&str> {
    attempts.iter().map(|attempt| attempt.endpoint().as_str()).collect()
}

async fn fails(client: &ClientWithMiddleware, request: Request) -> Error {
    let error = client.execute(request).await.unwrap_err();
    Error::find_in(&error).unwrap_or_else(|| panic!("{error:?}")).clone()
}

/// Requests of all sorts to both schemes.
fn requests() -> Vec<Request> {
    let mut requests = Vec::new();
    for url in ["http://a.test/", "https://a.test/"] {
        for method in [Method::GET, Method::HEAD, Method::DELETE] {
            requests.push(Request::new(method, url.parse().unwrap()));
        }
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            for body in [Body::from("the body"), stream("the body")] {
                let mut request = Request::new(method.clone(), url.parse().unwrap());
                *request.body_mut() = Some(body);
                requests.push(request);
            }
        }
    }
    requests
}

/// Makes all requests with a failing and a living endpoint, and checks that the living one
/// served them; returns the failing one's state after the last.
async fn served_by_the_other(web: &Web, failing: &str, only_https: bool) -> State {
    let mut last = State::Ready;
    for request in requests() {
        if only_https && request.url().scheme() != "https" {
            continue;
        }
        let (pool, client) = client(web, &[failing.to_owned(), web.url()]).await;
        web.forget();
        let (method, with_body) = (request.method().clone(), request.body().is_some());
        let response = client.execute(request).await.unwrap();
        let info = info(&response);
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!((info.endpoint().as_str(), info.attempts()), ("b", 2));
        assert_eq!(names(info.failed()), ["a"]);
        let told = [Outcome::ProxyUnreachable, Outcome::TunnelCut, Outcome::CredentialsRefused];
        assert!(told.contains(&info.failed()[0].outcome()) && info.outcome() == Outcome::Success);
        let asked = web.asked();
        assert_eq!(asked.len(), 1, "sent once");
        assert_eq!(asked[0].method, method);
        assert_eq!(asked[0].body, if with_body { "the body" } else { "" });
        last = pool.list().await.unwrap()[0].state;
    }
    last
}

#[tokio::test]
async fn any_request_is_served_by_another_endpoint_when_one_is_dead() {
    let (web, dead) = (hello().await, Dead::new());
    let state = served_by_the_other(&web, &dead.url(), false).await;
    assert!(matches!(state, State::Cooling(_)), "{state:?}");
}

#[tokio::test]
async fn a_connect_that_is_cut_off_is_tried_again() {
    for fault in [Fault::Closes, Fault::Drops] {
        let (web, closing) = (hello().await, FaultProxy::start(fault).await);
        let state = served_by_the_other(&web, &closing.url(), true).await;
        assert!(matches!(state, State::Cooling(_)), "{state:?}");
    }
}

#[tokio::test]
async fn refused_credentials_mean_quarantine_and_another_endpoint() {
    let (web, refusing) = (hello().await, FaultProxy::start(Fault::RefusesCredentials).await);
    for only_https in [false, true] {
        // A forwarding proxy may have read of a stream before it refuses.
        let state = if only_https {
            served_by_the_other(&web, &refusing.url(), true).await
        } else {
            let (pool, client) = client(&web, &[refusing.url(), web.url()]).await;
            let response = client.execute(get("http://a.test/", &[])).await.unwrap();
            assert_eq!(names(info(&response).failed()), ["a"]);
            pool.list().await.unwrap()[0].state
        };
        assert_eq!(state, State::Quarantined(QuarantineCode::Credentials));
    }
    let (pool, client) = client(&web, &[refusing.url()]).await;
    assert_eq!(failure(&client, "https://a.test/").await, Kind::CredentialsRefused);
    assert_eq!(pool.status().await.unwrap().quarantined, 1);
}

#[tokio::test]
async fn a_lone_407_is_doubted_until_a_second_site_gets_one() {
    let (web, refusing) = (hello().await, FaultProxy::start(Fault::RefusesCredentials).await);
    let (pool, client) = client(&web, &[refusing.url()]).await;
    for url in ["http://a.test/", "http://a.test/", "http://b.test/"] {
        assert_eq!(pool.status().await.unwrap().quarantined, 0);
        assert_eq!(failure(&client, url).await, Kind::CredentialsRefused);
    }
    assert_eq!(pool.status().await.unwrap().quarantined, 1);
}

/// The twin of the quarantine: a site's own 407 must not empty the pool.
#[tokio::test]
async fn a_site_that_answers_407_costs_no_endpoint_that_has_worked() {
    let web = Web::start(|asked| match asked.url.starts_with("http://bad.test/") {
        true => text(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "mine"),
        false => text(StatusCode::OK, "hello"),
    })
    .await;
    let (pool, client) = client(&web, &[web.url(), web.url(), web.url()]).await;
    for _ in 0..3 {
        client.get("http://good.test/").send().await.unwrap().bytes().await.unwrap();
    }
    for _ in 0..2 {
        let response = client.get("http://bad.test/").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        assert_eq!(info(&response).attempts(), 3);
        assert_eq!(response.text().await.unwrap(), "mine");
        assert_eq!(pool.status().await.unwrap().ready, 3);
    }
}

/// Only the site's own answer to another endpoint makes a refusal certain.
#[tokio::test]
async fn another_endpoints_own_answer_says_nothing_of_the_site() {
    let refusing = FaultProxy::start(Fault::RefusesCredentials).await;
    let denied = "HTTP/1.1 403 No\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\n\r\n";
    for (second, quarantined) in [(denied, 0), ("HTTP/1.1 403 No\r\n\r\n", 1)] {
        let other = FaultProxy::start(Fault::Says(second)).await;
        let web = hello().await;
        let (pool, client) = client(&web, &[refusing.url(), other.url()]).await;
        let response = client.execute(get("http://a.test/", &[])).await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        response.bytes().await.unwrap();
        assert_eq!(pool.status().await.unwrap().quarantined, quarantined, "{second}");
    }
}

/// Nor does a site that takes on the marks of a proxy.
#[tokio::test]
async fn a_site_that_plays_the_proxy_costs_no_endpoint_that_has_worked() {
    let web = Web::start(|asked| {
        let (status, name, value) = match asked.url.rsplit('/').next() {
            Some("401") => (401, "server", "tinyproxy/1.11.1"),
            Some("403") => (403, "x-squid-error", "ERR_ACCESS_DENIED 0"),
            Some("502") => (502, "proxy-status", "p; error=proxy_internal_error"),
            _ => (200, "server", "a site"),
        };
        let mut answer = text(StatusCode::from_u16(status).unwrap(), "mine");
        answer.headers_mut().insert(name, value.parse().unwrap());
        answer
    })
    .await;
    let url = web.url_with_password();
    let (pool, client) = client(&web, &[url.clone(), url.clone(), url]).await;
    for _ in 0..3 {
        client.get("http://good.test/").send().await.unwrap().bytes().await.unwrap();
    }
    for status in [401, 403, 502] {
        for host in ["a", "b"] {
            let page = format!("http://{host}.test/{status}");
            let response = client.get(page).send().await.unwrap();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.text().await.unwrap(), "mine");
            let (list, status) = (pool.list().await.unwrap(), pool.status().await.unwrap());
            assert_eq!((status.ready, status.quarantined), (3, 0));
            assert!(list.iter().all(|member| member.strikes == 0), "{list:?}");
        }
    }
}

/// Whoever owns many hosts takes no endpoint out either.
#[tokio::test]
async fn many_hosts_that_answer_407_cost_no_endpoint_that_has_worked() {
    let web = Web::start(|asked| match asked.url.contains(".evil.test/") {
        true => text(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "mine"),
        false => text(StatusCode::OK, "hello"),
    })
    .await;
    let (pool, client) = client(&web, &[web.url(), web.url(), web.url()]).await;
    for _ in 0..3 {
        client.get("http://good.test/").send().await.unwrap().bytes().await.unwrap();
    }
    for host in 0..4 {
        let response = client.get(format!("http://x{host}.evil.test/")).send().await.unwrap();
        response.bytes().await.unwrap();
    }
    assert_eq!(pool.status().await.unwrap().quarantined, 0);
}

/// A site that refuses one endpoint and serves the next takes none of them out.
#[tokio::test]
async fn a_site_cannot_pick_off_endpoints_that_have_worked() {
    let turn = AtomicUsize::new(0);
    let web = Web::start(move |asked| {
        let odd = || turn.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        match asked.url.starts_with("http://bad.test/") && odd() {
            true => text(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "mine"),
            false => text(StatusCode::OK, "hello"),
        }
    })
    .await;
    let (pool, client) = client(&web, &[web.url(), web.url()]).await;
    for _ in 0..2 {
        client.get("http://good.test/").send().await.unwrap().bytes().await.unwrap();
    }
    client.get("http://bad.test/").send().await.unwrap().bytes().await.unwrap();
    let status = pool.status().await.unwrap();
    assert_eq!((status.quarantined, status.cooling, status.ready), (0, 0, 2));
}

#[tokio::test]
async fn no_more_endpoints_are_tried_than_allowed() {
    let (web, dead) = (hello().await, Dead::new());
    let urls = [dead.url(), dead.url(), dead.url(), web.url()];
    for (attempts, tried) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
        let pool = pool_of(&urls).await;
        let client = with(&web, &pool, |builder| builder.attempts(attempts));
        let error = fails(&client, get("http://a.test/", &[])).await;
        assert_eq!((error.kind(), error.tried().len()), (Kind::ProxyUnreachable, tried));
        assert_eq!(names(error.tried()), ["a", "b", "c"][..tried]);
    }
    assert!(web.asked().is_empty());
    let (_pool, client) = client(&web, &urls).await;
    let request = client.get("http://a.test/").with_extension(LeaseOptions::new().attempts(4));
    let response = request.send().await.unwrap();
    assert_eq!((info(&response).attempts(), info(&response).endpoint().as_str()), (4, "d"));
}

#[tokio::test]
async fn a_lone_endpoint_fails_at_once_with_its_own_failure() {
    let (web, dead) = (hello().await, Dead::new());
    let (_pool, client) = client(&web, &[dead.url()]).await;
    let began = Instant::now();
    let error = fails(&client, get("http://a.test/", &[])).await;
    assert_eq!((error.kind(), names(error.tried())), (Kind::ProxyUnreachable, vec!["a"]));
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn the_first_failure_is_not_hidden_by_an_empty_pool() {
    let (web, dead) = (hello().await, Dead::new());
    let (pool, client) = client(&web, &[web.url(), dead.url()]).await;
    let held = pool.hold().await.unwrap();
    assert_eq!(held.endpoint().as_str(), "a");
    let short = LeaseOptions::new().max_wait(Duration::from_millis(50));
    let request = client.get("http://a.test/").with_extension(short.clone());
    let error = request.send().await.unwrap_err();
    let error = Error::find_in(&error).unwrap();
    assert_eq!((error.kind(), names(error.tried())), (Kind::ProxyUnreachable, vec!["b"]));
    // Without a first failure it is the pool's word.
    let request = client.get("http://a.test/").with_extension(short);
    let error = request.send().await.unwrap_err();
    assert_eq!(Error::find_in(&error).unwrap().kind(), Kind::PoolExhausted);
}

#[tokio::test]
async fn what_the_target_may_have_seen_is_not_sent_again() {
    let web = hello().await;
    for fault in [Fault::Drops, Fault::DiesAfter(10), Fault::BadGateway] {
        let failing = FaultProxy::start(fault).await;
        let (pool, client) = client(&web, &[failing.url(), web.url()]).await;
        let end = match client.execute(get("http://a.test/", &[])).await {
            Err(error) => Err(error),
            Ok(response) => {
                let (status, attempts) = (response.status(), info(&response).attempts());
                assert_eq!(attempts, 1);
                response.bytes().await.map(|_| status).map_err(Into::into)
            }
        };
        match end {
            Ok(status) => assert_eq!((status, fault), (StatusCode::BAD_GATEWAY, Fault::BadGateway)),
            Err(error) => assert!(Error::find_in(&error).is_none(), "reqwest's own: {error:?}"),
        }
        let member = &pool.list().await.unwrap()[0];
        let rests = matches!(member.state, State::Cooling(_));
        assert_eq!((rests, member.strikes), (fault == Fault::DiesAfter(10), 0), "{fault:?}");
    }
    assert!(web.asked().is_empty());
}

#[tokio::test]
async fn a_connect_refused_without_a_cause_is_not_tried_again() {
    let (web, refusing) = (hello().await, FaultProxy::start(Fault::BadGateway).await);
    let (pool, client) = client(&web, &[refusing.url(), web.url()]).await;
    let error = client.execute(get("https://a.test/", &[])).await.unwrap_err();
    assert!(error.is_connect() && Error::find_in(&error).is_none(), "{error:?}");
    assert!(web.asked().is_empty());
    assert_eq!(pool.list().await.unwrap()[0].strikes, 0);
}

#[tokio::test]
async fn a_failed_attempt_hands_its_slot_on() {
    let (web, dead) = (hello().await, Dead::new());
    let pool = pool_of(&[dead.url(), web.url()]).await;
    let budgets = Budgets::builder().site("a.test", Budget::per_minute(6)).build().unwrap();
    let client = with(&web, &pool, |builder| builder.budgets(budgets));
    let response = client.execute(get("http://a.test/", &[])).await.unwrap();
    assert_eq!(names(info(&response).failed()), ["a"]);
    assert!(info(&response).budget_wait() < Duration::from_secs(1));
    drop(response);
    let next =
        client.get("http://a.test/").with_extension(LeaseOptions::new().max_wait(Duration::ZERO));
    let error = next.send().await.unwrap_err();
    let after = Error::find_in(&error).unwrap().retry_after().unwrap();
    assert!(after <= Duration::from_secs(10), "one slot was taken, not two: {after:?}");
}

/// Rests a failed endpoint for two seconds, exactly.
struct Exact;

impl Judge for Exact {
    fn judge(&self, evidence: Evidence) -> Verdict {
        match evidence.outcome {
            Outcome::TunnelCut => {
                Verdict::cooldown(Duration::from_secs(2)).with_strike(Strike::Add)
            }
            _ => Verdict::default(),
        }
    }
}

async fn judged(urls: &[String], judge: impl Judge) -> Pool {
    let endpoints = urls.iter().zip('a'..).map(|(url, name)| {
        Endpoint::new(EndpointId::new(name.to_string()).unwrap(), url, None).unwrap()
    });
    let inventory = Inventory::from_endpoints(endpoints).unwrap();
    Pool::builder(PoolName::new("test").unwrap(), inventory).judge(judge).build().await.unwrap()
}

/// A gateway that goes away with all its tunnels after a second, and is back soon.
#[derive(Clone)]
struct Gateway {
    gone: tokio::time::Instant,
    sent: Arc<Mutex<Vec<tokio::time::Instant>>>,
}

impl Service<reqwest_lease::Outgoing> for Gateway {
    type Response = Response;
    type Error = BoxError;
    type Future = reqwest_lease::LeaseFuture;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: reqwest_lease::Outgoing) -> Self::Future {
        type TunnelError = <Tunnel<HttpConnector> as Service<Uri>>::Error;
        let Self { gone, sent } = self.clone();
        Box::pin(async move {
            let now = tokio::time::Instant::now();
            if now < gone {
                tokio::time::sleep_until(gone).await;
                return Err(TunnelError::TunnelUnexpectedEof.into());
            }
            sent.lock().unwrap().push(now);
            Ok(Response::from(http::Response::new("")))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn slots_of_attempts_that_failed_together_are_not_spent_together() {
    const ENDPOINTS: usize = 8;
    let pool = judged(&vec!["http://127.0.0.1:1".to_owned(); ENDPOINTS], Exact).await;
    let budgets = Budgets::builder().site("a.test", Budget::per_second(10)).build().unwrap();
    let gone = tokio::time::Instant::now() + Duration::from_secs(1);
    let gateway = Gateway { gone, sent: Arc::default() };
    let layer = LeaseLayer::builder(pool).budgets(budgets).build_layer().unwrap();
    let service = layer.layer(gateway.clone());
    let all = (0..ENDPOINTS).map(|_| {
        let service = service.clone();
        tokio::spawn(async move { service.oneshot(get("http://a.test/", &[])).await.map(drop) })
    });
    for one in all.collect::<Vec<_>>() {
        one.await.unwrap().unwrap();
    }
    let mut sent = gateway.sent.lock().unwrap().clone();
    sent.sort();
    let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A request may start late by as much as an interval, and a timer by a millisecond.
    let enough = |pair: &[Duration]| pair.iter().sum::<Duration>() >= Duration::from_millis(99);
    assert!(gaps.windows(2).all(enough), "{gaps:?}");
}

#[tokio::test]
async fn a_held_lease_is_not_exchanged_for_another() {
    let (web, dead) = (hello().await, Dead::new());
    let (pool, client) = client(&web, &[dead.url(), web.url()]).await;
    let held = pool.hold().await.unwrap();
    assert_eq!(held.endpoint().as_str(), "a");
    let request = client.get("http://a.test/").with_extension(LeaseOptions::new().held(&held));
    let error = request.send().await.unwrap_err();
    let error = Error::find_in(&error).unwrap();
    assert_eq!((error.kind(), names(error.tried())), (Kind::ProxyUnreachable, vec!["a"]));
    assert!(web.asked().is_empty());
    drop(held);
    let state = &pool.list().await.unwrap()[0];
    assert!(matches!(state.state, State::Cooling(_)), "its holder learned of it: {state:?}");
}

/// Gives everything back at once.
struct Forgiving;

impl Judge for Forgiving {
    fn judge(&self, _: Evidence) -> Verdict {
        Verdict::default()
    }
}

/// Tracing, then retries, then leases.
fn stack(pool: &Pool, attempts: u32, retries: u32) -> ClientWithMiddleware {
    let tick = Duration::from_millis(1);
    let policy =
        ExponentialBackoff::builder().retry_bounds(tick, tick).build_with_max_retries(retries);
    let retry = RetryTransientMiddleware::new_with_policy_and_strategy(policy, LeaseRetryStrategy);
    let lease = LeaseMiddleware::builder(pool.clone()).attempts(attempts).build().unwrap();
    lease.into_client_with(|builder| {
        builder.with(reqwest_tracing::TracingMiddleware::default()).with(retry)
    })
}

#[tokio::test]
async fn a_retry_above_takes_a_new_lease() {
    let (web, dead) = (hello().await, Dead::new());
    let pool = pool_of(&[dead.url(), web.url()]).await;
    let response = stack(&pool, 1, 2).get("http://a.test/").send().await.unwrap();
    assert_eq!((info(&response).endpoint().as_str(), info(&response).attempts()), ("b", 1));
    assert_eq!(pool.counts().grants, 2);
}

/// A pool that would rather take its first endpoint, whatever becomes of it.
async fn partial(mode: Mode, policy: Policy, urls: &[String]) -> Pool {
    let endpoint = |(nth, url): (usize, &String)| {
        let weight = if nth == 0 { 1000 } else { 1 };
        format!("[[endpoint]]\nid = 'e{nth}'\nurl = '{url}'\nweight = {weight}\n")
    };
    let inventory: String = urls.iter().enumerate().map(endpoint).collect();
    let builder =
        Pool::builder(PoolName::new("test").unwrap(), Inventory::from_toml(&inventory).unwrap());
    builder.mode(mode).policy(policy).judge(Forgiving).build().await.unwrap()
}

#[tokio::test]
async fn a_retry_above_leaves_what_just_failed_while_another_is_free() {
    let (web, dead) = (hello().await, Dead::new());
    for (mode, policy) in [
        (Mode::Exclusive, Policy::Earliest),
        (Mode::Exclusive, Policy::LeastAssigned),
        (Mode::Exclusive, Policy::Random),
        (Mode::Shared, Policy::LeastAssigned),
    ] {
        let pool = partial(mode, policy, &[dead.url(), dead.url(), web.url()]).await;
        let client = stack(&pool, 1, 2);
        for _ in 0..20 {
            let response = client.get("http://a.test/").send().await.unwrap();
            assert_eq!(info(&response).endpoint().as_str(), "e2", "{mode:?} {policy:?}");
            response.bytes().await.unwrap();
        }
        // The twin: without a word from the attempt before, the favourite is taken again.
        if policy == Policy::LeastAssigned {
            let client = stack(&pool, 1, 0);
            for _ in 0..20 {
                assert_eq!(failure(&client, "http://a.test/").await, Kind::ProxyUnreachable);
            }
        }
        // Where there is no other one it is taken all the same.
        let pool = partial(mode, policy, &[dead.url()]).await;
        assert_eq!(failure(&stack(&pool, 1, 2), "http://a.test/").await, Kind::ProxyUnreachable);
        assert_eq!(pool.counts().grants, 3);
        let pool = partial(mode, policy, &[dead.url(), dead.url()]).await;
        assert_eq!(failure(&stack(&pool, 1, 2), "http://a.test/").await, Kind::ProxyUnreachable);
        let counts = pool.list().await.unwrap().into_iter().map(|member| member.assignments);
        assert!(counts.clone().all(|count| count > 0), "never twice in a row: {counts:?}");
    }
}

#[tokio::test]
async fn no_endpoint_is_tried_twice_for_a_request_in_a_shared_pool_either() {
    let dead = Dead::new();
    let urls = vec![dead.url(); 4];
    for (mode, policy) in
        [(Mode::Shared, Policy::LeastAssigned), (Mode::Exclusive, Policy::LeastAssigned)]
    {
        let pool = partial(mode, policy, &urls).await;
        let client = LeaseMiddleware::builder(pool).attempts(9).build().unwrap().into_client();
        let error = fails(&client, get("http://a.test/", &[])).await;
        let mut tried = names(error.tried());
        tried.sort_unstable();
        assert_eq!(tried, ["e0", "e1", "e2", "e3"], "{mode:?}");
    }
}

#[tokio::test]
async fn all_attempts_share_one_deadline() {
    let full = crate::outcomes::Full::start().await;
    let urls = vec![format!("http://{}", full.address()); 20];
    let pool = pool_of(&urls).await;
    let client = LeaseMiddleware::builder(pool)
        .attempts(20)
        .connect_timeout(Duration::from_millis(200))
        .timeout(Duration::from_millis(900))
        .build()
        .unwrap()
        .into_client();
    let began = Instant::now();
    let error = client.execute(get("http://a.test/", &[])).await.unwrap_err();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(800) && took < Duration::from_secs(3), "{took:?}");
    if let Some(error) = Error::find_in(&error) {
        assert!((2..8).contains(&error.tried().len()), "{error}");
    } else {
        assert!(error.is_timeout(), "{error:?}");
    }
}

#[tokio::test]
async fn rules_of_an_endpoint_are_not_those_of_the_next() {
    let (web, denying) = (hello().await, SocksFaultProxy::start(SocksFault::Replies(2)).await);
    for url in ["http://a.test/", "https://a.test/"] {
        let (pool, client) = client(&web, &[denying.url(), web.url()]).await;
        let mut request = get(url, &[]);
        *request.method_mut() = Method::POST;
        *request.body_mut() = Some(stream("the body"));
        web.forget();
        let response = client.execute(request).await.unwrap();
        assert_eq!(names(info(&response).failed()), ["a"]);
        assert_eq!(info(&response).failed()[0].outcome(), Outcome::ProxyDenied);
        assert_eq!(web.asked()[0].body, "the body");
        assert_eq!(pool.list().await.unwrap()[0].strikes, 0);
    }
    let (_pool, client) = client(&web, &[denying.url()]).await;
    let error = fails(&client, get("https://a.test/", &[])).await;
    assert_eq!((error.kind(), names(error.tried())), (Kind::ProxyDenied, vec!["a"]));
    assert!(!error.is_transient());
}

#[tokio::test]
async fn the_error_is_found_under_a_retry_whether_it_retried_or_not() {
    let dead = Dead::new();
    let pool = judged(&[dead.url()], Forgiving).await;
    let error = stack(&pool, 1, 2).get("http://a.test/").send().await.unwrap_err();
    assert!(error.to_string().contains("2 retries"), "{error}");
    assert_eq!(Error::find_in(&error).unwrap().kind(), Kind::ProxyUnreachable);
    assert_eq!(pool.counts().grants, 3);
    let web = Web::start(|_| moved(302, b"http://127.0.0.1/")).await;
    let pool = judged(&[web.url()], Forgiving).await;
    let error = stack(&pool, 1, 2).get("http://a.test/").send().await.unwrap_err();
    assert!(!error.to_string().contains("retries"), "{error}");
    assert_eq!(Error::find_in(&error).unwrap().kind(), Kind::TargetRefused);
    assert_eq!(web.asked().len(), 1, "not for trying again");
}

#[tokio::test]
async fn tower_sees_the_same_error() {
    let dead = Dead::new();
    let pool = pool_of(&[dead.url()]).await;
    let service = LeaseLayer::builder(pool).build_layer().unwrap().layer(Sender);
    let error = service.oneshot(get("http://a.test/?secret", &[])).await.unwrap_err();
    let found = Error::find(&*error).unwrap();
    assert_eq!((found.kind(), names(found.tried())), (Kind::ProxyUnreachable, vec!["a"]));
    let mut texts = format!("{error:?}");
    let mut link = Some(&*error as &(dyn std::error::Error + 'static));
    while let Some(error) = link {
        texts += &error.to_string();
        link = error.source();
    }
    assert!(!texts.contains("?secret"), "{texts}");
}

#[tokio::test]
async fn tower_sees_how_a_failed_exchange_came_about() {
    let web = hello().await;
    let pool = pool_of(&[web.url()]).await;
    let breaks =
        tower::service_fn(|_: Outgoing| async { Err::<Response, BoxError>("broken".into()) });
    let service = LeaseLayer::builder(pool).build_layer().unwrap().layer(breaks);
    let error: BoxError = service.oneshot(get("http://a.test/", &[])).await.unwrap_err();
    let failed = error.downcast::<ExchangeError>().unwrap();
    assert_eq!((failed.info().endpoint().as_str(), failed.info().attempts()), ("a", 1));
    assert_eq!(failed.info().outcome(), Outcome::Unknown);
    assert!(Error::find(&*failed).is_none());
    assert_eq!(failed.into_source().to_string(), "broken");
}

/// An early answer: the first send may go on reading the stream in the background.
#[tokio::test]
async fn a_stream_is_not_lent_to_a_second_send_after_an_answer() {
    let web = hello().await;
    for (body, sends) in [(stream("hello"), 1), (Body::from("hello"), 2)] {
        let pool = pool_of(&[web.url()]).await;
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = sent.clone();
        let throttles = tower::service_fn(move |_: Outgoing| {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer = http::Response::builder().status(503).header("retry-after", "1").body("");
            async { Ok::<_, BoxError>(Response::from(answer.unwrap())) }
        });
        let options =
            LeaseOptions::new().wait_out_pauses(true).max_wait(Duration::from_millis(1500));
        let layer = LeaseLayer::builder(pool).build_layer().unwrap().layer(throttles);
        let mut request = Request::new(Method::POST, "http://a.test/".parse().unwrap());
        *request.body_mut() = Some(body);
        let answer = layer.with_options(options).oneshot(request).await.unwrap();
        assert_eq!((answer.status().as_u16(), sent.load(Ordering::SeqCst)), (503, sends));
    }
}
