//! A forward proxy that checks passwords, and writes down who came with which.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use super::password;
use crate::local::proxy::{basic, to_origin_form};
use crate::local::{Lifeline, Listening};
use crate::support::Outgoing;

/// The proxy. It ends when it is dropped.
pub(super) struct Gate {
    listening: Listening,
    book: Arc<Book>,
}

/// One request or tunnel that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The number of the password that it came with; none for one that never was.
    pub(super) password: Option<usize>,
    /// Its URL, or host and port of a tunnel.
    pub(super) target: String,
    /// The proxy's own end of the connection to the target, unless it was refused.
    pub(super) outgoing: Option<SocketAddr>,
}

struct Book {
    user: String,
    accepted: Mutex<BTreeSet<usize>>,
    asked: Mutex<Vec<Asked>>,
    connections: Mutex<Vec<bool>>,
}

type Body = BoxBody<Bytes, hyper::Error>;

impl Gate {
    /// One for this user, with its first password.
    pub(super) async fn start(user: &str) -> Self {
        let book = Arc::new(Book {
            user: user.to_owned(),
            accepted: Mutex::new(BTreeSet::from([0])),
            asked: Mutex::default(),
            connections: Mutex::default(),
        });
        let serving = Arc::clone(&book);
        let listening = Listening::start(move |stream, _, lifeline| {
            let open = Arc::new(Open::new(&serving));
            async move {
                let service =
                    service_fn(move |request| serve(Arc::clone(&open), request, lifeline.clone()));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // Clients hang up as they like.
                let _ = connection.with_upgrades().await;
            }
        });
        Self { listening: listening.await.unwrap(), book }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.listening.address())
    }

    /// Lets in who has one of these passwords from now on.
    pub(super) fn accepts(&self, passwords: &[usize]) {
        *self.book.accepted.lock().unwrap() = passwords.iter().copied().collect();
    }

    /// The last of them.
    pub(super) fn newest(&self) -> usize {
        *self.book.accepted.lock().unwrap().last().unwrap()
    }

    /// All that was asked for so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.book.asked.lock().unwrap().clone()
    }

    /// How many connections have been accepted.
    pub(super) fn accepted(&self) -> usize {
        self.book.connections.lock().unwrap().len()
    }

    /// The numbers of those that are open, tunnels too.
    pub(super) fn open(&self) -> BTreeSet<usize> {
        let connections = self.book.connections.lock().unwrap();
        connections.iter().enumerate().filter(|(_, open)| **open).map(|(nth, _)| nth).collect()
    }
}

impl Outgoing for Gate {
    fn owns(&self, peer: SocketAddr) -> bool {
        let asked = self.book.asked.lock().unwrap();
        asked.iter().any(|asked| asked.outgoing == Some(peer))
    }
}

/// A connection, until both it and its tunnel have ended.
struct Open {
    book: Arc<Book>,
    number: usize,
}

impl Open {
    fn new(book: &Arc<Book>) -> Self {
        let mut connections = book.connections.lock().unwrap();
        connections.push(true);
        Self { book: Arc::clone(book), number: connections.len() - 1 }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.book.connections.lock().unwrap()[self.number] = false;
    }
}

impl Book {
    /// The number of the password that a request shows.
    fn shown(&self, request: &Request<Incoming>) -> Option<usize> {
        let shown = request.headers().get(PROXY_AUTHORIZATION)?.as_bytes();
        let is = |number: &usize| basic((&self.user, &password(*number))).as_bytes() == shown;
        (0..MOST_PASSWORDS).find(is)
    }

    fn note(&self, asked: Asked) {
        self.asked.lock().unwrap().push(asked);
    }
}

/// More than any run gets to.
const MOST_PASSWORDS: usize = 200;

async fn serve(
    open: Arc<Open>,
    request: Request<Incoming>,
    lifeline: Lifeline,
) -> Result<Response<Body>, Infallible> {
    let book = &open.book;
    let mut asked =
        Asked { password: book.shown(&request), target: request.uri().to_string(), outgoing: None };
    let good = asked.password.is_some_and(|shown| book.accepted.lock().unwrap().contains(&shown));
    if !good {
        book.note(asked);
        return Ok(plain(StatusCode::PROXY_AUTHENTICATION_REQUIRED));
    }
    let Some(target) = dial(request.uri()).await else {
        book.note(asked);
        return Ok(plain(StatusCode::BAD_GATEWAY));
    };
    asked.outgoing = target.local_addr().ok();
    // Before anything arrives there.
    book.note(asked);
    if request.method() == Method::CONNECT {
        tunnel(open, request, target, &lifeline);
        return Ok(plain(StatusCode::OK));
    }
    Ok(forward(request, target, &lifeline).await.unwrap_or_else(|| plain(StatusCode::BAD_GATEWAY)))
}

fn tunnel(open: Arc<Open>, request: Request<Incoming>, mut target: TcpStream, lifeline: &Lifeline) {
    lifeline.spawn(async move {
        if let Ok(client) = hyper::upgrade::on(request).await {
            // Either end may hang up as it likes.
            let _ = copy_bidirectional(&mut TokioIo::new(client), &mut target).await;
        }
        drop(open);
    });
}

async fn forward(
    mut request: Request<Incoming>,
    target: TcpStream,
    lifeline: &Lifeline,
) -> Option<Response<Body>> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(target));
    let (mut sender, connection) = handshake.await.ok()?;
    lifeline.spawn(async move {
        let _ = connection.await;
    });
    to_origin_form(&mut request).ok()?;
    let response = sender.send_request(request).await.ok()?;
    Some(response.map(|body| body.boxed()))
}

async fn dial(uri: &Uri) -> Option<TcpStream> {
    TcpStream::connect((uri.host()?, uri.port_u16()?)).await.ok()
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}
