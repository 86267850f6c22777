//! A forward proxy with a whole web behind it: every host exists, and all of them are here.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{HOST, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::origin::{Answer, text};
use super::tls::Authority;
use crate::local::{Lifeline, Listening};

/// The proxy and the web. It ends when it is dropped.
pub(crate) struct Web {
    listening: Listening,
    shared: Arc<Shared>,
}

/// One request as it came to the proxy, or out of a tunnel.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) method: Method,
    /// As the request line has it; with the tunnel's target where it came out of one.
    pub(crate) url: String,
    /// Those for the proxy too.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// In an answer's extensions: how long the site takes for it.
#[derive(Clone, Copy)]
pub(crate) struct Takes(pub(crate) Duration);

struct Shared {
    answer: Box<dyn Fn(&Asked) -> Answer + Send + Sync>,
    authorization: Option<String>,
    authority: Authority,
    asked: Mutex<Vec<Asked>>,
}

impl Web {
    /// One that anybody may use.
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::launch(None, answer).await
    }

    /// One that wants [`USER`] and [`PASSWORD`].
    pub(crate) async fn with_password(
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let login = BASE64_STANDARD.encode(format!("{USER}:{PASSWORD}"));
        Self::launch(Some(format!("Basic {login}")), answer).await
    }

    async fn launch(
        authorization: Option<String>,
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            authorization,
            authority: Authority::new(&["a.test", "b.test", "public.test", "xn--bcher-kva.test"]),
            asked: Mutex::default(),
        });
        let web = shared.clone();
        let listening = Listening::start(move |stream, _, lifeline| {
            let web = web.clone();
            async move {
                let service =
                    service_fn(move |request| web.clone().take(request, lifeline.clone()));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                let _ = connection.with_upgrades().await;
            }
        });
        Self { listening: listening.await.unwrap(), shared }
    }

    /// The proxy's URL, without credentials.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listening.address())
    }

    /// The proxy's URL, with credentials.
    pub(crate) fn url_with_password(&self) -> String {
        format!("http://{USER}:{PASSWORD}@{}", self.listening.address())
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The URL of every request so far.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.url).collect()
    }

    /// Forgets every request so far.
    pub(crate) fn forget(&self) {
        self.shared.asked.lock().unwrap().clear();
    }

    /// Who signed the certificates of its sites.
    pub(crate) fn authority(&self) -> &Authority {
        &self.shared.authority
    }
}

pub(crate) const USER: &str = "worker";
pub(crate) const PASSWORD: &str = "secret";

impl Shared {
    async fn take(
        self: Arc<Self>,
        request: Request<Incoming>,
        lifeline: Lifeline,
    ) -> Result<Answer, Infallible> {
        let shown = request.headers().get(PROXY_AUTHORIZATION).map(HeaderValue::as_bytes);
        if self.authorization.is_some() && shown != self.authorization.as_deref().map(str::as_bytes)
        {
            return Ok(text(StatusCode::PROXY_AUTHENTICATION_REQUIRED, ""));
        }
        if request.method() != Method::CONNECT {
            let url = request.uri().to_string();
            return Ok(self.serve(url, request).await);
        }
        lifeline.spawn(async move {
            let target = request.uri().to_string();
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            let Ok(stream) = self.authority.acceptor().accept(TokioIo::new(upgraded)).await else {
                return;
            };
            let service = service_fn(move |request: Request<Incoming>| {
                let url = format!("https://{target}{}", request.uri());
                let web = self.clone();
                async move { Ok::<_, Infallible>(web.serve(url, request).await) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        Ok(Response::default())
    }

    async fn serve(&self, url: String, request: Request<Incoming>) -> Answer {
        let at = Instant::now();
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return Response::default() };
        let asked =
            Asked { at, method: head.method, url, headers: head.headers, body: body.to_bytes() };
        let answer = (self.answer)(&asked);
        self.asked.lock().unwrap().push(asked);
        if let Some(Takes(time)) = answer.extensions().get() {
            tokio::time::sleep(*time).await;
        }
        answer
    }
}

impl Asked {
    /// The host and port that its Host header names.
    pub(crate) fn host(&self) -> &str {
        self.headers.get(HOST).map_or("", |host| host.to_str().unwrap())
    }

    /// A header's value as text; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// An answer that leads elsewhere.
pub(crate) fn moved(status: u16, location: &[u8]) -> Answer {
    let mut answer = text(StatusCode::from_u16(status).unwrap(), "moved");
    answer.headers_mut().insert(LOCATION, HeaderValue::from_bytes(location).unwrap());
    answer
}
