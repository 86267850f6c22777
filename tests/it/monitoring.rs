//! The board and the alert rules of `examples/monitoring/`, against the metrics that there are.

use std::collections::BTreeMap;
use std::path::Path;

use reqwest_lease::{Kind, Metric, MetricKind, Outcome};
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/monitoring");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Every expression of the board, and those of its variables.
fn board() -> Vec<String> {
    let board: Value = serde_json::from_str(&read("grafana.json")).unwrap();
    let mut found = Vec::new();
    let mut left = vec![&board];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(entries) => {
                for (key, value) in entries {
                    match value {
                        Value::String(text) if key == "expr" || key == "definition" => {
                            found.push(text.clone());
                        }
                        value => left.push(value),
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Every rule's expression, with its name.
fn alerts() -> Vec<(String, String)> {
    let documents = YamlLoader::load_from_str(&read("alerts.yaml")).unwrap();
    let rules = documents[0]["groups"][0]["rules"].as_vec().unwrap();
    let text = |rule: &Yaml, key: &str| rule[key].as_str().unwrap().to_owned();
    for rule in rules {
        assert!(rule["annotations"]["summary"].as_str().is_some(), "{rule:?}");
        assert!(rule["labels"]["severity"].as_str().is_some(), "{rule:?}");
    }
    rules.iter().map(|rule| (text(rule, "alert"), text(rule, "expr"))).collect()
}

/// What is wrong with an expression's metrics and labels.
fn faults(expression: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let used = metrics(expression);
    if used.is_empty() {
        faults.push(format!("no metric in {expression}"));
    }
    let mut labels = Vec::new();
    for name in used {
        match metric(&name) {
            Some(metric) => labels.push((metric, name.ends_with("_bucket"))),
            None => faults.push(format!("there is no {name}")),
        }
    }
    for (label, values) in named_labels(expression) {
        let known = |(metric, bucket): &(&Metric, bool)| {
            metric.labels().contains(&label.as_str()) || (*bucket && label == "le")
        };
        if !labels.iter().all(known) {
            faults.push(format!("not all have the label {label} in {expression}"));
        }
        let unknown = values.into_iter().filter(|value| !is_a_value(&label, value));
        faults.extend(unknown.map(|value| format!("{label} is never {value}")));
    }
    faults
}

fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

fn metrics(expression: &str) -> Vec<String> {
    words(expression).filter(|word| word.starts_with("reqwest_lease_")).map(str::to_owned).collect()
}

/// The metric of a series' name, which for a histogram has an end of its own.
fn metric(name: &str) -> Option<&'static Metric> {
    let find = |name: &str| Metric::ALL.iter().find(|metric| metric.name() == name);
    let ends = ["_bucket", "_sum", "_count"];
    let of_histogram = ends.iter().find_map(|end| name.strip_suffix(end));
    match of_histogram.and_then(find) {
        Some(metric) => (metric.kind() == MetricKind::Histogram).then_some(metric),
        None => find(name).filter(|metric| metric.kind() != MetricKind::Histogram),
    }
}

/// The labels in selectors, with the values they are compared with, and those after `by`.
fn named_labels(expression: &str) -> BTreeMap<String, Vec<String>> {
    let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for selector in expression.split('{').skip(1) {
        let selector = selector.split('}').next().unwrap();
        for matcher in selector.split(',') {
            let (label, value) = matcher.split_once(['=', '!']).unwrap();
            let value = value.trim_start_matches(['=', '~']).trim_matches('"');
            let values = value.split('|').map(str::to_owned);
            labels.entry(label.trim().to_owned()).or_default().extend(values);
        }
    }
    for by in expression.split(" by (").skip(1) {
        for label in by.split(')').next().unwrap().split(',') {
            labels.entry(label.trim().to_owned()).or_default();
        }
    }
    labels
}

const REASONS: [&str; 8] = [
    "disabled",
    "quarantined",
    "paused",
    "loading",
    "hold",
    "too_long",
    "crowded_out",
    "refused_by_site",
];

const CODES: [Kind; 3] = [Kind::PoolExhausted, Kind::StoreUnavailable, Kind::StoreRefused];

fn is_a_value(label: &str, value: &str) -> bool {
    match label {
        "outcome" => Outcome::ALL.iter().any(|outcome| outcome.as_str() == value),
        "reason" => REASONS.contains(&value),
        "code" => CODES.iter().any(|code| code.as_str() == value),
        // A pool's name, or the board's variable.
        _ => true,
    }
}

#[test]
fn the_board_and_the_rules_go_by_metrics_and_labels_that_there_are() {
    let (board, alerts) = (board(), alerts());
    assert!(board.len() >= 30 && alerts.len() >= 10);
    let expressions = board.iter().chain(alerts.iter().map(|(_, expression)| expression));
    let faults: Vec<_> = expressions.flat_map(|expression| faults(expression)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_board_shows_every_metric() {
    let shown: Vec<_> = board().iter().flat_map(|expression| metrics(expression)).collect();
    for metric in Metric::ALL {
        let shows = |name: &String| self::metric(name) == Some(metric);
        assert!(shown.iter().any(shows), "{metric} is nowhere on the board");
    }
}

#[test]
fn a_rule_has_a_name_of_its_own() {
    let alerts = alerts();
    let names: std::collections::BTreeSet<_> = alerts.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), alerts.len());
}

/// The twin: what the check is there to find.
#[test]
fn a_wrong_name_label_or_value_is_found() {
    for (expression, fault) in [
        ("time()", "no metric"),
        ("reqwest_lease_grants", "there is no"),
        ("reqwest_lease_grants_total_sum", "there is no"),
        ("reqwest_lease_lease_held_seconds", "there is no"),
        ("sum by (site) (reqwest_lease_grants_total)", "the label site"),
        ("sum by (le) (reqwest_lease_lease_held_seconds_count)", "the label le"),
        (r#"reqwest_lease_grants_total{outcome="success"}"#, "the label outcome"),
        (r#"reqwest_lease_releases_total{outcome=~"success|lost"}"#, "never lost"),
        (r#"reqwest_lease_grants_withheld{reason!="asleep"}"#, "never asleep"),
    ] {
        let faults = faults(expression);
        assert!(faults.iter().any(|found| found.contains(fault)), "{expression}: {faults:?}");
    }
}
