//! Metrics with their labels, as the facade knows them.
//!
//! Keys are kept and handles are not: a handle that is taken before the application installs its
//! recorder would stay mute for ever.

use std::sync::OnceLock;

pub(super) use metrics::Key;
use metrics::{Label, Level, Metadata, Recorder, SharedString, with_recorder};

use super::table::Metric;

const METADATA: Metadata<'static> =
    Metadata::new("reqwest_lease", Level::INFO, Some("reqwest_lease"));

/// Hands the recorder over; for as good as nothing when there is none.
pub(super) fn with(record: impl FnOnce(&dyn Recorder, &Metadata<'_>)) {
    with_recorder(|recorder| record(recorder, &METADATA));
}

pub(super) fn key(metric: &Metric, labels: &[(&'static str, &str)]) -> Key {
    debug_assert!(labels.iter().map(|(label, _)| label).eq(metric.labels()), "{}", metric.name());
    Key::from_parts(
        metric.name(),
        labels.iter().map(|(label, of)| made(label, of)).collect::<Vec<_>>(),
    )
}

fn made(label: &'static str, of: &str) -> Label {
    Label::new(label, SharedString::from_shared(of.into()))
}

/// The keys of a metric whose last label has a word of a closed set, made when a word is first met.
#[derive(Debug)]
pub(super) struct Words {
    metric: &'static Metric,
    labels: Vec<Label>,
    known: Box<[OnceLock<(&'static str, Key)>]>,
}

/// As many as the longest of the sets.
const MOST: usize = 32;

impl Words {
    pub(super) fn new(metric: &'static Metric, labels: &[(&'static str, &str)]) -> Self {
        let labels = labels.iter().map(|(label, of)| made(label, of)).collect();
        Self { metric, labels, known: (0..MOST).map(|_| OnceLock::new()).collect() }
    }

    pub(super) fn with(&self, word: &'static str, record: impl FnOnce(&Key)) {
        for place in &self.known {
            let (known, key) = place.get_or_init(|| (word, self.key(word)));
            if *known == word {
                return record(key);
            }
        }
        record(&self.key(word));
    }

    fn key(&self, word: &'static str) -> Key {
        let mut labels = self.labels.clone();
        if let Some(last) = self.metric.labels().last() {
            labels.push(Label::from_static_parts(last, word));
        }
        Key::from_parts(self.metric.name(), labels)
    }
}
