//! The same by every way to a target and to targets of every form.

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Method, StatusCode, Version};
use reqwest::{Client, Proxy, Request};
use reqwest_lease::{
    Endpoint, EndpointId, HeldLease, Inventory, LeaseMiddleware, LeaseOptions, Pool, PoolName,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::rustls::ClientConfig;

use super::look;
use crate::local::Listening;
use crate::local::proxy::{ForwardProxy, Manners};
use crate::rig::client;
use crate::support::h2::H2Origin;
use crate::support::microsocks::Microsocks;
use crate::support::origin::{Answer, Origin, text};
use crate::support::tls::{Authority, TlsFront};
use crate::support::v6::V6;
use crate::support::web::Web;

const LOGIN: (&str, &str) = ("us@er", "p:a/s s%41é");

/// "hello" as brotli writes it (RFC 7932), in one uncompressed meta-block.
const BROTLI: &[u8] = b"\x0b\x02\x80hello\x03";

fn answer(path: &str) -> Answer {
    match path {
        "/brotli" => {
            let mut answer = text(StatusCode::OK, BROTLI);
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
            answer
        }
        "/nothing" => text(StatusCode::NO_CONTENT, ""),
        _ => text(StatusCode::OK, "hello"),
    }
}

/// reqwest itself and a client of ours, by the same way.
struct Pair {
    reqwest: Client,
    ours: ClientWithMiddleware,
    pool: Pool,
}

impl Pair {
    async fn by(url: &str, login: Option<(&str, &str)>, mut trusted: ClientConfig) -> Self {
        let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), url, login).unwrap();
        let inventory = Inventory::from_endpoints([endpoint]).unwrap();
        let pool = Pool::builder(PoolName::new("test").unwrap(), inventory).build().await.unwrap();
        let ours = LeaseMiddleware::builder(pool.clone())
            .tls(trusted.clone())
            .template(|template| template.brotli(true));
        let mut proxy = Proxy::all(url).unwrap();
        if let Some((user, password)) = login {
            // reqwest decodes it again.
            proxy = proxy.basic_auth(user, &password.replace('%', "%25"));
        }
        trusted.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let reqwest = client().brotli(true).proxy(proxy).tls_backend_preconfigured(trusted);
        Self { reqwest: reqwest.build().unwrap(), ours: ours.build().unwrap().into_client(), pool }
    }

    async fn agree_on(&self, page: &str) -> Version {
        let mut version = None;
        for method in [Method::GET, Method::HEAD, Method::POST] {
            let request = || Request::new(method.clone(), page.parse().unwrap());
            let expected = self.reqwest.execute(request()).await.unwrap();
            let expected = look(expected).await;
            let found = self.ours.execute(request()).await.unwrap();
            version = Some(found.version());
            let found = look(found).await;
            assert_eq!(found, expected, "{method} {page}");
            let body =
                if method == Method::HEAD || page.ends_with("/nothing") { "" } else { "hello" };
            assert_eq!(found.body, Bytes::from(body), "{method} {page}");
            assert_eq!(self.pool.status().await.unwrap().leased, 0);
        }
        version.unwrap()
    }
}

#[tokio::test]
async fn every_way_leads_to_the_same_answers() {
    let origin = Origin::https(|visit| answer(&visit.path)).await;
    let plain = Origin::http(|visit| answer(&visit.path)).await;
    let trusted = || origin.authority().client_config();
    let forward = ForwardProxy::start(Manners::default()).await.unwrap();
    let manners = Manners { credentials: Some(LOGIN), ..Manners::default() };
    let closed = ForwardProxy::start(manners).await.unwrap();
    let front = TlsFront::start(origin.authority(), forward.address()).await;
    let socks = Microsocks::start(Some(("user", "password")));
    let forward_v6 = V6::before(forward.address()).await;
    let socks_v6 = V6::before(socks.address()).await;
    for (url, login) in [
        (forward.url(), None),
        (closed.url(), Some(LOGIN)),
        (front.url(), None),
        (format!("http://{}", forward_v6.address()), None),
        (socks.url("socks5"), Some(("user", "password"))),
        (socks.url("socks5h"), Some(("user", "password"))),
        (format!("socks5h://{}", socks_v6.address()), Some(("user", "password"))),
    ] {
        let pair = Pair::by(&url, login, trusted()).await;
        for page in ["/", "/brotli", "/nothing"] {
            assert_eq!(pair.agree_on(&plain.url(page)).await, Version::HTTP_11);
            assert_eq!(pair.agree_on(&origin.url(page)).await, Version::HTTP_11);
        }
    }
}

#[tokio::test]
async fn a_login_in_the_url_may_be_percent_encoded() {
    let plain = Origin::http(|visit| answer(&visit.path)).await;
    let manners = Manners { credentials: Some(LOGIN), ..Manners::default() };
    let closed = ForwardProxy::start(manners).await.unwrap();
    let url = closed.url().replace("//", "//us%40er:p%3Aa%2Fs%20s%2541%C3%A9@");
    let trusted = Authority::new(&["a.test"]).client_config();
    Pair::by(&url, None, trusted).await.agree_on(&plain.url("/")).await;
}

#[tokio::test]
async fn http_2_and_its_trailers_come_through_tunnels() {
    let origin = H2Origin::start().await;
    let forward = ForwardProxy::start(Manners::default()).await.unwrap();
    let front = TlsFront::start(origin.authority(), forward.address()).await;
    let socks = Microsocks::start(None);
    for url in [forward.url(), front.url(), socks.url("socks5h")] {
        let pair = Pair::by(&url, None, origin.authority().client_config()).await;
        for page in ["/", "/trailers"] {
            assert_eq!(pair.agree_on(&origin.url(page)).await, Version::HTTP_2, "{url}");
        }
        let response = pair.ours.get(origin.url("/trailers")).send().await.unwrap();
        assert_eq!(look(response).await.trailers.unwrap()["x-sum"], "1");
    }
}

#[tokio::test]
async fn ipv6_targets_are_reached() {
    let authority = Authority::new(&["::1"]);
    let plain = Origin::http(|visit| answer(&visit.path)).await;
    let front = TlsFront::start(&authority, plain.address()).await;
    let (plain, tls) = (V6::before(plain.address()).await, V6::before(front.address()).await);
    let forward = ForwardProxy::start(Manners::default()).await.unwrap();
    let pair = Pair::by(&forward.url(), None, authority.client_config()).await;
    pair.agree_on(&format!("http://{}/", plain.address())).await;
    // reqwest 0.13 offers an address in brackets as a server name, and fails after the tunnel.
    let page = format!("https://{}/", tls.address());
    let expected = pair.reqwest.get(&page).send().await.unwrap_err();
    let found = pair.ours.get(&page).send().await.unwrap_err();
    assert!(expected.is_connect() && found.is_connect(), "{expected:?} {found:?}");
}

#[tokio::test]
async fn international_names_are_asked_for_in_their_ascii_form() {
    let web = Web::start(|_| text(StatusCode::OK, "hello")).await;
    let pair = Pair::by(&web.url(), None, web.authority().client_config()).await;
    for scheme in ["http", "https"] {
        let page = format!("{scheme}://bücher.test/");
        assert_eq!(pair.agree_on(&page).await, Version::HTTP_11);
    }
    let urls = web.urls();
    let ascii = ["http://xn--bcher-kva.test/", "https://xn--bcher-kva.test:443/"];
    assert!(urls.iter().all(|url| ascii.contains(&url.as_str())), "{urls:?}");
    assert_eq!(urls.len(), 12);
}

/// An origin that agrees to an upgrade and sends everything back (RFC 6455 section 4.2.2 in
/// part).
async fn websocket(authority: Option<&Authority>) -> Listening {
    async fn serve<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
        mut stream: S,
    ) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                      Upgrade: websocket\r\n\r\n";
        stream.write_all(answer.as_bytes()).await?;
        loop {
            let byte = stream.read_u8().await?;
            stream.write_u8(byte).await?;
            stream.flush().await?;
        }
    }
    let acceptor = authority.map(Authority::acceptor);
    Listening::start(move |stream, _, _| {
        let acceptor = acceptor.clone();
        async move {
            let _ = match acceptor {
                None => serve(stream).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => serve(stream).await,
                    Err(error) => Err(error),
                },
            };
        }
    })
    .await
    .unwrap()
}

async fn echoes(client: &ClientWithMiddleware, held: &HeldLease, url: &str) {
    let request = client
        .get(url)
        .version(Version::HTTP_11)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .with_extension(LeaseOptions::new().held(held));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS, "{url}");
    let mut socket = response.upgrade().await.unwrap();
    socket.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    socket.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
}

#[tokio::test]
async fn websockets_open_through_tunnels() {
    let authority = Authority::new(&["127.0.0.1"]);
    let (plain, tls) = (websocket(None).await, websocket(Some(&authority)).await);
    let forward = ForwardProxy::start(Manners::default()).await.unwrap();
    let socks = Microsocks::start(None);
    for (url, pages) in [
        (forward.url(), vec![format!("https://{}/", tls.address())]),
        (
            socks.url("socks5h"),
            vec![format!("http://{}/", plain.address()), format!("https://{}/", tls.address())],
        ),
    ] {
        let pair = Pair::by(&url, None, authority.client_config()).await;
        let held = pair.pool.hold().await.unwrap();
        for page in pages {
            echoes(&pair.ours, &held, &page).await;
        }
    }
}
