//! Redirects, dying proxies and pools without an endpoint.

use futures_util::future::join_all;
use http::StatusCode;
use reqwest_lease::{
    Endpoint, EndpointId, Inventory, Kind, LeaseBuilder, LeaseMiddleware, Order, Pool, PoolName,
};

use super::{Scene, endpoint, kind, pool_of};
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::fault::{Fault, FaultProxy};
use crate::support::{Outgoing, SOON};

#[tokio::test]
async fn every_hop_of_a_redirect_goes_through_the_endpoint() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    let elsewhere = |url: String| url.replace("127.0.0.1", "localhost");
    let chains = [
        scene.plain.url(&format!("/to/{}", scene.tls.url("/"))),
        scene.tls.url(&format!("/to/{}", scene.plain.url("/"))),
        scene.plain.url(&format!("/to/{}", elsewhere(scene.plain.url("/")))),
        scene.tls.url(&format!("/to/{}", elsewhere(scene.tls.url("/")))),
        elsewhere(scene.plain.url(&format!("/to/{}", scene.plain.url("/")))),
    ];
    for chain in &chains {
        let response = client.post(chain).body("body").send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "hello", "{chain}");
    }
    scene.came_by(&[&scene.proxy], 2 * chains.len()).await;
    for visit in scene.visits() {
        assert!(!visit.headers.contains_key("proxy-authorization"), "{visit:?}");
    }
}

#[tokio::test]
async fn a_redirect_out_of_http_is_not_followed() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    for target in ["ftp://127.0.0.1/", "ws://127.0.0.1/", "data:,x"] {
        let page = scene.plain.url(&format!("/to/{target}"));
        let error = client.get(page).send().await.unwrap_err();
        assert_eq!(kind(&error), Some(Kind::TargetRefused), "{target}");
    }
    // What names no host is no redirect, as reqwest has it.
    for target in ["file:///etc/passwd", "urn:isbn:1"] {
        let page = scene.plain.url(&format!("/to/{target}"));
        let response = client.get(page).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT, "{target}");
    }
    scene.came_by(&[&scene.proxy], 5).await;
}

#[tokio::test]
async fn a_pool_without_a_free_endpoint_sends_nothing() {
    let scene = Scene::start().await;
    let all = || vec![EndpointId::new("a").unwrap()];
    for (order, expected) in [
        (Order::Disable(all()), Kind::PoolExhausted),
        (Order::Drain(all()), Kind::PoolExhausted),
        (Order::Remove(all()), Kind::PoolExhausted),
        (Order::Pause, Kind::PoolPaused),
    ] {
        let pool = scene.pool().await;
        pool.administer(order).await.unwrap();
        refused_by(&scene, pool, expected).await;
    }
    let leased = scene.pool().await;
    let _held = leased.hold().await.unwrap();
    refused_by(&scene, leased, Kind::PoolExhausted).await;
    let closed = scene.pool().await;
    closed.shutdown().await;
    refused_by(&scene, closed, Kind::PoolClosed).await;
    scene.came_by(&[], 0).await;
}

async fn refused_by(scene: &Scene, pool: Pool, expected: Kind) {
    let client = scene.client_of(pool, |builder| builder);
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        let error = client.get(url).send().await.unwrap_err();
        assert_eq!(kind(&error), Some(expected));
    }
}

#[tokio::test]
async fn a_pool_whose_endpoints_all_cool_sends_nothing() {
    let scene = Scene::start().await;
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let dead = proxy.url();
    proxy.kill().await;
    let pool = pool_of(endpoint(&dead, None)).await;
    let client = scene.client_of(pool.clone(), |builder| builder);
    let error = client.get(scene.plain.url("/")).send().await.unwrap_err();
    assert_eq!(kind(&error), Some(Kind::ProxyUnreachable));
    assert_eq!(pool.status().await.unwrap().cooling, 1);
    refused_by(&scene, pool, Kind::PoolExhausted).await;
    scene.came_by(&[], 0).await;
}

#[tokio::test]
async fn a_faulty_proxy_is_no_reason_to_go_direct() {
    let scene = Scene::start().await;
    for fault in [
        Fault::Closes,
        Fault::RefusesCredentials,
        Fault::BadGateway,
        Fault::Stalls,
        Fault::DiesAfter(10),
    ] {
        let proxy = FaultProxy::start(fault).await;
        let pool = pool_of(endpoint(&proxy.url(), None)).await;
        let timeout = if fault == Fault::Stalls { SOON / 100 } else { SOON };
        let client = scene.client_of(pool, |builder| builder.timeout(timeout));
        for url in [scene.plain.url("/"), scene.tls.url("/")] {
            if let Ok(response) = client.get(url).send().await {
                let good = response.status() == StatusCode::OK;
                assert!(!(good && response.bytes().await.is_ok()), "{fault:?}");
            }
        }
    }
    scene.came_by(&[], 0).await;
}

#[tokio::test]
async fn a_proxy_that_dies_in_the_middle_of_requests_is_followed_by_another() {
    let scene = Scene::start().await;
    let mortal = Manners { dies_after: Some(3), ..Manners::default() };
    let first = ForwardProxy::start(mortal).await.unwrap();
    let second = ForwardProxy::start(Manners::default()).await.unwrap();
    let client = scene.client_of(two(&first, &second).await, |builder| builder);
    let fetch = async |url: String| client.get(url).send().await.ok()?.text().await.ok();
    let fetches = (0..32).map(|nth| match nth % 2 {
        0 => fetch(scene.plain.url("/")),
        _ => fetch(scene.tls.url("/")),
    });
    let good = join_all(fetches).await.into_iter().flatten().count();
    assert!(good >= 24, "{good} of 32 got through");
    let proxies: [&dyn Outgoing; 2] = [&first, &second];
    scene.nobody_else_than(&proxies).await;
}

async fn two(one: &ForwardProxy, other: &ForwardProxy) -> Pool {
    let endpoints = [("a", one), ("b", other)].map(|(id, proxy)| {
        Endpoint::new(EndpointId::new(id).unwrap(), &proxy.url(), None).unwrap()
    });
    let inventory = Inventory::from_endpoints(endpoints).unwrap();
    Pool::builder(PoolName::new("test").unwrap(), inventory).max_wait(SOON).build().await.unwrap()
}

#[tokio::test]
async fn an_endpoint_that_a_reload_moves_is_left_at_once() {
    let scene = Scene::start().await;
    let other = ForwardProxy::start(Manners::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("inventory.toml");
    let point_at = |proxy: &ForwardProxy| {
        let text = format!("[[endpoint]]\nid = 'a'\nurl = '{}'\n", proxy.url());
        std::fs::write(&file, text).unwrap();
    };
    let first = ForwardProxy::start(Manners::default()).await.unwrap();
    point_at(&first);
    let inventory = Inventory::from_file(&file).await.unwrap();
    let name = PoolName::new("test").unwrap();
    let pool = Pool::builder(name, inventory).build().await.unwrap();
    let client = scene.client_of(pool.clone(), |builder: LeaseBuilder| builder);
    assert_eq!(client.get(scene.plain.url("/")).send().await.unwrap().status(), 200);
    point_at(&other);
    pool.reload().await.unwrap();
    assert_eq!(client.get(scene.plain.url("/")).send().await.unwrap().status(), 200);
    assert_eq!((first.carried().len(), other.carried().len()), (1, 1));
    scene.came_by(&[&first, &other], 2).await;
}

/// The client underneath is all that a request can reach that misses the middleware.
#[tokio::test]
async fn the_client_underneath_reaches_nothing() {
    let scene = Scene::start().await;
    let client = LeaseMiddleware::builder(scene.pool().await)
        .tls(scene.tls.authority().client_config())
        .build()
        .unwrap()
        .into_client_with(|builder| {
            builder.with_init(|request: reqwest_middleware::RequestBuilder| request)
        });
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        let (split, request) = client.get(&url).build_split();
        let bare: &reqwest::Client = split.as_ref();
        assert!(bare.execute(request.unwrap()).await.unwrap_err().is_connect());
        assert!(bare.get(&url).send().await.is_err());
    }
    scene.came_by(&[], 0).await;
    scene.gets_through(&client).await;
}
