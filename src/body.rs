//! The response body that carries the lease: the lease ends when the body does.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Version;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Response, ResponseBuilderExt};
use tokio::time::Instant;
use tracing::Span;

use crate::budget::Passage;
use crate::classify::{Classifier, Failed, Route};
use crate::error::{BoxError, Error, Kind};
use crate::hold::Hold;
use crate::options::LeaseInfo;
use crate::outcome::Outcome;
use crate::pool::{Expire, Key, Watchdog};
use crate::preview::Preview;
use crate::progress::Phase;
use crate::report::Report;

/// What lasts until the body has ended.
pub(crate) struct Cargo {
    pub(crate) hold: Hold,
    pub(crate) passage: Passage,
    pub(crate) route: Route,
    pub(crate) classifier: Arc<dyn Classifier>,
    /// The outcome if the body comes to its end.
    pub(crate) outcome: Outcome,
    /// What the classifier wants to see of the body first.
    pub(crate) preview: Option<Box<Preview>>,
    pub(crate) report: Option<Report>,
}

impl Cargo {
    /// Shows the classifier what has come of the body, when that is all it wants or will get.
    fn look(&mut self, is_all: bool) {
        if let Some(preview) = self.preview.take_if(|preview| is_all || preview.is_full()) {
            let look = |classifier: &dyn Classifier| preview.outcome(classifier);
            self.outcome = self.hold.pool().classified(&*self.classifier, look);
        }
    }

    /// Gives everything back, and tells how it ended; `served` when nobody waited for more.
    fn end(self, outcome: Outcome, served: bool) {
        let Self { hold, passage, report, .. } = self;
        drop(passage);
        let span = report.map_or_else(Span::none, |report| report.ended(hold.pool(), outcome));
        span.in_scope(|| match outcome {
            Outcome::Cancelled if served => hold.leave(),
            outcome => hold.finish(outcome),
        });
    }
}

/// Gives the response a body that carries lease and passage, and tells how it came about.
pub(crate) fn load(response: Response, mut cargo: Cargo, info: LeaseInfo) -> Response {
    let url = response.url().clone();
    let (mut parts, body) = http::Response::<Body>::from(response).into_parts();
    // The way through http::Response loses the URL; this is how reqwest takes it back. It is put
    // among the other extensions, for a map of its own would be made for it alone.
    let mut carrier = http::Response::builder();
    if let Some(extensions) = carrier.extensions_mut() {
        mem::swap(extensions, &mut parts.extensions);
    }
    let mut carrier = carrier.url(url);
    if let Some(extensions) = carrier.extensions_mut() {
        mem::swap(extensions, &mut parts.extensions);
    }
    let body = if is_over(&body) {
        cargo.look(true);
        let outcome = cargo.outcome;
        cargo.end(outcome, true);
        body
    } else {
        // RFC 9113 section 8.1: also after as many bytes as Content-Length says.
        let trailers = parts.version == Version::HTTP_2;
        Body::wrap(LeasedBody::new(body, cargo, trailers))
    };
    let mut response = Response::from(http::Response::from_parts(parts, body));
    // Not before: with the URL still in it, the map would have to grow.
    response.extensions_mut().insert(info);
    response
}

/// Nothing will come: `is_end_stream` alone misses empty bodies below a decoder.
fn is_over(body: &Body) -> bool {
    body.is_end_stream() || body.size_hint().exact() == Some(0)
}

/// A body whose end, error, drop or expiry ends the lease.
struct LeasedBody {
    cell: Arc<Cell>,
    watched: Option<(Arc<Watchdog>, Key)>,
}

struct Cell(Mutex<State>);

#[allow(clippy::large_enum_variant, reason = "it is open for nearly all of its life")]
enum State {
    Open(Open),
    /// Ended by the watchdog; the reader has not been told yet.
    Expired,
    Over,
}

struct Open {
    body: Body,
    cargo: Cargo,
    /// Whether trailers may follow the last byte.
    trailers: bool,
    reader: Option<Waker>,
}

impl Cell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the exchange, with the lock released before the lease is given back.
    fn end(&self, outcome: Option<Outcome>) {
        let ended = mem::replace(&mut *self.state(), State::Over);
        if let State::Open(open) = ended {
            // Who polls it to its end needs no waking.
            let _ = open.end(outcome);
        }
    }
}

impl Open {
    /// Gives back what it holds, and returns who waits for the body.
    fn end(self, outcome: Option<Outcome>) -> Option<Waker> {
        let Self { body, mut cargo, reader, .. } = self;
        // Of a body that was left or cut before its first byte nothing is known.
        if outcome.is_none() || cargo.preview.as_ref().is_some_and(|preview| preview.has_begun()) {
            cargo.look(true);
        }
        // The connection closes before the endpoint can be leased again.
        drop(body);
        // What the head said stands, whatever became of the body, unless the lease ran out.
        let outcome = match (cargo.outcome, outcome) {
            (Outcome::Success, Some(outcome)) | (_, Some(outcome @ Outcome::Expired)) => outcome,
            (said, _) => said,
        };
        // Who waits for more of it has not been served.
        cargo.end(outcome, reader.is_none());
        reader
    }
}

impl Expire for Cell {
    fn until(&self) -> Option<Instant> {
        match &*self.state() {
            State::Open(open) => open.cargo.hold.trusted_until(),
            State::Expired | State::Over => None,
        }
    }

    fn expire(&self) {
        let mut state = self.state();
        // It may have come to its end, or been renewed, while the watchdog was on its way.
        let due = matches!(&*state, State::Open(open) if !open.cargo.hold.is_trusted());
        if due && let State::Open(open) = mem::replace(&mut *state, State::Expired) {
            drop(state);
            if let Some(reader) = open.end(Some(Outcome::Expired)) {
                reader.wake();
            }
        }
    }
}

impl LeasedBody {
    fn new(body: Body, cargo: Cargo, trailers: bool) -> Self {
        let until = cargo.hold.trusted_until();
        let watchdog = cargo.hold.pool().watchdog().clone();
        let open = Open { body, cargo, trailers, reader: None };
        let cell = Arc::new(Cell(Mutex::new(State::Open(open))));
        let watched = until.map(|until| {
            let weak: Weak<Cell> = Arc::downgrade(&cell);
            let key = watchdog.watch(until, weak);
            (watchdog, key)
        });
        Self { cell, watched }
    }
}

/// What a poll of the inner body means for the lease.
enum Polled {
    Frame(Frame<Bytes>, bool),
    Failed(BoxError, Outcome),
    Ended,
    Expired,
    Pending,
}

fn poll(state: &mut State, cx: &mut Context<'_>) -> Polled {
    let open = match state {
        State::Open(open) => open,
        State::Expired => return Polled::Expired,
        State::Over => return Polled::Ended,
    };
    if !open.cargo.hold.is_trusted() {
        return Polled::Expired;
    }
    match Pin::new(&mut open.body).poll_frame(cx) {
        Poll::Ready(Some(Ok(frame))) => {
            open.reader = None;
            if let (Some(preview), Some(data)) = (&mut open.cargo.preview, frame.data_ref()) {
                preview.add(data);
                open.cargo.look(false);
            }
            let last = match open.trailers {
                true => open.body.is_end_stream(),
                false => is_over(&open.body),
            };
            Polled::Frame(frame, last)
        }
        Poll::Ready(Some(Err(error))) => {
            let Cargo { hold, classifier, route, .. } = &open.cargo;
            let failed = Failed::new(&error, *route, Phase::Body);
            let outcome = hold.pool().classified(&**classifier, |it| it.failure(&failed));
            Polled::Failed(Box::new(error), outcome)
        }
        Poll::Ready(None) => Polled::Ended,
        Poll::Pending => {
            match &mut open.reader {
                Some(reader) => reader.clone_from(cx.waker()),
                None => open.reader = Some(cx.waker().clone()),
            }
            Polled::Pending
        }
    }
}

impl HttpBody for LeasedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = poll(&mut self.cell.state(), cx);
        match polled {
            Polled::Pending => Poll::Pending,
            Polled::Frame(frame, last) => {
                if last {
                    self.cell.end(None);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Polled::Ended => {
                self.cell.end(None);
                Poll::Ready(None)
            }
            Polled::Failed(error, outcome) => {
                self.cell.end(Some(outcome));
                Poll::Ready(Some(Err(error)))
            }
            Polled::Expired => {
                self.cell.end(Some(Outcome::Expired));
                Poll::Ready(Some(Err(Box::new(expired()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &*self.cell.state() {
            State::Open(open) => open.body.is_end_stream(),
            State::Expired => false,
            State::Over => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &*self.cell.state() {
            State::Open(open) => open.body.size_hint(),
            State::Expired => SizeHint::new(),
            State::Over => SizeHint::with_exact(0),
        }
    }
}

impl Drop for LeasedBody {
    fn drop(&mut self) {
        if let Some((watchdog, key)) = self.watched.take() {
            watchdog.forget(key);
        }
        // Who has read every byte may leave trailers.
        let read = matches!(&*self.cell.state(), State::Open(open) if is_over(&open.body));
        self.cell.end(if read { None } else { Some(Outcome::Cancelled) });
    }
}

fn expired() -> Error {
    Error::new(Kind::LeaseExpired, "lease expired before the body was read")
}

#[cfg(test)]
mod tests;
