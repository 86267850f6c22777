//! A request that can be sent again: on another endpoint, or along a redirect.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Request};
use url::Url;

use crate::error::{BoxError, Error, Kind};
use crate::pool::Trust;

/// The request as it stands at the present hop.
pub(crate) struct Replay {
    /// All but a streamed body.
    request: Request,
    stream: Option<Arc<Stream>>,
}

impl Replay {
    pub(crate) fn new(mut request: Request) -> Self {
        let streamed = request.body().is_some_and(|body| body.as_bytes().is_none());
        let stream = if streamed { request.body_mut().take() } else { None };
        // Nothing is as good as an empty stream, and can be sent again.
        let stream = stream.filter(|body| body.size_hint().exact() != Some(0));
        Self { request, stream: stream.map(Stream::new) }
    }

    pub(crate) fn url(&self) -> &Url {
        self.request.url()
    }

    pub(crate) fn method(&self) -> &Method {
        self.request.method()
    }

    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        self.request.headers_mut()
    }

    /// Whether the caller's stream failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.inner().failed)
    }

    /// Whether a connection has sent all that the caller's stream has yielded, and waits for more.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.inner().waited_for)
    }

    /// Whether the body, if any, can be sent (again): bytes always, a stream while nothing of
    /// it was read.
    pub(crate) fn can_send(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.is_untouched())
    }

    /// Whether the body can be sent along a redirect: a stream's first send may still be
    /// reading it.
    pub(crate) fn can_follow(&self) -> bool {
        self.stream.is_none()
    }

    /// Moves to the next hop.
    pub(crate) fn redirect(&mut self, url: Url, method: Method, keep_body: bool) {
        *self.request.url_mut() = url;
        *self.request.method_mut() = method;
        if !keep_body {
            *self.request.body_mut() = None;
            self.stream = None;
        }
    }

    /// Whether the body is read while it is sent.
    pub(crate) fn is_streamed(&self) -> bool {
        self.stream.is_some()
    }

    /// A request to send now, whose stream ends with this trust; `None` when a stream has been
    /// read.
    pub(crate) fn request(&self, trust: Option<Trust>) -> Option<Request> {
        let mut request = self.request.try_clone()?;
        if let Some(stream) = &self.stream {
            if !stream.is_untouched() {
                return None;
            }
            *request.body_mut() = Some(Body::wrap(Lent { stream: stream.clone(), trust }));
        }
        Some(request)
    }
}

/// A streamed body that survives the request it was lent to, as long as nobody read of it.
struct Stream(Mutex<Inner>);

struct Inner {
    body: Body,
    touched: bool,
    failed: bool,
    waited_for: bool,
}

impl Stream {
    fn new(body: Body) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner { body, touched: false, failed: false, waited_for: false })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_untouched(&self) -> bool {
        !self.inner().touched
    }
}

/// One loan of the stream. A connection sends on by itself, also after the exchange has ended.
struct Lent {
    stream: Arc<Stream>,
    trust: Option<Trust>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.trust.as_ref().is_some_and(|trust| !trust.lasts()) {
            return Poll::Ready(Some(Err(Box::new(expired()))));
        }
        let mut inner = self.stream.inner();
        inner.touched = true;
        let polled = Pin::new(&mut inner.body).poll_frame(cx);
        inner.failed |= matches!(polled, Poll::Ready(Some(Err(_))));
        inner.waited_for = polled.is_pending();
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.stream.inner().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.inner().body.size_hint()
    }
}

fn expired() -> Error {
    Error::new(Kind::LeaseExpired, "lease expired before the request's body was sent")
}
