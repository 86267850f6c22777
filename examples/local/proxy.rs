//! A forward proxy that remembers what it carried and by which of its sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use super::{Lifeline, Listening};

/// A forward proxy for plain http and CONNECT. It ends when it is dropped.
pub(crate) struct ForwardProxy {
    listening: Listening,
    carried: Journal,
}

/// One request or tunnel that a proxy took to its target.
#[derive(Debug, Clone)]
pub(crate) struct Carried {
    /// The target: its URL, or host and port of a tunnel.
    pub(crate) target: String,
    /// The proxy's own end of the connection to the target.
    pub(crate) outgoing: SocketAddr,
    /// When.
    pub(crate) at: Instant,
}

type Journal = Arc<Mutex<Vec<Carried>>>;

/// How a proxy behaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manners {
    /// User and password that it wants. Default: none.
    pub(crate) credentials: Option<(&'static str, &'static str)>,
    /// It dies when it is asked for one more than this. Default: never.
    pub(crate) dies_after: Option<usize>,
}

impl ForwardProxy {
    /// Starts a proxy on a port of its own.
    pub(crate) async fn start(manners: Manners) -> io::Result<Self> {
        let carried = Journal::default();
        let desk = Desk {
            authorization: manners.credentials.map(basic),
            dies_after: manners.dies_after.unwrap_or(usize::MAX),
            carried: Arc::clone(&carried),
        };
        let listening = Listening::start(move |stream, _, lifeline| {
            let desk = desk.clone();
            let service = service_fn(move |request| desk.clone().serve(request, lifeline.clone()));
            async move {
                let server = hyper::server::conn::http1::Builder::new();
                // A client that hangs up is no news here.
                let _ =
                    server.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
            }
        })
        .await?;
        Ok(Self { listening, carried })
    }

    /// Kills it: nobody listens any more, and open connections are cut.
    pub(crate) async fn kill(&self) {
        self.listening.stop().await;
    }

    /// Its URL, without credentials.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listening.address())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// What it has carried so far.
    pub(crate) fn carried(&self) -> Vec<Carried> {
        self.carried.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

type Body = BoxBody<Bytes, hyper::Error>;

#[derive(Clone)]
struct Desk {
    authorization: Option<String>,
    dies_after: usize,
    carried: Journal,
}

impl Desk {
    async fn serve(
        self,
        request: Request<Incoming>,
        lifeline: Lifeline,
    ) -> Result<Response<Body>, io::Error> {
        if !self.admits(&request) {
            return Ok(wants_credentials());
        }
        if self.carried.lock().unwrap_or_else(PoisonError::into_inner).len() >= self.dies_after {
            lifeline.cut();
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let carried = if request.method() == Method::CONNECT {
            self.tunnel(request, &lifeline).await
        } else {
            self.forward(request, &lifeline).await
        };
        Ok(carried.unwrap_or_else(|()| plain(StatusCode::BAD_GATEWAY)))
    }

    fn admits(&self, request: &Request<Incoming>) -> bool {
        let shown = request.headers().get(PROXY_AUTHORIZATION).map(HeaderValue::as_bytes);
        self.authorization.is_none() || shown == self.authorization.as_deref().map(str::as_bytes)
    }

    async fn tunnel(
        &self,
        request: Request<Incoming>,
        lifeline: &Lifeline,
    ) -> Result<Response<Body>, ()> {
        let mut target = self.dial(request.uri(), 443).await?;
        lifeline.spawn(async move {
            if let Ok(client) = hyper::upgrade::on(request).await {
                let mut client: TokioIo<Upgraded> = TokioIo::new(client);
                // Either end may hang up as it likes.
                let _ = copy_bidirectional(&mut client, &mut target).await;
            }
        });
        Ok(plain(StatusCode::OK))
    }

    async fn forward(
        &self,
        mut request: Request<Incoming>,
        lifeline: &Lifeline,
    ) -> Result<Response<Body>, ()> {
        let stream = self.dial(request.uri(), 80).await?;
        let (mut target, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(drop)?;
        lifeline.spawn(async move {
            let _ = connection.await;
        });
        to_origin_form(&mut request)?;
        let response = target.send_request(request).await.map_err(drop)?;
        Ok(response.map(BodyExt::boxed))
    }

    async fn dial(&self, uri: &Uri, default_port: u16) -> Result<TcpStream, ()> {
        let host = uri.host().ok_or(())?.trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(default_port);
        let stream = TcpStream::connect((host, port)).await.map_err(drop)?;
        let outgoing = stream.local_addr().map_err(drop)?;
        let carried = Carried { target: uri.to_string(), outgoing, at: Instant::now() };
        self.carried.lock().unwrap_or_else(PoisonError::into_inner).push(carried);
        Ok(stream)
    }
}

/// Headers that are for the proxy and not for the target (RFC 9110 §7.6.1).
const HOP_BY_HOP: [HeaderName; 4] = [
    CONNECTION,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Takes the proxy's part out of a request.
pub(crate) fn to_origin_form(request: &mut Request<Incoming>) -> Result<(), ()> {
    let authority = request.uri().authority().ok_or(())?.as_str().to_owned();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    *request.uri_mut() = path.parse().map_err(drop)?;
    for header in HOP_BY_HOP {
        request.headers_mut().remove(header);
    }
    request.headers_mut().insert(HOST, authority.parse().map_err(drop)?);
    Ok(())
}

/// What a client shows for these credentials.
pub(crate) fn basic((user, password): (&str, &str)) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn wants_credentials() -> Response<Body> {
    let mut response = plain(StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    let challenge = HeaderValue::from_static("Basic realm=\"local\"");
    response.headers_mut().insert(PROXY_AUTHENTICATE, challenge);
    response
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}
