//! One word per thing: what program, metrics and board say is in the handbook's list of words.

use std::process::Command;

use super::PROGRAM;

const HANDBOOK: &str = include_str!("../../../docs/operations.md");

const README: &str = include_str!("../../../README.md");

const BOARD: &str = include_str!("../../../examples/monitoring/grafana.json");

/// The handbook without its list, and the first column of that.
fn handbook() -> (&'static str, Vec<&'static str>) {
    let (body, list) = HANDBOOK.split_once("\n## Words\n").unwrap();
    let rows = list.lines().filter(|line| line.starts_with("| ")).skip(1);
    let words = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
    (body, words.map(str::trim).collect())
}

fn help(arguments: &[&str]) -> String {
    let told = Command::new(PROGRAM).args(arguments).arg("--help").output().unwrap();
    assert!(told.status.success(), "{arguments:?}");
    String::from_utf8(told.stdout).unwrap()
}

/// The help of the program and of each command.
fn helps() -> Vec<String> {
    let all = help(&[]);
    let commands = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = commands.lines().filter_map(|line| line.split_whitespace().next());
    let mut helps: Vec<_> = names.map(|name| help(&[name])).collect();
    assert!(helps.len() > 15);
    helps.extend([help(&["inventory", "import"]), help(&["inventory", "check"]), all]);
    helps
}

#[cfg(feature = "metrics")]
fn metrics() -> Vec<(&'static str, &'static str)> {
    reqwest_lease::Metric::ALL.iter().map(|metric| (metric.name(), metric.help())).collect()
}

#[cfg(not(feature = "metrics"))]
fn metrics() -> Vec<(&'static str, &'static str)> {
    Vec::new()
}

/// All that people read, but for the list.
fn everything() -> String {
    let mut text = helps();
    text.extend([handbook().0, README, BOARD].map(str::to_owned));
    text.extend(metrics().iter().map(|(name, help)| format!("{name} {help}")));
    text.join("\n").to_lowercase()
}

/// Whether the list has a word, or the one that it is made of: `leases`, `quarantined`, `retries`.
fn is_listed(word: &str, listed: &[&str]) -> bool {
    let one = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let one = one.as_deref().unwrap_or(word);
    listed.iter().any(|it| one.starts_with(it))
}

#[test]
fn the_handbook_lists_the_words_of_states_and_metrics() {
    let (_, listed) = handbook();
    let help = help(&["list"]);
    let states: Vec<_> = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_once(": "))
        .map(|(state, _)| state)
        .collect();
    assert!(states.len() >= 6, "{states:?}");
    for state in states.iter().filter(|state| !["table", "json"].contains(state)) {
        assert!(is_listed(state, &listed), "{state}");
    }
    let mut plain = PLAIN.to_vec();
    for (name, _) in metrics() {
        for word in name.trim_start_matches("reqwest_lease_").split('_') {
            let is_plain = PLAIN.contains(&word);
            assert!(is_plain || is_listed(word, &listed), "{word} of {name}");
            assert!(!(is_plain && is_listed(word, &listed)), "{word} is listed");
            plain.retain(|it| *it != word);
        }
    }
    assert!(plain.is_empty() || metrics().is_empty(), "no metric has {plain:?}");
    assert!(!is_listed("leasing", &listed) && !is_listed("cooldow", &listed));
}

/// Words of metrics that mean what they mean everywhere.
const PLAIN: [&str; 22] = [
    "total",
    "seconds",
    "status",
    "timestamp",
    "valid",
    "withheld",
    "waiters",
    "stale",
    "repeated",
    "not",
    "owner",
    "failed",
    "panics",
    "expirations",
    "unknown",
    "request",
    "requests",
    "errors",
    "fallbacks",
    "refusals",
    "wait",
    "held",
];

#[test]
fn each_listed_word_is_in_use() {
    let (_, listed) = handbook();
    let everything = everything();
    assert!(listed.len() > 40, "{listed:?}");
    for (nth, word) in listed.iter().enumerate() {
        assert!(everything.contains(word), "{word}");
        assert!(!listed[..nth].contains(word), "{word} is listed twice");
    }
}

#[test]
fn no_other_word_says_the_same() {
    let found = |text: &str| OTHERS.iter().find(|(other, _)| text.contains(other)).copied();
    assert_eq!(found("a rate limit for"), Some(("rate limit", "budget")));
    let everything = everything();
    for line in everything.lines() {
        assert_eq!(found(line), None, "{line}");
    }
}

/// What others call it, and what it is called here.
const OTHERS: [(&str, &str); 11] = [
    ("rate limit", "budget"),
    ("blacklist", "quarantine"),
    ("blocklist", "quarantine"),
    ("cool-down", "cooldown"),
    ("cool down", "cooldown"),
    ("checkout", "lease"),
    ("check out", "lease"),
    ("audit log", "trail"),
    ("backend", "store"),
    ("uninitialized", "uninitialised"),
    ("garbage", "reap"),
];

#[test]
fn under_the_heading_of_labels_there_are_labels_alone() {
    let mut seen = 0;
    for help in helps() {
        let Some((_, section)) = help.split_once("Selection by the inventory:\n") else { continue };
        let section = section.split("\n\nCommon options").next().unwrap();
        let options = section.lines().filter_map(|line| line.trim().strip_prefix("--"));
        let names: Vec<_> = options.filter_map(|line| line.split([' ', '[', '=']).next()).collect();
        assert_eq!(names, ["provider", "group", "tag"], "{help}");
        seen += 1;
    }
    assert!(seen >= 6, "{seen}");
}
