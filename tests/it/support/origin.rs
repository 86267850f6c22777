//! An origin that remembers every request, for http and https.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::tls::Authority;
use super::web::Takes;
use crate::local::Listening;

/// The origin. It ends when it is dropped.
pub(crate) struct Origin {
    listening: Listening,
    visits: Visits,
    connections: Arc<Mutex<Vec<SocketAddr>>>,
    authority: Option<Authority>,
}

/// One request that reached the origin.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// The other end of the connection.
    pub(crate) peer: SocketAddr,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
}

/// What the origin answers.
pub(crate) type Answer = Response<Full<Bytes>>;

type Visits = Arc<Mutex<Vec<Visit>>>;
type Answering = Arc<dyn Fn(&Visit) -> Answer + Send + Sync>;

impl Origin {
    /// One that answers every http request like this.
    pub(crate) async fn http(answer: impl Fn(&Visit) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(Arc::new(answer), None).await
    }

    /// One that answers every https request like this, with a certificate for 127.0.0.1.
    pub(crate) async fn https(answer: impl Fn(&Visit) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(Arc::new(answer), Some(Authority::new(&["127.0.0.1", "localhost"]))).await
    }

    /// One that serves the files of a directory over http.
    pub(crate) async fn files(root: PathBuf) -> Self {
        Self::http(move |visit| file(&root, &visit.path)).await
    }

    async fn start(answer: Answering, authority: Option<Authority>) -> Self {
        let visits = Visits::default();
        let connections = Arc::<Mutex<Vec<SocketAddr>>>::default();
        let (record, tls) = (Arc::clone(&visits), authority.as_ref().map(Authority::acceptor));
        let peers = Arc::clone(&connections);
        let listening = Listening::start(move |stream, peer, _| {
            peers.lock().unwrap().push(peer);
            let (record, answer, tls) = (Arc::clone(&record), Arc::clone(&answer), tls.clone());
            async move {
                match tls {
                    None => serve(stream, peer, record, answer).await,
                    Some(tls) => greet(&tls, stream, peer, record, answer).await,
                }
            }
        });
        Self { listening: listening.await.unwrap(), visits, connections, authority }
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.listening.address())
    }

    /// Every request so far.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap().clone()
    }

    /// The other end of every connection so far, also of those that brought no request.
    pub(crate) fn connections(&self) -> Vec<SocketAddr> {
        self.connections.lock().unwrap().clone()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// Who signed its certificate.
    ///
    /// # Panics
    ///
    /// When it speaks plain http.
    pub(crate) fn authority(&self) -> &Authority {
        self.authority.as_ref().unwrap()
    }
}

async fn greet(
    tls: &TlsAcceptor,
    stream: tokio::net::TcpStream,
    peer: SocketAddr,
    record: Visits,
    answer: Answering,
) {
    if let Ok(stream) = tls.accept(stream).await {
        serve(stream, peer, record, answer).await;
    }
}

async fn serve<S>(stream: S, peer: SocketAddr, record: Visits, answer: Answering)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let visit = Visit {
            peer,
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            headers: request.headers().clone(),
        };
        let response = answer(&visit);
        record.lock().unwrap().push(visit);
        async {
            if let Some(Takes(time)) = response.extensions().get() {
                tokio::time::sleep(*time).await;
            }
            Ok::<_, Infallible>(response)
        }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An answer with this status and text.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn file(root: &Path, path: &str) -> Answer {
    let relative = Path::new(path.trim_start_matches('/'));
    let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
    match std::fs::read(root.join(relative)) {
        Ok(body) if inside => {
            let html = relative.extension().is_some_and(|extension| extension == "html");
            let mut response = text(StatusCode::OK, body);
            let kind = if html { "text/html; charset=utf-8" } else { "application/octet-stream" };
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            response
        }
        _ => text(StatusCode::NOT_FOUND, "no such file\n"),
    }
}
