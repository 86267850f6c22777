//! The table, and keys of words.

use std::collections::BTreeSet;

use super::keys::Words;
use super::*;
use crate::outcome::Outcome;

#[test]
fn every_metric_has_a_name_of_its_own_and_says_what_it_is() {
    let names: BTreeSet<_> = Metric::ALL.iter().map(Metric::name).collect();
    assert_eq!(names.len(), Metric::ALL.len());
    for metric in Metric::ALL {
        let name = metric.name();
        assert!(name.starts_with("reqwest_lease_") && metric.help().ends_with('.'), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind() == MetricKind::Counter, "{name}");
        assert_eq!(name.ends_with("_seconds"), metric.unit() == "seconds", "{name}");
        if metric.kind() == MetricKind::Histogram {
            assert_eq!(metric.unit(), "seconds", "{name}");
        }
    }
}

#[test]
fn labels_are_bounded() {
    for metric in Metric::ALL {
        for label in metric.labels() {
            assert!(["pool", "outcome", "reason", "code"].contains(label), "{metric} {label}");
        }
    }
}

#[test]
fn there_is_room_for_the_words_of_the_longest_set() {
    let words = Words::new(&table::RELEASES, &[("pool", "vn")]);
    for outcome in Outcome::ALL {
        let mut first = None;
        words.with(outcome.as_str(), |key| first = Some(std::ptr::from_ref(key)));
        let mut again = None;
        words.with(outcome.as_str(), |key| {
            let labels: Vec<_> = key.labels().map(|label| (label.key(), label.value())).collect();
            assert_eq!(labels, [("pool", "vn"), ("outcome", outcome.as_str())]);
            again = Some(std::ptr::from_ref(key));
        });
        assert_eq!(first, again, "{outcome} has its key made once");
    }
}
