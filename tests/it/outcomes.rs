//! What became of exchanges through real proxies and through faulty ones, case by case.
//!
//! The tables are what runs. A case that nobody can decide is `Unknown` there, and every other
//! outcome has to be exactly the one in the table.

mod bodies;
mod faults;
mod real;
mod scene;
mod timeouts;

pub(crate) use scene::Full;

use reqwest_lease::Outcome;

const README: &str = include_str!("../../README.md");

#[test]
fn enough_cases_are_decided() {
    let (real, faults) = (real::CASES.len(), faults::CASES.len() + faults::SOCKS.len());
    assert!(real >= 60 && real + faults >= 90, "{real} and {faults}");
}

/// The README's table of outcomes is the one in the code.
#[test]
fn the_readme_lists_every_outcome() {
    let rows = Outcome::ALL.iter().map(|outcome| {
        format!("| `{outcome}` | {} | {} |\n", outcome.meaning(), outcome.default_verdict())
    });
    let rows: Vec<_> = rows.collect();
    let table = format!("| outcome | seen | done by default |\n|---|---|---|\n{}", rows.concat());
    assert!(README.contains(&table), "the README lacks this table:\n{table}");
}
