//! Requests that succeed and that fail in all ways, with everything told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use reqwest::{Method, Proxy, Request};
use reqwest_lease::{
    Answer, Budget, Budgets, Classifier, DefaultClassifier, Endpoint, EndpointId, Failed,
    HeldLease, Inventory, LeaseBuilder, LeaseInfo, LeaseMiddleware, LeaseOptions,
    LeaseRetryStrategy, Outcome, Pool, PoolName, Redirects, Sender, Targets,
};
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_tracing::TracingMiddleware;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

use super::spy::Spy;
use super::{PASSWORD, PASSWORD_CORE, TARGET_CORE, USER, tell, values};
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::fault::{Fault, FaultProxy};
use crate::support::microsocks::Microsocks;
use crate::support::origin::{Origin, Visit, text};
use crate::support::socks_fault::{SocksFault, SocksFaultProxy};
use crate::support::tls::TlsFront;
use crate::support::{SOON, eventually};

const SHORT: Duration = Duration::from_millis(100);

struct Origins {
    plain: Origin,
    tls: Origin,
}

#[tokio::test]
async fn everything_is_told() {
    tell::everything();
    let origins = Origins::start().await;
    origins.requests_that_succeed().await;
    origins.endpoints_that_fail().await;
    origins.requests_that_are_refused().await;
    origins.leases_that_end().await;
    origins.a_store_that_goes_down().await;
    values::inventories().await;
    values::endpoints_and_names();
    values::budgets();
}

impl Origins {
    async fn start() -> Self {
        let answer = |visit: &Visit| match visit.path.as_str() {
            "/moved" => {
                let mut response = text(StatusCode::FOUND, "");
                response.headers_mut().insert(LOCATION, "/".parse().unwrap());
                response
            }
            _ => text(StatusCode::OK, "hello"),
        };
        Self { plain: Origin::http(answer).await, tls: Origin::https(answer).await }
    }

    /// Pages of both, with credentials of the target's own in the URL.
    fn pages(&self) -> Vec<String> {
        [&self.plain, &self.tls]
            .into_iter()
            .flat_map(|origin| ["/", "/moved"].map(|path| origin.url(path)))
            .map(|url| url.replace("//", &format!("//{TARGET_CORE}:{TARGET_CORE}@")))
            .collect()
    }

    fn builder(&self, pool: Pool) -> LeaseBuilder {
        LeaseMiddleware::builder(pool)
            .tls(self.tls.authority().client_config())
            .timeout(SOON)
            .classifier(Telling)
            // This crate's own setting comes after it.
            .template(|builder| builder.connection_verbose(true))
    }

    fn client(&self, pool: Pool) -> ClientWithMiddleware {
        let client = self.builder(pool).build().unwrap().into_client_with(|builder| {
            let policy = ExponentialBackoff::builder()
                .retry_bounds(Duration::from_millis(1), Duration::from_millis(2))
                .build_with_max_retries(1);
            builder.with(TracingMiddleware::default()).with(
                RetryTransientMiddleware::new_with_policy_and_strategy(policy, LeaseRetryStrategy),
            )
        });
        tell::value("client", &client);
        client
    }

    /// Fetches all pages, and tells what came of it.
    async fn fetch(&self, what: &str, client: &ClientWithMiddleware) {
        for page in self.pages() {
            tell_answer(what, client.get(&page).send().await).await;
            let request = Request::new(Method::GET, page.parse().unwrap());
            tell_answer(what, client.execute(request).await).await;
        }
    }

    async fn requests_that_succeed(&self) {
        let good = Manners { credentials: Some((USER, PASSWORD)), ..Manners::default() };
        let proxy = ForwardProxy::start(good).await.unwrap();
        let front = TlsFront::start(self.tls.authority(), proxy.address()).await;
        let socks = Microsocks::start(Some((USER, PASSWORD)));
        for url in [proxy.url(), front.url(), socks.url("socks5"), socks.url("socks5h")] {
            let spy = Spy::default();
            let pool = spy.pool(inventory(&url)).await.build().await.unwrap();
            values::pool(&pool).await;
            self.fetch("through a good endpoint", &self.client(pool.clone())).await;
            let held = pool.hold().await.unwrap();
            let options = LeaseOptions::new().held(&held);
            tell::value("held", &(&held, &options));
            let client = self.client(pool.clone());
            let request = client.get(self.plain.url("/")).with_extension(options);
            assert_eq!(request.send().await.unwrap().status(), StatusCode::OK, "{url:.8}");
            drop(held);
            self.tower(pool.clone()).await;
            pool.shutdown().await;
        }
    }

    async fn tower(&self, pool: Pool) {
        let layer = self.builder(pool).build_layer().unwrap();
        let told = tower::ServiceBuilder::new().map_request(|send: reqwest_lease::Outgoing| {
            tell::value("send", &send);
            send
        });
        let service = layer.layer(told.service(Sender));
        tell::value("tower", &(&layer, layer.layer(Sender)));
        for page in self.pages() {
            let request = Request::new(Method::GET, page.parse().unwrap());
            if let Err(error) = service.clone().oneshot(request).await {
                tell::error("tower", &*error);
            }
        }
    }

    async fn endpoints_that_fail(&self) {
        let other = Manners { credentials: Some((USER, "another")), ..Manners::default() };
        let (wrong, dead) = (
            ForwardProxy::start(other.clone()).await.unwrap(),
            ForwardProxy::start(other).await.unwrap(),
        );
        let dead_url = dead.url();
        dead.kill().await;
        let socks = Microsocks::start(Some((USER, "another")));
        let foreign = Origin::https(|_| text(StatusCode::OK, "")).await;
        let foreign = TlsFront::start(foreign.authority(), wrong.address()).await;
        let mut urls = vec![
            wrong.url(),
            dead_url.clone(),
            dead_url.replace("http", "socks5h"),
            dead_url.replace("http", "https"),
            foreign.url(),
            "http://no-such-host.invalid:1".to_owned(),
        ];
        urls.extend(["socks5", "socks5h", "socks4", "socks4a"].map(|scheme| socks.url(scheme)));
        let faults = [
            Fault::Closes,
            Fault::RefusesCredentials,
            Fault::BadGateway,
            Fault::Stalls,
            Fault::DiesAfter(10),
            Fault::Says("HTTP/1.1 403 No\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\n\r\n"),
            Fault::Says("HTTP/1.1 401 No\r\nServer: tinyproxy\r\n\r\n"),
            Fault::Says("HTTP/1.1 502 No\r\nProxy-Status: p; error=dns_error\r\n\r\n"),
            Fault::Says("HTTP/1.1 429 Slow\r\n\r\n"),
            Fault::Says("no HTTP\r\n\r\n"),
            Fault::Tunnels("no TLS"),
        ];
        let mut proxies = Vec::new();
        for fault in faults {
            let proxy = FaultProxy::start(fault).await;
            urls.push(proxy.url());
            proxies.push(proxy);
        }
        let mut socks_proxies = Vec::new();
        for fault in SOCKS_FAULTS {
            let proxy = SocksFaultProxy::start(fault).await;
            urls.push(proxy.url());
            socks_proxies.push(proxy);
        }
        for url in urls {
            let spy = Spy::default();
            let pool = spy.pool(inventory(&url)).await.max_wait(Duration::ZERO);
            let pool = pool.build().await.unwrap();
            let client = self.client(pool.clone());
            for page in [self.plain.url("/"), self.tls.url("/")] {
                tell_answer(&url, client.get(page).timeout(SHORT).send().await).await;
                // Out of quarantine and cooldown for the next page.
                let id = EndpointId::new("a").unwrap();
                let _ = pool.administer(reqwest_lease::Order::Enable(vec![id])).await;
            }
            pool.shutdown().await;
        }
    }

    async fn requests_that_are_refused(&self) {
        let good = Manners { credentials: Some((USER, PASSWORD)), ..Manners::default() };
        let proxy = ForwardProxy::start(good).await.unwrap();
        let pool = Spy::default().pool(inventory(&proxy.url())).await.max_wait(SHORT);
        let pool = pool.build().await.unwrap();
        let slow = Budgets::builder().default(Budget::per_day(1)).build().unwrap();
        for changed in [
            self.builder(pool.clone()).redirects(Redirects::limited(0)),
            self.builder(pool.clone()).targets(Targets::public()),
            self.builder(pool.clone()).budgets(slow),
            self.builder(pool.clone()).timeout(Duration::from_nanos(1)),
        ] {
            let client = changed.build().unwrap().into_client();
            self.fetch("refused", &client).await;
        }
        let client = self.client(pool.clone());
        let userinfo = format!("//{TARGET_CORE}:{TARGET_CORE}@");
        for scheme in ["ws", "ftp"] {
            let url = self.plain.url("/").replace("http:", &format!("{scheme}:"));
            let url = url.replace("//", &userinfo);
            tell_answer(
                "refused",
                client.execute(Request::new(Method::GET, url.parse().unwrap())).await,
            )
            .await;
        }
        let options = LeaseOptions::new().pool(PoolName::new("unknown").unwrap());
        for (version, options) in [
            (http::Version::HTTP_3, LeaseOptions::new()),
            (http::Version::HTTP_11, options),
            (http::Version::HTTP_11, LeaseOptions::new().ttl(Duration::ZERO)),
            (http::Version::HTTP_11, LeaseOptions::new().ttl(Duration::MAX)),
        ] {
            let request = client.get(self.plain.url("/")).version(version);
            tell_answer("refused", request.with_extension(options).send().await).await;
        }
        self.a_template_that_panics(pool.clone()).await;
        pool.shutdown().await;
        self.fetch("closed", &client).await;
    }

    async fn a_template_that_panics(&self, pool: Pool) {
        let built = AtomicBool::new(false);
        let builder = self.builder(pool).template(move |builder| {
            assert!(!built.swap(true, Ordering::SeqCst), "no second client");
            builder
        });
        let client = builder.build().unwrap().into_client();
        let panicked = tokio::spawn(client.get(self.plain.url("/")).send()).await.unwrap_err();
        tell::error("panicked", &panicked);
    }

    async fn leases_that_end(&self) {
        let stalls = FaultProxy::start(Fault::Stalls).await;
        let spy = Spy::default();
        let pool = spy.pool(inventory(&stalls.url())).await.ttl(SHORT).max_wait(SHORT);
        let pool = pool.expiry_cooldown(SHORT).build().await.unwrap();
        let client = self.client(pool.clone());
        let page = self.plain.url("/");
        tell_answer("lease expired", client.get(&page).send().await).await;
        let held = hold_when_free(&pool).await;
        tell_answer("exhausted", client.get(&page).send().await).await;
        // Nobody renews in time: the store is down.
        spy.goes_down(true);
        eventually("the held lease to end", || (!held.is_valid()).then_some(())).await;
        let request = client.get(&page).with_extension(LeaseOptions::new().held(&held));
        tell_answer("held and expired", request.send().await).await;
        drop(held);
        pool.shutdown().await;
    }

    async fn a_store_that_goes_down(&self) {
        let good = Manners { credentials: Some((USER, PASSWORD)), ..Manners::default() };
        let proxy = ForwardProxy::start(good).await.unwrap();
        let spy = Spy::default();
        let pool = spy.pool(inventory(&proxy.url())).await.max_wait(SHORT);
        let pool = pool.build().await.unwrap();
        let client = self.client(pool.clone());
        let response = client.get(self.plain.url("/")).send().await.unwrap();
        spy.goes_down(true);
        drop(response);
        tell_answer("down", client.get(self.plain.url("/")).send().await).await;
        let dropped = client.get(self.plain.url("/")).send();
        assert!(tokio::time::timeout(SHORT / 10, dropped).await.is_err());
        pool.shutdown().await;
        tell::value("counts", &pool.counts());
        assert!(pool.counts().releases_failed > 0 && pool.counts().cancels_failed > 0);
    }
}

const SOCKS_FAULTS: [SocksFault; 6] = [
    SocksFault::Closes,
    SocksFault::Greets(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    SocksFault::Login(1),
    SocksFault::Replies(2),
    SocksFault::Replies(5),
    SocksFault::Cuts,
];

/// The default classifier, with everything that it is shown told.
struct Telling;

impl Classifier for Telling {
    fn failure(&self, failed: &Failed<'_>) -> Outcome {
        let outcome = DefaultClassifier::new().failure(failed);
        tell::value("failed", failed);
        tell::error("failed", failed.error);
        tell::value("outcome", &(outcome, outcome.to_string()));
        outcome
    }

    fn answer(&self, answer: &Answer<'_>) -> Outcome {
        tell::value("answer", answer);
        DefaultClassifier::new().answer(answer)
    }
}

/// A held lease, asked for until there is one.
async fn hold_when_free(pool: &Pool) -> HeldLease {
    let deadline = Instant::now() + SOON;
    loop {
        match pool.hold().await {
            Ok(held) => return held,
            Err(error) => tell::error("hold", &error),
        }
        assert!(Instant::now() < deadline, "no lease came free");
    }
}

fn inventory(url: &str) -> Inventory {
    let id = EndpointId::new("a").unwrap();
    Inventory::from_endpoints([Endpoint::new(id, url, Some((USER, PASSWORD))).unwrap()]).unwrap()
}

async fn tell_answer(what: &str, answer: reqwest_middleware::Result<reqwest::Response>) {
    match answer {
        Ok(response) => {
            tell::value(what, &response);
            tell::value(what, &response.extensions().get::<LeaseInfo>());
            if let Err(error) = response.bytes().await {
                tell::error(what, &error);
            }
        }
        Err(error) => {
            tell::value(what, &error);
            if let Some(ours) = reqwest_lease::Error::find_in(&error) {
                tell::error(what, ours);
            }
            if let reqwest_middleware::Error::Middleware(inner) = &error {
                println!("{what}: {inner} / {inner:#} / {inner:?} / {inner:#?}");
            }
            tell::error(what, &error);
        }
    }
}

/// For the twin: each line that begins so holds one secret in one form.
#[test]
fn secrets_are_told() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    tell::everything();
    if !tell::leaks() {
        return;
    }
    let token = reqwest_lease::Token::random();
    tell::token(token);
    let bytes = token.expose();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let encoded = PASSWORD.bytes().map(|byte| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    let encoded: String = encoded.collect();
    let url = format!("http://{USER}@127.0.0.1:1");
    tracing::trace!(password = PASSWORD, "leak: ");
    tracing::info!("leak: {:?}", PASSWORD);
    log::debug!("leak: {PASSWORD}");
    eprintln!("leak: {encoded}");
    println!("leak: {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    println!("leak: {}", STANDARD.encode(PASSWORD));
    println!("leak: {}", STANDARD.encode(format!("x{PASSWORD}")));
    println!("leak: {:?}", PASSWORD_CORE.as_bytes());
    println!("leak: {:?}", Proxy::all(url).unwrap());
    println!("leak: http://{TARGET_CORE}:x@h/");
    println!("leak: {hex}");
    println!("leak: {}", hex.to_uppercase());
    println!("leak: {bytes:?}");
    println!("leak: {}", u128::from_be_bytes(bytes));
}

/// For the twin: a client that is not this crate's.
#[tokio::test]
async fn a_verbose_client_is_told() {
    tell::everything();
    if !tell::leaks() {
        return;
    }
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let origins = Origins::start().await;
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(origins.tls.authority().client_config())
        .proxy(Proxy::all(proxy.url()).unwrap().basic_auth(USER, PASSWORD_CORE))
        .connection_verbose(true)
        .timeout(SOON);
    let response = client.build().unwrap().get(origins.plain.url("/")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}
