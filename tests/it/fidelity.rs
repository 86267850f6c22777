//! A response is what reqwest gives, whatever it carries.

mod large;
mod ways;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, DATE, ETAG};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use http_body_util::BodyExt as _;
use reqwest::{Body, Proxy, Request, Response};
use reqwest_lease::LeaseMiddleware;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::local::Listening;
use crate::local::proxy::{ForwardProxy, Manners};
use crate::requests::pool;
use crate::rig::client;
use crate::support::client::pool_of;
use crate::support::direct_connections;
use crate::support::origin::{Origin, text};

/// All that can be asked of a response.
#[derive(Debug, PartialEq)]
struct Look {
    status: StatusCode,
    version: Version,
    url: String,
    headers: HeaderMap,
    remote: Option<std::net::SocketAddr>,
    length: Option<u64>,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

async fn look(response: Response) -> Look {
    let (status, version, url) =
        (response.status(), response.version(), response.url().to_string());
    let (remote, length) = (response.remote_addr(), response.content_length());
    let (mut parts, body) = http::Response::<Body>::from(response).into_parts();
    parts.headers.remove(DATE);
    let body = body.collect().await.unwrap();
    let (headers, trailers) = (parts.headers, body.trailers().cloned());
    Look { status, version, url, headers, remote, length, body: body.to_bytes(), trailers }
}

/// "hello" four times.
const ZIPPED: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcbH\xcd\xc9\xc9W\xc8@'\x01\xe3Q=\x8d\x17\x00\x00\x00";

async fn origin() -> Origin {
    Origin::http(|visit| match visit.path.as_str() {
        "/zipped" => {
            let mut answer = text(StatusCode::OK, ZIPPED);
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            answer
        }
        "/nothing" => text(StatusCode::NO_CONTENT, ""),
        "/unchanged" => {
            let mut answer = text(StatusCode::NOT_MODIFIED, "");
            answer.headers_mut().insert(ETAG, HeaderValue::from_static("\"1\""));
            answer
        }
        "/empty" => text(StatusCode::OK, ""),
        "/missing" => text(StatusCode::NOT_FOUND, "no such page"),
        "/long" => text(StatusCode::OK, vec![b'x'; 1 << 20]),
        _ => text(StatusCode::OK, "hello"),
    })
    .await
}

#[tokio::test]
async fn every_response_looks_as_it_does_without_a_lease() {
    let (origin, proxy) = (origin().await, ForwardProxy::start(Manners::default()).await.unwrap());
    for gzip in [true, false] {
        let reqwest = client().gzip(gzip).proxy(Proxy::all(proxy.url()).unwrap());
        let reqwest = reqwest.build().unwrap();
        let pool = pool(&[&proxy]).await;
        let builder = LeaseMiddleware::builder(pool.clone()).template(move |it| it.gzip(gzip));
        let ours = builder.build().unwrap().into_client();
        for path in
            ["/", "/zipped", "/nothing", "/unchanged", "/empty", "/missing", "/long", "/?q=%20#f"]
        {
            for method in [Method::GET, Method::HEAD, Method::POST] {
                let request = || Request::new(method.clone(), origin.url(path).parse().unwrap());
                let expected = look(reqwest.execute(request()).await.unwrap()).await;
                let found = look(ours.execute(request()).await.unwrap()).await;
                assert_eq!(found, expected, "{method} {path} {gzip}");
                let address = proxy.url().trim_start_matches("http://").parse().unwrap();
                assert_eq!(found.remote, Some(address), "the proxy's");
                assert_eq!(pool.status().await.unwrap().leased, 0);
            }
        }
        let zipped = ours.get(origin.url("/zipped")).send().await.unwrap();
        let body = zipped.bytes().await.unwrap();
        assert_eq!(body.starts_with(b"hello hello"), gzip, "{body:?}");
    }
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
}

#[tokio::test]
async fn a_response_without_a_body_holds_no_lease() {
    let (origin, proxy) = (origin().await, ForwardProxy::start(Manners::default()).await.unwrap());
    let pool = pool(&[&proxy]).await;
    let builder = LeaseMiddleware::builder(pool.clone()).template(|it| it.gzip(true));
    let client = builder.build().unwrap().into_client();
    let kept = client.get(origin.url("/")).send().await.unwrap();
    assert_eq!(pool.status().await.unwrap().leased, 1, "a body holds it");
    drop(kept);
    for (method, path) in [
        (Method::HEAD, "/long"),
        (Method::GET, "/nothing"),
        (Method::GET, "/unchanged"),
        (Method::GET, "/empty"),
    ] {
        let response = client.request(method, origin.url(path)).send().await.unwrap();
        assert_eq!(pool.status().await.unwrap().leased, 0, "{path}");
        drop(response);
    }
}

#[tokio::test]
async fn trailers_come_through() {
    let proxy = Listening::start(|mut stream, _, _| async move {
        let mut head = [0; 4096];
        if matches!(stream.read(&mut head).await, Ok(read) if read > 0) {
            let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
                          5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await
    .unwrap();
    let url = format!("http://{}", proxy.address());
    let reqwest = client().proxy(Proxy::all(&url).unwrap()).build().unwrap();
    let pool = pool_of(&[url]).await;
    let ours = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let expected = look(reqwest.get("http://a.test/").send().await.unwrap()).await;
    let found = look(ours.get("http://a.test/").send().await.unwrap()).await;
    assert_eq!(found, expected);
    assert_eq!(found.trailers.unwrap()["x-sum"], "1");
    assert_eq!(pool.status().await.unwrap().leased, 0);
}
