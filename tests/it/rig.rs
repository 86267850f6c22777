//! The tests' own tools, each shown to see what it is there to see.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use reqwest::{Client, ClientBuilder, Proxy};
use tokio_rustls::rustls::crypto::ring;

use crate::local::proxy::{ForwardProxy, Manners};
use crate::local::site::{LONG_PAGE, Site};
use crate::support::fault::{Fault, FaultProxy};
use crate::support::microsocks::Microsocks;
use crate::support::origin::{Origin, text};
use crate::support::program::Program;
use crate::support::squid::Squid;
use crate::support::tinyproxy::Tinyproxy;
use crate::support::{Outgoing, SOON, direct_connections, eventually};

pub(crate) fn client() -> ClientBuilder {
    // A second installation is refused and needless.
    let _ = ring::default_provider().install_default();
    Client::builder().no_proxy().timeout(SOON)
}

fn through(url: &str) -> Client {
    client().proxy(Proxy::all(url).unwrap()).build().unwrap()
}

fn through_with(url: &str, user: &str, password: &str) -> Client {
    client().proxy(Proxy::all(url).unwrap().basic_auth(user, password)).build().unwrap()
}

async fn hello() -> Origin {
    Origin::http(|_| text(StatusCode::OK, "hello")).await
}

async fn status(client: &Client, url: String) -> StatusCode {
    client.get(url).send().await.unwrap().status()
}

#[tokio::test]
async fn the_recorder_sees_a_direct_connection_among_carried_ones() {
    let (origin, proxy) = (hello().await, ForwardProxy::start(Manners::default()).await.unwrap());
    status(&through(&proxy.url()), origin.url("/carried")).await;
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
    status(&client().build().unwrap(), origin.url("/direct")).await;
    let direct = direct_connections(&origin, &[&proxy]);
    assert_eq!(direct.iter().map(|visit| visit.path.as_str()).collect::<Vec<_>>(), ["/direct"]);
}

#[tokio::test]
async fn a_tunnel_is_carried_too() {
    let origin = Origin::https(|_| text(StatusCode::OK, "hello")).await;
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let client = client()
        .tls_backend_preconfigured(origin.authority().client_config())
        .proxy(Proxy::all(proxy.url()).unwrap())
        .build()
        .unwrap();
    assert_eq!(status(&client, origin.url("/")).await, StatusCode::OK);
    assert_eq!(origin.visits().len(), 1);
    assert_eq!(proxy.carried().len(), 1);
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
}

#[tokio::test]
async fn a_password_is_asked_for_and_not_passed_on() {
    let manners = Manners { credentials: Some(("user", "pass word")), ..Manners::default() };
    let (origin, proxy) = (hello().await, ForwardProxy::start(manners).await.unwrap());
    let refused = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
    assert_eq!(status(&through(&proxy.url()), origin.url("/")).await, refused);
    let wrong = through_with(&proxy.url(), "user", "password");
    assert_eq!(status(&wrong, origin.url("/")).await, refused);
    assert!(origin.visits().is_empty());
    let right = through_with(&proxy.url(), "user", "pass word");
    assert_eq!(status(&right, origin.url("/")).await, StatusCode::OK);
    assert!(!origin.visits()[0].headers.contains_key("proxy-authorization"));
}

#[tokio::test]
async fn a_killed_proxy_cuts_its_tunnels_and_refuses_the_next() {
    let (origin, proxy) = (hello().await, ForwardProxy::start(Manners::default()).await.unwrap());
    let address = proxy.url().trim_start_matches("http://").to_owned();
    let target = origin.url("").trim_start_matches("http://").to_owned();
    let mut tunnel = tokio::task::spawn_blocking({
        let address = address.clone();
        move || {
            let mut tunnel = TcpStream::connect(address).unwrap();
            tunnel.set_read_timeout(Some(SOON)).unwrap();
            write!(tunnel, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
            let mut answer = [0; 15];
            tunnel.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200 OK");
            tunnel
        }
    })
    .await
    .unwrap();
    proxy.kill().await;
    let rest = tokio::task::spawn_blocking(move || {
        let mut rest = Vec::new();
        // A reset ends the tunnel as well as an end of file does.
        tunnel.read_to_end(&mut rest).map_err(|error| error.kind())
    });
    assert_ne!(rest.await.unwrap(), Err(std::io::ErrorKind::WouldBlock));
    assert!(TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn a_mortal_proxy_dies_when_its_time_has_come() {
    let manners = Manners { dies_after: Some(2), ..Manners::default() };
    let (origin, proxy) = (hello().await, ForwardProxy::start(manners).await.unwrap());
    let client = through(&proxy.url());
    for _ in 0..2 {
        assert_eq!(status(&client, origin.url("/")).await, StatusCode::OK);
    }
    assert!(client.get(origin.url("/")).send().await.is_err());
    assert!(client.get(origin.url("/")).send().await.unwrap_err().is_connect());
    assert_eq!(origin.visits().len(), 2);
}

#[tokio::test]
async fn the_site_has_its_corners() {
    let site = Site::start().await.unwrap();
    let client = client().build().unwrap();
    let long = client.get(site.url("/long.html")).send().await.unwrap();
    assert_eq!(long.bytes().await.unwrap().len(), LONG_PAGE);
    let moved = client.get(site.url("/old")).send().await.unwrap();
    assert_eq!(moved.url().path(), "/topics/1.html");
    assert_eq!(status(&client, site.url("/topics/7.html")).await, StatusCode::NOT_FOUND);
    let paths: Vec<_> = site.visits().into_iter().map(|visit| visit.path).collect();
    assert_eq!(paths, ["/long.html", "/old", "/topics/1.html", "/topics/7.html"]);
}

#[tokio::test]
async fn tinyproxy_carries_logs_and_can_be_told_apart() {
    let (origin, proxy) = (hello().await, Tinyproxy::start(Some(("user", "password"))));
    assert!(status(&through(&proxy.url()), origin.url("/")).await.is_client_error());
    assert!(origin.visits().is_empty());
    let client = through_with(&proxy.url(), "user", "password");
    assert_eq!(status(&client, origin.url("/page")).await, StatusCode::OK);
    let asked = ("GET".to_owned(), origin.url("/page"));
    eventually("a line in the log", || proxy.requests().contains(&asked).then_some(())).await;
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
    assert_eq!(direct_connections(&origin, &[]).len(), 1);
}

#[tokio::test]
async fn squid_carries_logs_and_can_be_told_apart() {
    let (origin, proxy) = (hello().await, Squid::start());
    assert_eq!(status(&through(&proxy.url()), origin.url("/page")).await, StatusCode::OK);
    let asked = ("GET".to_owned(), origin.url("/page"));
    eventually("a line in the log", || proxy.requests().contains(&asked).then_some(())).await;
    let others = [&Tinyproxy::start(None) as &dyn Outgoing];
    assert_eq!(direct_connections(&origin, &others).len(), 1);
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
}

#[tokio::test]
async fn microsocks_carries_and_can_be_told_apart() {
    let (origin, proxy) = (hello().await, Microsocks::start(Some(("user", "password"))));
    let wrong = through(&proxy.url("socks5h")).get(origin.url("/")).send().await.unwrap_err();
    assert!(wrong.is_connect(), "{wrong:?}");
    assert!(origin.visits().is_empty());
    let client = through_with(&proxy.url("socks5h"), "user", "password");
    assert_eq!(status(&client, origin.url("/")).await, StatusCode::OK);
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
    assert_eq!(direct_connections(&origin, &[]).len(), 1);
}

#[tokio::test]
async fn a_dropped_program_is_gone() {
    let proxy = Tinyproxy::start(None);
    let process = PathBuf::from(format!("/proc/{}", proxy.id()));
    assert!(process.exists());
    drop(proxy);
    assert!(!process.exists());
}

#[test]
#[should_panic(expected = "no-such-program is missing: apt-get install -y its-package")]
fn a_missing_program_fails_with_the_way_to_install_it() {
    Program::start("no-such-program", "its-package", |_, _| Vec::new());
}

#[tokio::test]
async fn every_fault_shows_as_what_it_is() {
    let origin = hello().await;
    let ask = async |fault, timeout| {
        let proxy = FaultProxy::start(fault).await;
        let client = client().proxy(Proxy::all(proxy.url()).unwrap()).timeout(timeout);
        let response = client.build().unwrap().get(origin.url("/")).send().await?;
        let status = response.status();
        response.bytes().await.map(|_| status)
    };
    let failed = ask(Fault::Closes, SOON).await.unwrap_err();
    assert!(!failed.is_timeout() && !failed.is_connect(), "{failed:?}");
    let refused = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
    assert_eq!(ask(Fault::RefusesCredentials, SOON).await.unwrap(), refused);
    assert_eq!(ask(Fault::BadGateway, SOON).await.unwrap(), StatusCode::BAD_GATEWAY);
    let stalled = ask(Fault::Stalls, Duration::from_millis(50)).await.unwrap_err();
    assert!(stalled.is_timeout(), "{stalled:?}");
    let cut = ask(Fault::DiesAfter(100), SOON).await.unwrap_err();
    assert!(cut.is_decode() || cut.is_body(), "{cut:?}");
    assert!(origin.visits().is_empty());
}

#[tokio::test]
async fn a_proxy_that_refuses_tunnels_is_no_way_to_an_https_origin() {
    let origin = Origin::https(|_| text(StatusCode::OK, "hello")).await;
    let proxy = FaultProxy::start(Fault::BadGateway).await;
    let client = client()
        .tls_backend_preconfigured(origin.authority().client_config())
        .proxy(Proxy::all(proxy.url()).unwrap())
        .build()
        .unwrap();
    assert!(client.get(origin.url("/")).send().await.unwrap_err().is_connect());
    assert!(origin.visits().is_empty());
}
