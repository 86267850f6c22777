//! An https origin that speaks HTTP/2, with bodies of all sorts.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::tls::Authority;
use crate::local::Listening;

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// The origin. It ends when it is dropped.
///
/// It answers by the path: `/reset` with a head, some bytes and a RST_STREAM; `/quiet` with a head
/// and nothing; `/trailers` with a trailer `x-sum`; `/echo` with what it was sent; all else with
/// "hello".
pub(crate) struct H2Origin {
    listening: Listening,
    authority: Authority,
}

impl H2Origin {
    /// Starts one.
    pub(crate) async fn start() -> Self {
        let authority = Authority::new(&["127.0.0.1", "localhost"]);
        let acceptor = authority.acceptor_of(&[b"h2"]);
        let listening = Listening::start(move |stream, _, _| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service =
                    service_fn(|request| async { Ok::<_, Infallible>(answer(request).await) });
                let connection = http2::Builder::new(TokioExecutor::new());
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            }
        });
        Self { listening: listening.await.unwrap(), authority }
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.listening.address())
    }

    /// Who signed its certificate.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }
}

async fn answer(request: Request<Incoming>) -> Response<Body> {
    let whole = |bytes: Bytes| Full::new(bytes).map_err(|never| match never {});
    let body = match request.uri().path() {
        "/reset" => broken(),
        "/quiet" => StreamBody::new(futures_util::stream::pending()).boxed_unsync(),
        // hyper's server would send the body.
        _ if request.method() == Method::HEAD => whole(Bytes::new()).boxed_unsync(),
        "/trailers" => {
            let sum = HeaderMap::from_iter([(
                http::HeaderName::from_static("x-sum"),
                HeaderValue::from_static("1"),
            )]);
            whole("hello".into()).with_trailers(async { Some(Ok(sum)) }).boxed_unsync()
        }
        "/echo" => match request.into_body().collect().await {
            Ok(body) => whole(body.to_bytes()).boxed_unsync(),
            Err(_) => broken(),
        },
        _ => whole("hello".into()).boxed_unsync(),
    };
    Response::new(body)
}

/// A body that ends in a reset, once its first bytes are surely out.
fn broken() -> Body {
    let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"hel")))]);
    let then = futures_util::stream::once(async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(std::io::Error::other("reset"))
    });
    StreamBody::new(first.chain(then)).boxed_unsync()
}
