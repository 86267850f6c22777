//! What counts and measures. Without the feature `metrics` only what [`Counts`](super::Counts)
//! shows is left of it, and times are not taken at all.

#[cfg(feature = "metrics")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

#[cfg(feature = "metrics")]
use super::keys::{Key, Words, key, with};
use super::table::Metric;

type Labels<'a> = &'a [(&'static str, &'a str)];

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    count: AtomicU64,
    /// `None` for what is no metric.
    #[cfg(feature = "metrics")]
    key: Option<Key>,
}

impl Counter {
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "it is no metric"))]
    pub(crate) fn new(metric: &'static Metric, labels: Labels<'_>) -> Self {
        let counter = Self {
            count: AtomicU64::new(0),
            #[cfg(feature = "metrics")]
            key: Some(key(metric, labels)),
        };
        #[cfg(feature = "metrics")]
        counter.tell();
        counter
    }

    /// Has it be there: one that is there from the beginning shows its first event as a rise.
    #[cfg(feature = "metrics")]
    pub(crate) fn tell(&self) {
        if let Some(key) = &self.key {
            with(|recorder, metadata| recorder.register_counter(key, metadata).increment(0));
        }
    }

    pub(crate) fn add_one(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, count: usize) {
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(key) = &self.key
            && count > 0
        {
            with(|recorder, metadata| {
                recorder.register_counter(key, metadata).increment(count as u64);
            });
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A count for each word of a closed set: outcomes, codes.
#[derive(Debug)]
pub(crate) struct Family {
    all: AtomicU64,
    #[cfg(feature = "metrics")]
    words: Words,
}

impl Family {
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "it is no metric"))]
    pub(crate) fn new(metric: &'static Metric, labels: Labels<'_>) -> Self {
        Self {
            all: AtomicU64::new(0),
            #[cfg(feature = "metrics")]
            words: Words::new(metric, labels),
        }
    }

    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "it is no metric"))]
    pub(crate) fn add_one(&self, word: &'static str) {
        self.all.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        with(|recorder, metadata| {
            self.words.with(word, |key| recorder.register_counter(key, metadata).increment(1));
        });
    }

    /// What words it will have is not known.
    #[cfg(feature = "metrics")]
    pub(crate) fn tell(&self) {}

    /// Those of all words.
    pub(crate) fn value(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }
}

/// Times of one kind.
pub(crate) struct Timing {
    #[cfg(feature = "metrics")]
    key: Key,
}

#[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "it is no metric"))]
impl Timing {
    pub(crate) fn new(metric: &'static Metric, labels: Labels<'_>) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            key: key(metric, labels),
        }
    }

    pub(crate) fn record(&self, time: Duration) {
        #[cfg(feature = "metrics")]
        with(|recorder, metadata| {
            recorder.register_histogram(&self.key, metadata).record(time.as_secs_f64());
        });
    }
}

/// Times of one kind for each word of a closed set.
pub(crate) struct Timings {
    #[cfg(feature = "metrics")]
    words: Words,
}

#[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "it is no metric"))]
impl Timings {
    pub(crate) fn new(metric: &'static Metric, labels: Labels<'_>) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            words: Words::new(metric, labels),
        }
    }

    /// Takes the time since the watch was started.
    pub(crate) fn record(&self, word: &'static str, watch: Stopwatch) {
        #[cfg(feature = "metrics")]
        with(|recorder, metadata| {
            let time = watch.0.elapsed().as_secs_f64();
            self.words.with(word, |key| recorder.register_histogram(key, metadata).record(time));
        });
    }
}

/// When something began; nothing where times are not taken.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(#[cfg(feature = "metrics")] Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(
            #[cfg(feature = "metrics")]
            Instant::now(),
        )
    }

    /// One that was started at this moment.
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "it is no metric"))]
    pub(crate) fn since(moment: Instant) -> Self {
        Self(
            #[cfg(feature = "metrics")]
            moment,
        )
    }
}

/// Whether something is so in this process; when it is dropped it is not.
#[cfg(feature = "metrics")]
pub(crate) struct Flag {
    key: Key,
    on: AtomicBool,
}

#[cfg(feature = "metrics")]
impl Flag {
    pub(crate) fn new(metric: &'static Metric, labels: Labels<'_>) -> Self {
        let flag = Self { key: key(metric, labels), on: AtomicBool::new(false) };
        flag.tell();
        flag
    }

    pub(crate) fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
        self.tell();
    }

    /// Tells it again, to a recorder that may have come meanwhile.
    pub(crate) fn tell(&self) {
        let value = if self.on.load(Ordering::Relaxed) { 1.0 } else { 0.0 };
        with(|recorder, metadata| recorder.register_gauge(&self.key, metadata).set(value));
    }
}

#[cfg(feature = "metrics")]
impl Drop for Flag {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// Sets a value that is looked at now and then.
#[cfg(feature = "metrics")]
pub(crate) fn gauge(metric: &'static Metric, labels: Labels<'_>, value: f64) {
    with(|recorder, metadata| {
        recorder.register_gauge(&key(metric, labels), metadata).set(value);
    });
}
