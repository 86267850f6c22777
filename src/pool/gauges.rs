//! The pool's state in gauges.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::Core;
use crate::id::PoolName;
use crate::random;
use crate::store::Status;
use crate::telemetry::{Metric, gauge, table};

impl Core {
    /// Starts what tells the gauges, if they are wanted; it looks once it is told that the pool is
    /// set up, for before that there is no state.
    pub(super) fn tell_once_set_up(
        self: &Arc<Self>,
        pause: Option<Duration>,
    ) -> (oneshot::Sender<()>, Option<AbortHandle>) {
        Metric::describe_all();
        let (tell, told) = oneshot::channel();
        let task = pause.map(|pause| {
            let core = self.clone();
            let task = async move {
                if told.await.is_ok() {
                    Teller::begin(core).tell_now_and_then(pause).await;
                }
            };
            tokio::spawn(task).abort_handle()
        });
        (tell, task)
    }
}

/// Tells what is known of a pool, and when it ends that nothing is.
struct Teller {
    core: Arc<Core>,
    /// Looks in a row that have failed.
    failed: u32,
}

/// One look may fail by chance.
const MOST_FAILED: u32 = 2;

impl Teller {
    fn begin(core: Arc<Core>) -> Self {
        *tellers().entry(core.name.clone()).or_default() += 1;
        let teller = Self { core, failed: 0 };
        teller.tell_of(&table::STATUS_AT, None, 0.0);
        teller
    }

    /// Looks at once, and then so often, with up to an eighth more so that processes do not ask in
    /// step.
    async fn tell_now_and_then(mut self, pause: Duration) {
        loop {
            let share = u32::from(random::number().to_le_bytes()[0]);
            let next = Instant::now() + pause + pause / 8 * share / 255;
            self.look().await;
            sleep_until(next).await;
        }
    }

    async fn look(&mut self) {
        let core = &self.core;
        self.tell_of(&table::WAITERS, None, core.waiting.queued() as f64);
        core.stale.tell();
        core.counters.tell();
        // What fails is counted, and a store that is away is told of by others.
        match core.noted(core.timely(core.store.status(&core.name)).await) {
            Ok(status) => {
                self.failed = 0;
                self.tell(Some(&status));
                // For whoever reads it; nothing here goes by the wall clock.
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                self.tell_of(&table::STATUS_AT, None, now.as_secs_f64());
            }
            Err(_) => {
                self.failed += 1;
                if self.failed == MOST_FAILED {
                    self.tell(None);
                }
            }
        }
    }

    /// Tells the state, or that it is not known.
    fn tell(&self, status: Option<&Status>) {
        let count = |of: fn(&Status) -> usize| status.map_or(f64::NAN, |status| of(status) as f64);
        let whether = |of: fn(&Status) -> bool| match status.map(of) {
            Some(true) => 1.0,
            Some(false) => 0.0,
            None => f64::NAN,
        };
        for (metric, reason, value) in [
            (&table::READY, None, count(|status| status.ready)),
            (&table::COOLING, None, count(|status| status.cooling)),
            (&table::LEASED, None, count(|status| status.leased)),
            (&table::EXPIRED, None, count(|status| status.expired)),
            (&table::PARKED, Some("disabled"), count(|status| status.disabled)),
            (&table::PARKED, Some("quarantined"), count(|status| status.quarantined)),
            (&table::WITHHELD, Some("paused"), whether(|status| status.paused)),
            (&table::WITHHELD, Some("loading"), whether(|status| status.loading)),
            (&table::WITHHELD, Some("hold"), whether(|status| status.hold.is_some())),
        ] {
            self.tell_of(metric, reason, value);
        }
    }

    fn tell_of(&self, metric: &'static Metric, reason: Option<&str>, value: f64) {
        let pool = ("pool", self.core.name.as_str());
        match reason {
            Some(reason) => gauge(metric, &[pool, ("reason", reason)], value),
            None => gauge(metric, &[pool], value),
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let last = {
            let mut tellers = tellers();
            let left = tellers.get_mut(&self.core.name).map_or(0, |count| {
                *count -= 1;
                *count
            });
            if left == 0 {
                tellers.remove(&self.core.name);
            }
            left == 0
        };
        // One that has taken its place goes on telling.
        if last {
            self.tell(None);
            self.tell_of(&table::STATUS_AT, None, f64::NAN);
            self.tell_of(&table::WAITERS, None, 0.0);
        }
    }
}

/// How many tell of a pool of this name: one may be built anew before the other has ended.
fn tellers() -> MutexGuard<'static, BTreeMap<PoolName, usize>> {
    static TELLERS: Mutex<BTreeMap<PoolName, usize>> = Mutex::new(BTreeMap::new());
    TELLERS.lock().unwrap_or_else(PoisonError::into_inner)
}
