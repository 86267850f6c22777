//! A question that is put by the one who needs its answer, until somebody takes it over.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use futures_util::future::BoxFuture;

/// A call to the store in the future of one request: no task is needed for it. Should that future
/// not be polled while others wait for the answer, the asker goes on with the call.
pub(super) struct Alone(Mutex<Course>);

struct Course {
    flight: Option<BoxFuture<'static, ()>>,
    /// Whose it was, to be told that it is no longer.
    owner: Option<Waker>,
}

impl Alone {
    pub(super) fn new(flight: BoxFuture<'static, ()>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Course { flight: Some(flight), owner: None })))
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the answer has been taken in, or somebody else sees to that.
    pub(super) async fn fly(&self) {
        poll_fn(|cx| {
            let mut course = self.course();
            let Some(flight) = &mut course.flight else { return Poll::Ready(()) };
            let polled = flight.as_mut().poll(cx);
            match polled {
                Poll::Ready(()) => course.flight = None,
                Poll::Pending => course.owner = Some(cx.waker().clone()),
            }
            polled
        })
        .await;
    }

    /// The call, to go on with it.
    pub(super) fn take_over(&self) -> Option<BoxFuture<'static, ()>> {
        let (flight, owner) = {
            let mut course = self.course();
            (course.flight.take(), course.owner.take())
        };
        owner.into_iter().for_each(Waker::wake);
        flight
    }
}
