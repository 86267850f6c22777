//! Each guard missing once, in a plain client: the same origins see it go another way.

use reqwest::{ClientBuilder, NoProxy, Proxy};

use super::Scene;
use crate::support::{SOON, direct_connections};

/// What a template or this crate could have done wrong.
type Mistake = fn(ClientBuilder, &str) -> ClientBuilder;

#[tokio::test]
async fn the_origins_see_a_client_without_a_guard() {
    let mistakes: [(&str, Mistake); 11] = [
        ("no proxy", |builder, _| builder.no_proxy()),
        ("an unknown scheme", |builder, _| builder.proxy(all("ftp://127.0.0.1:1"))),
        ("a scheme of no proxy", |builder, _| builder.proxy(all("quic://127.0.0.1:1"))),
        ("too long a URL", |builder, url| {
            builder.proxy(all(&format!("{url}/{}", "a".repeat(70_000))))
        }),
        ("no_proxy after the proxy", |builder, url| builder.proxy(all(url)).no_proxy()),
        ("an exception", |builder, url| {
            builder.proxy(all(url).no_proxy(NoProxy::from_string("127.0.0.1")))
        }),
        ("a proxy for https alone", |builder, url| builder.proxy(Proxy::https(url).unwrap())),
        ("a closure without an answer", |builder, _| {
            builder.proxy(Proxy::custom(|_| None::<reqwest::Url>))
        }),
        ("a closure with a bad answer", |builder, _| {
            builder.proxy(Proxy::custom(|_| Some("no url")))
        }),
        ("a closure with an odd scheme", |builder, _| {
            builder.proxy(Proxy::custom(|_| Some("ftp://127.0.0.1:1")))
        }),
        ("a hidden redirect to https", |builder, url| builder.proxy(Proxy::http(url).unwrap())),
    ];
    for (what, mistake) in mistakes {
        let scene = Scene::start().await;
        let url = scene.proxy.url().replace("//", "//worker:p%2Fa%3As%20s%2541@");
        let client = mistake(scene.bare(), &url).build().unwrap();
        let page = scene.plain.url(&format!("/to/{}", scene.tls.url("/")));
        let response = client.get(page).send().await.unwrap();
        assert_eq!(response.status(), 200, "{what}");
        let direct = [&scene.plain, &scene.tls]
            .map(|origin| direct_connections(origin, &[&scene.proxy]).len());
        assert_ne!(direct, [0, 0], "{what} was not seen");
    }
}

/// The same with a client that makes no mistake, and nothing is seen.
#[tokio::test]
async fn the_origins_see_nothing_of_a_client_with_its_proxy() {
    let scene = Scene::start().await;
    let (user, password) = super::LOGIN;
    let proxy = all(&scene.proxy.url()).basic_auth(user, &password.replace('%', "%25"));
    let client = scene.bare().proxy(proxy).build().unwrap();
    assert_eq!(client.get(scene.plain.url("/")).send().await.unwrap().status(), 200);
    scene.came_by(&[&scene.proxy], 1).await;
}

#[tokio::test]
#[should_panic(expected = "direct connections")]
async fn a_connection_without_a_request_is_seen() {
    let scene = Scene::start().await;
    let _stream = tokio::net::TcpStream::connect(scene.tls.address()).await.unwrap();
    scene.nobody_else_than(&[&scene.proxy]).await;
}

#[tokio::test]
async fn a_unix_socket_goes_past_a_proxy() {
    let (scene, directory) = (Scene::start().await, tempfile::tempdir().unwrap());
    let path = directory.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let client = scene.bare().proxy(all(&scene.proxy.url())).unix_socket(path);
    let client = client.build().unwrap();
    let sent = tokio::spawn(client.get(scene.plain.url("/")).send());
    tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap();
    sent.abort();
    assert!(scene.proxy.carried().is_empty());
}

fn all(url: &str) -> Proxy {
    Proxy::all(url).unwrap()
}
