//! Every kind of endpoint and every way to hold one.

use reqwest_lease::{LeaseOptions, Mode, Pool, PoolName};

use super::{LOGIN, Scene, endpoint, pool_of};
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::Outgoing;
use crate::support::microsocks::Microsocks;
use crate::support::origin::Origin;
use crate::support::squid::Squid;
use crate::support::tinyproxy::Tinyproxy;
use crate::support::tls::TlsFront;

async fn carries(scene: &Scene, url: &str, login: Option<(&str, &str)>, proxy: &dyn Outgoing) {
    let before = scene.visits().len();
    let client = scene.client_of(pool_of(endpoint(url, login)).await, |builder| builder);
    for host in ["127.0.0.1", "localhost"] {
        for origin in [&scene.plain, &scene.tls] {
            let page = origin.url("/").replace("127.0.0.1", host);
            let response = client
                .get(&page)
                .send()
                .await
                .unwrap_or_else(|error| panic!("{url} {page}: {error:?}"));
            assert_eq!(response.text().await.unwrap(), "hello", "{url} {page}");
        }
    }
    scene.came_by(&[proxy], before + 4).await;
}

#[tokio::test]
async fn socks_endpoints_carry_http_and_https() {
    for scheme in ["socks5", "socks5h"] {
        let (scene, open) = (Scene::start().await, Microsocks::start(None));
        carries(&scene, &open.url(scheme), None, &open).await;
        let (scene, closed) = (Scene::start().await, Microsocks::start(Some(LOGIN)));
        carries(&scene, &closed.url(scheme), Some(LOGIN), &closed).await;
    }
}

#[tokio::test]
async fn a_socks_endpoint_that_refuses_is_no_reason_to_go_direct() {
    let (scene, proxy) = (Scene::start().await, Microsocks::start(Some(LOGIN)));
    for (scheme, login) in [
        ("socks5", Some(("worker", "wrong"))),
        ("socks5h", Some(("worker", "wrong"))),
        ("socks5h", None),
        // It speaks SOCKS 5 alone.
        ("socks4", None),
        ("socks4a", None),
    ] {
        let pool = pool_of(endpoint(&proxy.url(scheme), login)).await;
        let client = scene.client_of(pool, |builder| builder);
        for url in [scene.plain.url("/"), scene.tls.url("/")] {
            assert!(client.get(url).send().await.is_err(), "{scheme}");
        }
    }
    scene.came_by(&[], 0).await;
}

#[tokio::test]
async fn an_https_endpoint_carries_http_and_https() {
    let scene = Scene::start().await;
    let front = TlsFront::start(scene.tls.authority(), scene.proxy.address()).await;
    carries(&scene, &front.url(), Some(LOGIN), &scene.proxy).await;
}

#[tokio::test]
async fn an_https_endpoint_with_a_foreign_certificate_is_no_reason_to_go_direct() {
    let (scene, other) = (Scene::start().await, Origin::https(|_| panic!("not asked")).await);
    let front = TlsFront::start(other.authority(), scene.proxy.address()).await;
    let pool = pool_of(endpoint(&front.url(), Some(LOGIN))).await;
    let client = scene.client_of(pool, |builder| builder);
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        assert!(client.get(url).send().await.is_err());
    }
    scene.came_by(&[], 0).await;
}

#[tokio::test]
async fn the_proxies_of_the_distribution_carry_http_and_https() {
    let (scene, tinyproxy) = (Scene::start().await, Tinyproxy::start(Some(("user", "password"))));
    carries(&scene, &tinyproxy.url(), Some(("user", "password")), &tinyproxy).await;
    let (scene, squid) = (Scene::start().await, Squid::start());
    carries(&scene, &squid.url(), None, &squid).await;
}

#[tokio::test]
async fn a_held_lease_keeps_to_its_endpoint() {
    let scene = Scene::start().await;
    let pool = scene.pool().await;
    let other = ForwardProxy::start(Manners::default()).await.unwrap();
    let pool_name = PoolName::new("other").unwrap();
    let others = reqwest_lease::Inventory::from_endpoints([endpoint(&other.url(), None)]).unwrap();
    let others = Pool::builder(pool_name, others).build().await.unwrap();
    let client = scene.client_of(others, |builder| builder.also(pool.clone()));
    let held = pool.hold().await.unwrap();
    let hops = scene.plain.url(&format!("/to/{}", scene.tls.url("/")));
    for _ in 0..3 {
        let request = client.get(&hops).with_extension(LeaseOptions::new().held(&held));
        assert_eq!(request.send().await.unwrap().text().await.unwrap(), "hello");
    }
    scene.came_by(&[&scene.proxy], 6).await;
    assert!(other.carried().is_empty());
    scene.proxy.kill().await;
    let request = client.get(&hops).with_extension(LeaseOptions::new().held(&held));
    assert!(request.send().await.is_err());
    scene.came_by(&[&scene.proxy], 6).await;
}

#[tokio::test]
async fn a_shared_pool_goes_through_its_endpoints() {
    let scene = Scene::start().await;
    let inventory =
        reqwest_lease::Inventory::from_endpoints([endpoint(&scene.proxy.url(), Some(LOGIN))]);
    let pool = Pool::builder(PoolName::new("test").unwrap(), inventory.unwrap())
        .mode(Mode::Shared)
        .build()
        .await
        .unwrap();
    let client = scene.client_of(pool, |builder| builder);
    let requests = (0..16).map(|_| client.get(scene.plain.url("/")).send());
    for answer in futures_util::future::join_all(requests).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    scene.came_by(&[&scene.proxy], 16).await;
}
