//! What is told to Redis while nobody waits for it.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;

use crate::error::Error;

/// Runs what tells Redis something, in the runtime of whoever tells it. A response may be dropped
/// outside of all: then it is the one that asked Redis last.
#[derive(Default)]
pub(super) struct News(Mutex<Option<Handle>>);

impl News {
    /// Notes the present runtime as one that asks Redis.
    pub(super) fn asked(&self) {
        let last = Handle::try_current().ok();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    /// Runs it if there is a runtime that still does. Should it fail or be dropped, the server's
    /// deadlines make up for it.
    pub(super) fn tell(&self, work: impl Future<Output = Result<(), Error>> + Send + 'static) {
        let last = || self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(runtime) = Handle::try_current().ok().or_else(last) else { return };
        runtime.spawn(async move {
            if let Err(error) = work.await {
                tracing::debug!(code = %error.kind(), "news of a shared budget were not taken");
            }
        });
    }
}
