//! How far a send has come, so that a timeout can be told by what it struck.
//!
//! reqwest's timeouts do not say what they interrupted. A layer around the connector of each
//! client marks every poll in which a connection is still being made; whoever polls the send
//! reads the mark. Nothing is shared and nothing is allocated: a connection that hyper moves to
//! the background marks nobody's send any more.
//!
//! The layer can say no more. The answer to a CONNECT is read inside of reqwest's own connector,
//! from a TCP stream that it opens itself and drops with the error; neither the stream nor the
//! status passes through a layer, a resolver or a TLS setting. So a refused CONNECT other than
//! 407 stays [`TunnelRefused`](crate::Outcome::TunnelRefused), and a dial cannot be told from a
//! CONNECT or SOCKS handshake that is not answered, unless the dial's own timeout strikes.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tower::util::Oneshot;
use tower::{Layer, Service, ServiceExt as _};

/// What an exchange was at when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// A connection was being made: to the endpoint and, where it does not forward, through it to
    /// the target (CONNECT or SOCKS, then TLS).
    Connecting,
    /// The request was being sent, or its answer's head waited for.
    Head,
    /// The body was being read.
    Body,
}

impl Phase {
    /// The word for logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Head => "head",
            Self::Body => "body",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

thread_local! {
    /// Whether a connection was found pending in the poll under way on this thread.
    static CONNECTING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a send, and tells what it was at in the end.
pub(crate) async fn watched<F: Future>(send: F) -> (F::Output, Phase) {
    let mut send = pin!(send);
    let mut was_connecting = false;
    poll_fn(|cx| {
        let outer = CONNECTING.replace(false);
        let polled = send.as_mut().poll(cx);
        let connecting = CONNECTING.replace(outer);
        match polled {
            Poll::Pending => {
                was_connecting = connecting;
                Poll::Pending
            }
            // A timeout is looked at before the connection is, so the poll before counts too.
            Poll::Ready(output) if connecting || was_connecting => {
                Poll::Ready((output, Phase::Connecting))
            }
            Poll::Ready(output) => Poll::Ready((output, Phase::Head)),
        }
    })
    .await
}

/// Marks the polls in which a connection is being made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkConnecting;

impl<S> Layer<S> for MarkConnecting {
    type Service = Marking<S>;

    fn layer(&self, inner: S) -> Marking<S> {
        Marking { inner: Arc::new(inner) }
    }
}

/// The connector below the layer.
///
/// hyper clones its connector six times a request, whether it dials or not. Only a dial needs
/// one of its own; sharing it till then makes the layer cost half as much.
#[derive(Debug)]
pub(crate) struct Marking<S> {
    inner: Arc<S>,
}

impl<S> Clone for Marking<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<S, R> Service<R> for Marking<S>
where
    S: Service<R> + Clone,
    Oneshot<S, R>: Unpin,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Marked<Oneshot<S, R>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // The dial's own clone is asked.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let mut inner = S::clone(&self.inner).oneshot(request);
        // The dial's own timeout and the one of the whole connection are as long as each other.
        // Started here, before the second one is, the first strikes first, and says "dial".
        let first = Pin::new(&mut inner).poll(&mut Context::from_waker(Waker::noop()));
        Marked { inner, first: Some(first) }
    }
}

/// A connection being made.
pub(crate) struct Marked<F: Future> {
    inner: F,
    /// What the poll without a waker came to, which is final if it is ready.
    first: Option<Poll<F::Output>>,
}

// Its output is moved out and never pinned.
impl<F: Future + Unpin> Unpin for Marked<F> {}

impl<F: Future + Unpin> Future for Marked<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if let Some(Poll::Ready(output)) = self.first.take() {
            return Poll::Ready(output);
        }
        let polled = Pin::new(&mut self.inner).poll(cx);
        if polled.is_pending() {
            CONNECTING.set(true);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};
    use tower::service_fn;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn connecting(time: Duration) -> impl Future<Output = ()> + Unpin {
        let slow = service_fn(move |()| {
            Box::pin(async move {
                sleep(time).await;
                Ok::<_, ()>(())
            })
        });
        let mut connector = MarkConnecting.layer(slow);
        Box::pin(async move { connector.call(()).await.unwrap() })
    }

    /// A send that connects and then waits, under a timeout that is looked at last or first.
    async fn struck(connect: Duration, after: Duration, first: bool) -> Phase {
        let send = async move {
            connecting(connect).await;
            sleep(LONG).await;
        };
        let (over, phase) =
            match first {
                false => watched(timeout(after, send)).await,
                true => watched(async {
                    tokio::select! {
                        biased;
                        () = sleep(after) => timeout(Duration::ZERO, std::future::pending()).await,
                        () = send => Ok(()),
                    }
                })
                .await,
            };
        assert!(over.is_err());
        phase
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_is_told_by_what_it_struck() {
        let (short, middle) = (Duration::from_secs(1), Duration::from_secs(5));
        for first in [false, true] {
            assert_eq!(struck(LONG, middle, first).await, Phase::Connecting);
            assert_eq!(struck(short, middle, first).await, Phase::Head);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_in_the_background_marks_no_send() {
        let waits = async {
            let mut connection = connecting(LONG);
            assert!(futures_util::poll!(&mut connection).is_pending());
            tokio::spawn(connection);
            // Whatever took its place woke the send.
            tokio::task::yield_now().await;
            sleep(LONG).await;
        };
        let (_, phase) = watched(timeout(Duration::from_secs(5), waits)).await;
        assert_eq!(phase, Phase::Head);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dial_starts_before_whoever_bounds_it() {
        let same = Duration::from_secs(5);
        let dial = service_fn(move |()| {
            Box::pin(async move { timeout(same, std::future::pending::<()>()).await })
        });
        let mut connector = MarkConnecting.layer(dial);
        let mut bare = dial;
        // As tower's timeout does it: the call first, its own sleep next, both polled later.
        let bounded = async |connect: Pin<Box<dyn Future<Output = Result<_, _>>>>| {
            let bound = sleep(same);
            sleep(Duration::from_millis(2)).await;
            tokio::select! {
                biased;
                dialled = connect => Some(dialled),
                () = bound => None,
            }
        };
        assert!(bounded(Box::pin(connector.call(()))).await.is_some_and(|it| it.is_err()));
        assert!(bounded(Box::pin(bare.call(()))).await.is_none(), "the twin");
    }

    /// A connector that has to be asked whether it is ready, as tower's limits have.
    #[derive(Clone, Default)]
    struct Particular {
        asked: bool,
    }

    impl Service<()> for Particular {
        type Response = ();
        type Error = &'static str;
        type Future = std::future::Ready<Result<(), &'static str>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            self.asked = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, (): ()) -> Self::Future {
            std::future::ready(if self.asked { Ok(()) } else { Err("not asked") })
        }
    }

    #[tokio::test]
    async fn a_connector_below_is_asked_before_it_is_called() {
        assert!(Particular::default().call(()).await.is_err());
        assert!(MarkConnecting.layer(Particular::default()).call(()).await.is_ok());
    }
}
