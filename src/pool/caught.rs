//! Panics in code that is not ours: they end nothing that others rely on.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use super::{Core, Pool};
use crate::classify::{Classifier, DefaultClassifier};
use crate::error::Error;

impl Pool {
    /// What a classifier makes of something, or the default one if it panics.
    pub(crate) fn classified<T>(
        &self,
        classifier: &dyn Classifier,
        look: impl Fn(&dyn Classifier) -> T,
    ) -> T {
        let seen = self.0.core.run("the classifier", || look(classifier));
        seen.unwrap_or_else(|| look(&DefaultClassifier::new()))
    }
}

impl Core {
    /// What comes of a call to the store; one that panics may have taken place.
    pub(super) async fn called<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
            self.caught("the store");
            Err(Error::store_unavailable("the store panicked"))
        })
    }

    /// What comes of somebody's code, unless it panics.
    pub(super) fn run<T>(&self, whose: &'static str, code: impl FnOnce() -> T) -> Option<T> {
        let done = catch_unwind(AssertUnwindSafe(code)).ok();
        if done.is_none() {
            self.caught(whose);
        }
        done
    }

    pub(super) fn caught(&self, whose: &'static str) {
        self.counters.panics.add_one();
        tracing::error!(pool = %self.name, whose, "panic");
    }
}
