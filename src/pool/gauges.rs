//! The pool's state in gauges.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::Core;
use crate::random;
use crate::store::Status;
use crate::telemetry::{Metric, gauge, table};

impl Core {
    /// Starts what tells the gauges, if they are wanted; it looks once it is told that the pool is
    /// set up, for before that there is no state.
    pub(super) fn tell_once_set_up(
        self: &Arc<Self>,
        pause: Option<Duration>,
        tasks: &mut Vec<AbortHandle>,
    ) -> oneshot::Sender<()> {
        Metric::describe_all();
        let (tell, told) = oneshot::channel();
        if let Some(pause) = pause {
            let look = self.clone().tell_now_and_then(pause);
            let task = async {
                if told.await.is_ok() {
                    look.await
                }
            };
            tasks.push(tokio::spawn(task).abort_handle());
        }
        tell
    }

    /// Looks at once, and then so often, with up to an eighth more so that processes do not ask in
    /// step.
    async fn tell_now_and_then(self: Arc<Self>, pause: Duration) {
        loop {
            let share = u32::from(random::number().to_le_bytes()[0]);
            let next = Instant::now() + pause + pause / 8 * share / 255;
            self.tell_waiters();
            // What fails is counted, and a store that is away is told of by others.
            if let Ok(status) = self.noted(self.called(self.store.status(&self.name)).await) {
                self.tell(&status);
            }
            sleep_until(next).await;
        }
    }

    fn tell_waiters(&self) {
        let waiters = self.waiting.queued() as f64;
        gauge(&table::WAITERS, &[("pool", self.name.as_str())], waiters);
    }

    fn tell(&self, status: &Status) {
        let pool = ("pool", self.name.as_str());
        for (metric, count) in [
            (&table::READY, status.ready),
            (&table::COOLING, status.cooling),
            (&table::LEASED, status.leased),
            (&table::EXPIRED, status.expired),
        ] {
            gauge(metric, &[pool], count as f64);
        }
        for (reason, count) in [("disabled", status.disabled), ("quarantined", status.quarantined)]
        {
            gauge(&table::PARKED, &[pool, ("reason", reason)], count as f64);
        }
        for (reason, withheld) in [
            ("paused", status.paused),
            ("loading", status.loading),
            ("hold", status.hold.is_some()),
        ] {
            let value = if withheld { 1.0 } else { 0.0 };
            gauge(&table::WITHHELD, &[pool, ("reason", reason)], value);
        }
        // For whoever reads it; nothing here goes by the wall clock.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        gauge(&table::STATUS_AT, &[pool], now.as_secs_f64());
    }
}
