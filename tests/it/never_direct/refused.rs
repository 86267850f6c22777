//! Requests that cannot go through a proxy, or would take something past it.

use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION, UPGRADE};
use reqwest::{Method, Request, Url};
use reqwest_lease::{Inventory, Kind, LeaseLayer, Outgoing, Sender};
use tower::{Layer, ServiceBuilder, ServiceExt};

use super::{Scene, kind};
use crate::support::SOON;

#[tokio::test]
async fn http_3_is_refused() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        let request = client.get(url).version(http::Version::HTTP_3);
        let error = request.send().await.unwrap_err();
        assert_eq!(kind(&error), Some(Kind::UnsupportedRequest));
    }
    scene.came_by(&[], 0).await;
}

/// The connection would be the caller's own, and go on when the lease is somebody else's.
#[tokio::test]
async fn tunnels_and_upgrades_are_refused() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        let tunnel = client.request(Method::CONNECT, &url);
        let upgrade = client.get(&url).header(UPGRADE, "websocket");
        for request in [tunnel, upgrade] {
            let error = request.send().await.unwrap_err();
            assert_eq!(kind(&error), Some(Kind::UnsupportedRequest));
        }
    }
    scene.came_by(&[], 0).await;
}

#[tokio::test]
async fn urls_of_other_schemes_are_refused() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    let address = scene.plain.address();
    for scheme in ["ws", "wss", "ftp", "gopher", "unix", "socks5"] {
        let url: Url = format!("{scheme}://{address}/").parse().unwrap();
        let error = client.execute(Request::new(Method::GET, url)).await.unwrap_err();
        assert_eq!(kind(&error), Some(Kind::UnsupportedRequest), "{scheme}");
    }
    for url in ["data:,x", "file:///etc/passwd", "mailto:a@b", "about:blank"] {
        let request = Request::new(Method::GET, url.parse().unwrap());
        let error = client.execute(request).await.unwrap_err();
        assert_eq!(kind(&error), Some(Kind::UnsupportedRequest), "{url}");
    }
    scene.came_by(&[], 0).await;
}

#[tokio::test]
async fn a_target_too_long_for_a_uri_is_refused() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    let url = scene.plain.url(&format!("/{}", "a".repeat(70_000)));
    assert!(client.get(url).send().await.is_err());
    scene.came_by(&[], 0).await;
}

#[test]
fn an_endpoint_that_reqwest_would_pass_over_is_refused() {
    for url in [
        "ftp://127.0.0.1:1",
        "quic://127.0.0.1:1",
        "socks://127.0.0.1:1",
        "socks6://127.0.0.1:1",
        "unix:///run/proxy.sock",
        "127.0.0.1:8080",
        &format!("http://{}.test:1", "a".repeat(70_000)),
    ] {
        let text = format!("[[endpoint]]\nid = 'a'\nurl = '{url}'\n");
        assert_eq!(Inventory::from_toml(&text).unwrap_err().kind(), Kind::Inventory, "{url:.40}");
    }
}

#[tokio::test]
async fn credentials_in_the_url_are_the_origins_alone() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        let url: Url = url.replace("//", "//us%40er:pass@").parse().unwrap();
        // Once by way of a request builder, which takes them out, and once as they are.
        assert_eq!(client.get(url.clone()).send().await.unwrap().status(), 200);
        let response = client.execute(Request::new(Method::GET, url)).await.unwrap();
        assert_eq!((response.status().as_u16(), response.url().username()), (200, ""));
    }
    scene.came_by(&[&scene.proxy], 4).await;
    for visit in scene.visits() {
        assert_eq!(visit.headers[AUTHORIZATION], "Basic dXNAZXI6cGFzcw==");
        assert!(!visit.headers.contains_key(PROXY_AUTHORIZATION));
    }
}

#[tokio::test]
async fn a_requests_own_proxy_credentials_go_nowhere() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        let request = client.get(url).header(PROXY_AUTHORIZATION, "Basic b3RoZXI6cGFzcw==");
        // The proxy wants the endpoint's, so it got them.
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    scene.came_by(&[&scene.proxy], 2).await;
    for visit in scene.visits() {
        assert!(!visit.headers.contains_key(PROXY_AUTHORIZATION), "{visit:?}");
    }
}

#[tokio::test]
async fn tower_goes_through_the_endpoint() {
    let scene = Scene::start().await;
    let layer = LeaseLayer::builder(scene.pool().await)
        .tls(scene.tls.authority().client_config())
        .timeout(SOON);
    let service = layer.build_layer().unwrap().layer(Sender);
    let hops = scene.plain.url(&format!("/to/{}", scene.tls.url("/")));
    let request = Request::new(Method::GET, hops.parse().unwrap());
    let response = service.clone().oneshot(request).await.unwrap();
    assert_eq!(response.text().await.unwrap(), "hello");
    scene.came_by(&[&scene.proxy], 2).await;
    let mut request = Request::new(Method::GET, scene.plain.url("/").parse().unwrap());
    *request.version_mut() = http::Version::HTTP_3;
    let error = service.oneshot(request).await.unwrap_err();
    let error = reqwest_lease::Error::find(&*error).unwrap();
    assert_eq!(error.kind(), Kind::UnsupportedRequest);
}

/// A layer below this crate's gets at the headers of a send alone, and not at the endpoint's
/// credentials.
#[tokio::test]
async fn a_layer_below_cannot_change_the_way() {
    let scene = Scene::start().await;
    let layer = LeaseLayer::builder(scene.pool().await)
        .tls(scene.tls.authority().client_config())
        .timeout(SOON)
        .build_layer()
        .unwrap();
    let service = ServiceBuilder::new()
        .layer(layer)
        .map_request(|mut outgoing: Outgoing| {
            let value = http::HeaderValue::from_static("Basic b3RoZXI6cGFzcw==");
            outgoing.headers_mut().insert(PROXY_AUTHORIZATION, value);
            outgoing
        })
        .service(Sender);
    for url in [scene.plain.url("/"), scene.tls.url("/")] {
        let request = Request::new(Method::GET, url.parse().unwrap());
        assert_eq!(service.clone().oneshot(request).await.unwrap().status(), 200);
    }
    scene.came_by(&[&scene.proxy], 2).await;
    for visit in scene.visits() {
        assert!(!visit.headers.contains_key(PROXY_AUTHORIZATION), "{visit:?}");
    }
}
