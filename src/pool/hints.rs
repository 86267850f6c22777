//! Hearing from elsewhere that something may have come free.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{BoxStream, StreamExt as _};
use tokio::time::sleep;

use super::Core;

/// Between two hints that are heard. It doubles while they come in a storm and lead to nothing:
/// then there are enough other processes, and they are faster.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

impl Core {
    /// Has the head of the queue ask at each hint, until the hints end.
    pub(super) async fn listen(self: Arc<Self>, hints: BoxStream<'static, ()>) {
        let told =
            |hint: std::thread::Result<()>| hint.unwrap_or_else(|_| self.caught("the store"));
        let mut hints = AssertUnwindSafe(hints).catch_unwind().map(told).fuse();
        let (mut pause, mut heard) = (FIRST_PAUSE, false);
        while heard || hints.next().await.is_some() {
            heard = false;
            if self.waiting.queued() == 0 {
                continue;
            }
            let grants = self.counters.snapshot().grants;
            self.counters.hints.add_one();
            self.waiting.something_came_free();
            sleep(pause).await;
            // All that came meanwhile are one.
            while hints.next().now_or_never().flatten().is_some() {
                heard = true;
            }
            let fruitless = self.counters.snapshot().grants == grants;
            pause = if heard && fruitless { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
        }
    }
}
