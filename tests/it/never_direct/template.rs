//! A template cannot lead past the endpoint.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::{HeaderMap, HeaderValue, PROXY_AUTHORIZATION};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, NoProxy, Proxy};
use reqwest_lease::{Kind, LeaseLayer};

use super::{Scene, endpoint, kind, pool_of};
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::SOON;

type Trick = fn(ClientBuilder, &str) -> ClientBuilder;

fn headers(name: &'static str, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())])
}

#[tokio::test]
async fn what_a_template_does_with_proxies_has_no_effect() {
    let tricks: [(&str, Trick); 12] = [
        ("nothing", |builder, _| builder),
        ("no_proxy", |builder, _| builder.no_proxy()),
        ("all", |builder, other| builder.proxy(Proxy::all(other).unwrap())),
        ("http", |builder, other| builder.proxy(Proxy::http(other).unwrap())),
        ("https", |builder, other| builder.proxy(Proxy::https(other).unwrap())),
        ("all, then no_proxy", |builder, other| {
            builder.proxy(Proxy::all(other).unwrap()).no_proxy()
        }),
        ("none", |builder, _| builder.proxy(Proxy::custom(|_| None::<reqwest::Url>))),
        ("custom", |builder, other| {
            let other = other.to_owned();
            builder.proxy(Proxy::custom(move |_| Some(other.clone())))
        }),
        ("exceptions", |builder, other| {
            let exceptions = NoProxy::from_string("*,127.0.0.1,localhost");
            builder.proxy(Proxy::all(other).unwrap().no_proxy(exceptions))
        }),
        ("from the environment", |builder, other| {
            builder.proxy(Proxy::all(other).unwrap().no_proxy(NoProxy::from_env()))
        }),
        ("a builder of its own", |_, other| ClientBuilder::new().proxy(Proxy::all(other).unwrap())),
        ("a bad scheme", |builder, _| builder.proxy(Proxy::all("ftp://127.0.0.1:1").unwrap())),
    ];
    for (what, trick) in tricks {
        let scene = Scene::start().await;
        let other = ForwardProxy::start(Manners::default()).await.unwrap();
        let url = other.url();
        let client =
            scene.client(|builder| builder.template(move |builder| trick(builder, &url))).await;
        scene.gets_through(&client).await;
        assert!(other.carried().is_empty(), "{what}");
    }
}

#[tokio::test]
async fn what_a_template_may_do_leads_through_the_endpoint_too() {
    let tricks: [(&str, Trick); 11] = [
        ("redirects", |builder, _| builder.redirect(reqwest::redirect::Policy::limited(5))),
        ("resolve", |builder, origin| builder.resolve("localhost", origin.parse().unwrap())),
        ("local address", |builder, _| builder.local_address(IpAddr::from([127, 0, 0, 1]))),
        ("a layer", |builder, _| builder.connector_layer(tower::layer::util::Identity::new())),
        ("no idle connections", |builder, _| builder.pool_max_idle_per_host(0)),
        ("http/1 only", |builder, _| builder.http1_only()),
        ("other TLS", |builder, _| builder.tls_danger_accept_invalid_certs(true)),
        ("verbose", |builder, _| builder.connection_verbose(true)),
        ("retries", |builder, _| builder.retry(reqwest::retry::for_host("127.0.0.1"))),
        ("words in a header", |builder, _| {
            builder.default_headers(headers("x-note", "unix_socket: \"proxy-authorization\": x"))
        }),
        ("words in the user agent", |builder, _| builder.user_agent("unix_socket/1 \\")),
    ];
    for (what, trick) in tricks {
        let scene = Scene::start().await;
        let origin = scene.plain.address().to_string();
        println!("{what}");
        let client =
            scene.client(|builder| builder.template(move |builder| trick(builder, &origin))).await;
        scene.gets_through(&client).await;
    }
}

#[tokio::test]
async fn a_template_for_https_only_refuses_http() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder.template(|builder| builder.https_only(true))).await;
    assert!(client.get(scene.plain.url("/")).send().await.is_err());
    assert_eq!(client.get(scene.tls.url("/")).send().await.unwrap().status(), 200);
    scene.came_by(&[&scene.proxy], 1).await;
}

#[tokio::test]
async fn a_unix_socket_is_refused_when_the_client_is_built() {
    let (scene, directory) = (Scene::start().await, tempfile::tempdir().unwrap());
    for name in ["socket", "a\nb", "\"", "\\"] {
        let path = directory.path().join(name);
        let template = move |builder: ClientBuilder| builder.unix_socket(path.clone());
        let pool = scene.pool().await;
        let error = scene.builder(pool.clone()).template(template.clone()).build().unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(error.to_string().contains("unix socket"), "{error}");
        let error = LeaseLayer::builder(pool).template(template).build_layer().unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
    }
}

#[tokio::test]
async fn a_unix_socket_that_comes_later_is_refused_by_the_request() {
    let (scene, directory) = (Scene::start().await, tempfile::tempdir().unwrap());
    let path = directory.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let later = Arc::new(AtomicBool::new(false));
    let now = later.clone();
    let template = move |builder: ClientBuilder| match now.load(Ordering::SeqCst) {
        true => builder.unix_socket(path.clone()).user_agent("ends in \\"),
        false => builder,
    };
    let client = scene.client(|builder| builder.template(template)).await;
    later.store(true, Ordering::SeqCst);
    let error = client.get(scene.plain.url("/")).send().await.unwrap_err();
    assert_eq!(kind(&error), Some(Kind::Config));
    later.store(false, Ordering::SeqCst);
    scene.gets_through(&client).await;
    let accepted = tokio::time::timeout(Duration::from_millis(1), listener.accept()).await;
    assert!(accepted.is_err(), "nobody came by the socket");
}

/// It would go to https origins in clear, and in the endpoint's place to the proxy.
#[tokio::test]
async fn proxy_credentials_among_the_default_headers_are_refused() {
    let scene = Scene::start().await;
    for sensitive in [false, true] {
        let mut value = HeaderValue::from_static("Basic Y2FuYXJ5");
        value.set_sensitive(sensitive);
        let headers = HeaderMap::from_iter([(PROXY_AUTHORIZATION, value)]);
        let error = scene
            .builder(scene.pool().await)
            .template(move |builder| builder.default_headers(headers.clone()))
            .build()
            .unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(!format!("{error:?}").contains("Y2FuYXJ5"));
    }
}

/// Leads every name to one address, and remembers which names those were.
#[derive(Clone, Default)]
struct Everywhere {
    address: Option<SocketAddr>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Resolve for Everywhere {
    fn resolve(&self, name: Name) -> Resolving {
        self.asked.lock().unwrap().push(name.as_str().to_owned());
        let addresses: Addrs = Box::new(self.address.into_iter());
        Box::pin(async move { Ok(addresses) })
    }
}

#[tokio::test]
async fn a_resolver_is_asked_for_the_endpoint_alone() {
    let scene = Scene::start().await;
    let resolver = Everywhere { address: Some(scene.proxy.address()), ..Everywhere::default() };
    let url = format!("http://gateway.test:{}", scene.proxy.address().port());
    let pool = pool_of(endpoint(&url, Some(super::LOGIN))).await;
    let names = resolver.asked.clone();
    let client = scene.client_of(pool, |builder| {
        builder.template(move |builder| builder.dns_resolver(resolver.clone()))
    });
    let page = scene.plain.url("/").replace("127.0.0.1", "localhost");
    assert_eq!(client.get(page).send().await.unwrap().status(), 200);
    let page = scene.tls.url("/").replace("127.0.0.1", "localhost");
    assert_eq!(client.get(page).send().await.unwrap().status(), 200);
    scene.came_by(&[&scene.proxy], 2).await;
    assert!(names.lock().unwrap().iter().all(|name| name == "gateway.test"), "{names:?}");
}

/// A wildcard in the resolver, or in its search domains, must not give the closed way an address.
#[tokio::test]
async fn a_resolver_that_knows_every_name_opens_no_way() {
    let scene = Scene::start().await;
    let resolver = Everywhere { address: Some(scene.plain.address()), ..Everywhere::default() };
    let names = resolver.asked.clone();
    let client = scene
        .client(|builder| builder.template(move |builder| builder.dns_resolver(resolver.clone())))
        .await;
    for url in ["http://target.test/", "https://target.test/"] {
        assert!(client.as_ref().get(url).timeout(SOON).send().await.is_err());
    }
    assert!(names.lock().unwrap().is_empty(), "{names:?}");
    scene.came_by(&[], 0).await;
}

#[tokio::test]
async fn a_panicking_template_gives_the_lease_back() {
    let scene = Scene::start().await;
    let pool = scene.pool().await;
    let built = Arc::new(AtomicUsize::new(0));
    let template = move |builder: ClientBuilder| {
        assert_ne!(built.fetch_add(1, Ordering::SeqCst), 1, "the second client is not built");
        builder
    };
    let client = scene.client_of(pool.clone(), |builder| builder.template(template));
    let request = tokio::spawn(client.get(scene.plain.url("/")).send());
    assert!(request.await.unwrap_err().is_panic());
    scene.gets_through(&client).await;
    assert_eq!(pool.status().await.unwrap().leased, 0);
}
