//! Whether Redis can be asked now, and what has to be made up for afterwards.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The outages of one Redis, as the calls of this process met them.
#[derive(Default)]
pub(super) struct Outage(Mutex<State>);

#[derive(Default)]
struct State {
    /// When Redis failed last, until it has answered.
    failed: Option<Instant>,
    /// How many outages there were.
    number: u64,
}

impl Outage {
    /// Whether Redis failed less than `ask_again` ago. One who is told `false` then asks it, and
    /// the others wait for what comes of it.
    pub(super) fn is_known(&self, ask_again: Duration) -> bool {
        let mut state = self.state();
        let Some(failed) = state.failed else { return false };
        let now = Instant::now();
        let known = now.duration_since(failed) < ask_again;
        if !known {
            state.failed = Some(now);
        }
        known
    }

    /// Notes a failure; whether it is the first one.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state();
        let first = state.failed.replace(Instant::now()).is_none();
        state.number += u64::from(first);
        first
    }

    /// Notes an answer; whether there was an outage.
    pub(super) fn end(&self) -> bool {
        self.state().failed.take().is_some()
    }

    pub(super) fn number(&self) -> u64 {
        self.state().number
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_asks_again_each_second() {
        const ASK_AGAIN: Duration = Duration::from_secs(1);
        let outage = Outage::default();
        assert!(!outage.is_known(ASK_AGAIN) && outage.begin() && !outage.begin());
        for _ in 0..3 {
            assert!(outage.is_known(ASK_AGAIN));
            tokio::time::advance(ASK_AGAIN).await;
            assert!(!outage.is_known(ASK_AGAIN), "one");
        }
        assert!(outage.end() && !outage.end() && !outage.is_known(ASK_AGAIN));
        assert!(outage.begin());
        assert_eq!(outage.number(), 2);
    }
}
