//! Ends exchanges whose lease has run out, also those that nobody reads on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Something that must end when its lease does.
pub(crate) trait Expire: Send + Sync {
    /// Until when it may go on; `None` when it is over.
    fn until(&self) -> Option<Instant>;

    /// Ends it.
    fn expire(&self);
}

/// The exchanges under way, by the end of their trust.
#[derive(Default)]
pub(crate) struct Watchdog {
    watched: Mutex<Watched>,
    sooner: Notify,
}

#[derive(Default)]
struct Watched {
    by_end: BTreeMap<Key, Weak<dyn Expire>>,
    last_number: u64,
    /// When the task looks next by itself.
    next_look: Option<Instant>,
}

/// A watched exchange's place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Instant, u64);

/// While requests come and go the task looks this often instead of being woken for each.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Watchdog {
    fn watched(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches until `until`, which may be moved later by then.
    pub(crate) fn watch(&self, until: Instant, exchange: Weak<dyn Expire>) -> Key {
        let mut watched = self.watched();
        watched.last_number += 1;
        let key = Key(until, watched.last_number);
        watched.by_end.insert(key, exchange);
        if watched.next_look.is_none_or(|look| until < look) {
            self.sooner.notify_one();
        }
        key
    }

    pub(crate) fn forget(&self, key: Key) {
        self.watched().by_end.remove(&key);
    }

    /// Takes out what is due, and says when to look again; `None` when nothing is left.
    fn due(&self, now: Instant) -> (Vec<Arc<dyn Expire>>, Option<Instant>) {
        let mut watched = self.watched();
        let mut due = Vec::new();
        while let Some(entry) = watched.by_end.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (key, exchange) = entry.remove_entry();
            let Some(exchange) = exchange.upgrade() else { continue };
            match exchange.until() {
                // A renewal has moved the end.
                Some(until) if until > now => {
                    watched.by_end.insert(Key(until, key.1), Arc::downgrade(&exchange));
                }
                Some(_) => due.push(exchange),
                None => {}
            }
        }
        let next = watched.by_end.keys().next().map(|key| key.0.min(now + LOOK_EVERY));
        watched.next_look = next;
        (due, next)
    }

    /// Works until it is aborted.
    pub(super) async fn run(self: Arc<Self>) {
        let mut idle = false;
        loop {
            let now = Instant::now();
            let (due, next) = self.due(now);
            for exchange in due {
                exchange.expire();
            }
            // One more look after the last exchange saves a wake-up when the next one comes.
            let look = next.or_else(|| (!idle).then(|| now + LOOK_EVERY));
            idle = next.is_none();
            self.rest(look).await;
        }
    }

    async fn rest(&self, look: Option<Instant>) {
        let sooner = self.sooner.notified();
        self.watched().next_look = look;
        match look {
            Some(look) => {
                let _ = timeout_at(look, sooner).await;
            }
            None => sooner.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Exchange {
        until: Mutex<Option<Instant>>,
        ended: AtomicUsize,
    }

    impl Expire for Exchange {
        fn until(&self) -> Option<Instant> {
            *self.until.lock().unwrap()
        }

        fn expire(&self) {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn watched(watchdog: &Watchdog, seconds: u64) -> Arc<Exchange> {
        let until = Instant::now() + Duration::from_secs(seconds);
        let exchange =
            Arc::new(Exchange { until: Mutex::new(Some(until)), ended: AtomicUsize::new(0) });
        let weak: Weak<Exchange> = Arc::downgrade(&exchange);
        watchdog.watch(until, weak);
        exchange
    }

    async fn after(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::task::yield_now().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_exchange_is_ended_at_its_end_and_not_before() {
        let watchdog = Arc::new(Watchdog::default());
        let task = tokio::spawn(watchdog.clone().run());
        let (short, long) = (watched(&watchdog, 10), watched(&watchdog, 30));
        after(9).await;
        assert_eq!(short.ended.load(Ordering::SeqCst), 0);
        after(2).await;
        assert_eq!(short.ended.load(Ordering::SeqCst), 1);
        assert_eq!(long.ended.load(Ordering::SeqCst), 0);
        after(20).await;
        assert_eq!(long.ended.load(Ordering::SeqCst), 1);
        let late = watched(&watchdog, 5);
        after(6).await;
        assert_eq!(late.ended.load(Ordering::SeqCst), 1, "also after the task had nothing to do");
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_exchange_goes_on() {
        let watchdog = Arc::new(Watchdog::default());
        let task = tokio::spawn(watchdog.clone().run());
        let exchange = watched(&watchdog, 10);
        *exchange.until.lock().unwrap() = Some(Instant::now() + Duration::from_secs(40));
        after(20).await;
        assert_eq!(exchange.ended.load(Ordering::SeqCst), 0);
        after(21).await;
        assert_eq!(exchange.ended.load(Ordering::SeqCst), 1);
        task.abort();
    }
}
