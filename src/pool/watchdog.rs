//! Ends exchanges whose lease has run out, also those that nobody reads on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use slab::Slab;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::Core;

/// Something that must end when its lease does.
pub(crate) trait Expire: Send + Sync {
    /// Until when it may go on; `None` when it is over.
    fn until(&self) -> Option<Instant>;

    /// Ends it.
    fn expire(&self);
}

/// The exchanges under way, with the end of their trust.
#[derive(Default)]
pub(crate) struct Watchdog {
    watched: Mutex<Watched>,
    sooner: Notify,
}

#[derive(Default)]
struct Watched {
    exchanges: Slab<Entry>,
    /// When the task looks next by itself.
    next_look: Option<Instant>,
}

struct Entry {
    until: Instant,
    /// Taken out when it is ended.
    exchange: Option<Weak<dyn Expire>>,
}

/// A watched exchange, until it is forgotten.
#[derive(Debug)]
pub(crate) struct Key(usize);

/// After the last exchange one more look, so that the task need not be woken for the next one.
const LINGER: Duration = Duration::from_secs(1);

impl Watchdog {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches until `until`, which may be moved later by then.
    pub(crate) fn watch(&self, until: Instant, exchange: Weak<dyn Expire>) -> Key {
        let mut watched = self.watched();
        if watched.next_look.is_none_or(|look| until < look) {
            self.sooner.notify_one();
        }
        Key(watched.exchanges.insert(Entry { until, exchange: Some(exchange) }))
    }

    pub(crate) fn forget(&self, key: Key) {
        self.watched().exchanges.remove(key.0);
    }

    /// Takes out what is due, and says when the next one is; `None` when nothing is left.
    fn due(&self, now: Instant) -> (Vec<Arc<dyn Expire>>, Option<Instant>) {
        let mut watched = self.watched();
        // Until the task rests again, whoever comes tells it.
        watched.next_look = None;
        let mut due = Vec::new();
        let mut next: Option<Instant> = None;
        for (_, entry) in &mut watched.exchanges {
            if entry.until <= now {
                let exchange = entry.exchange.as_ref().and_then(Weak::upgrade);
                match exchange.as_ref().and_then(|exchange| exchange.until()) {
                    // A renewal has moved the end.
                    Some(until) if until > now => entry.until = until,
                    until => {
                        entry.exchange = None;
                        due.extend(exchange.filter(|_| until.is_some()));
                        continue;
                    }
                }
            }
            next = Some(next.map_or(entry.until, |next| next.min(entry.until)));
        }
        (due, next)
    }

    /// Works until it is aborted.
    pub(super) async fn run(self: Arc<Self>, core: Arc<Core>) {
        let mut idle = false;
        loop {
            let now = Instant::now();
            let (due, next) = self.due(now);
            for exchange in due {
                // What it holds is dropped there, with whatever somebody's layers made of it.
                core.run("a response's body", move || exchange.expire());
            }
            let look = next.or_else(|| (!idle).then(|| now + LINGER));
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
        panics: bool,
    }

    impl Expire for Exchange {
        fn until(&self) -> Option<Instant> {
            *self.until.lock().unwrap()
        }

        fn expire(&self) {
            self.ended.fetch_add(1, Ordering::SeqCst);
            assert!(!self.panics, "as a body may when it is dropped");
        }
    }

    fn watched(watchdog: &Watchdog, seconds: u64) -> Arc<Exchange> {
        watched_one(watchdog, seconds, false)
    }

    fn watched_one(watchdog: &Watchdog, seconds: u64, panics: bool) -> Arc<Exchange> {
        let until = Mutex::new(Some(Instant::now() + Duration::from_secs(seconds)));
        let exchange = Arc::new(Exchange { until, ended: AtomicUsize::new(0), panics });
        let until = Instant::now() + Duration::from_secs(seconds);
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
        let task = tokio::spawn(watchdog.clone().run(Core::in_memory()));
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
    async fn an_exchange_that_panics_keeps_no_other_alive() {
        let (watchdog, core) = (Arc::new(Watchdog::default()), Core::in_memory());
        let task = tokio::spawn(watchdog.clone().run(core.clone()));
        let panics = [1, 2].map(|seconds| watched_one(&watchdog, seconds, true));
        let other = watched(&watchdog, 3);
        after(1).await;
        after(1).await;
        after(2).await;
        assert!(panics.iter().all(|exchange| exchange.ended.load(Ordering::SeqCst) == 1));
        assert_eq!(other.ended.load(Ordering::SeqCst), 1);
        assert_eq!(core.counters.snapshot().panics, 2);
        task.abort();
    }

    /// Between two looks the task is busy ending exchanges.
    #[tokio::test(start_paused = true)]
    async fn an_exchange_that_comes_between_two_looks_is_not_missed() {
        let watchdog = Watchdog::default();
        let _due = watched(&watchdog, 1);
        watchdog.sooner.notified().await;
        tokio::time::advance(Duration::from_secs(2)).await;
        let (due, next) = watchdog.due(Instant::now());
        assert_eq!((due.len(), next), (1, None));
        let _between = watched(&watchdog, 1);
        let told = timeout_at(Instant::now(), watchdog.sooner.notified()).await;
        assert!(told.is_ok(), "the task would sleep past its end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_exchange_goes_on() {
        let watchdog = Arc::new(Watchdog::default());
        let task = tokio::spawn(watchdog.clone().run(Core::in_memory()));
        let exchange = watched(&watchdog, 10);
        *exchange.until.lock().unwrap() = Some(Instant::now() + Duration::from_secs(40));
        after(20).await;
        assert_eq!(exchange.ended.load(Ordering::SeqCst), 0);
        after(21).await;
        assert_eq!(exchange.ended.load(Ordering::SeqCst), 1);
        task.abort();
    }
}
