//! The TOML form of an inventory.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Error;

use super::entry::Entry;
use super::fault::Fault;
use super::hint;
use super::lines::Lines;
use super::password::Lookup;
use super::roster::Roster;
use super::snapshot::Snapshot;
use super::table::{Found, Table, wrong_type};

/// Reads the text and the passwords that it refers to, which blocks.
pub(super) fn parse(text: &str, lookup: &Lookup) -> Result<Snapshot, Error> {
    let lines = Lines::new(text);
    gather(text, &lines, lookup).map_err(|fault| fault.into_error(&lines))
}

fn gather(text: &str, lines: &Lines<'_>, lookup: &Lookup) -> Result<Snapshot, Fault> {
    let document = DeTable::parse(text).map_err(|error| syntax_fault(&error, lines))?;
    let root = Table::new(0, document.get_ref());
    root.allow_only(&["version", "endpoint"])?;
    let version = root.integer("version", 0..=i64::MAX as u64)?.map(|version| version.value);
    let mut roster = Roster::new(lines);
    for (nth, item) in (1..).zip(endpoint_items(root)?) {
        let Some(entries) = item.get_ref().as_table() else {
            return Err(not_a_table(item).in_endpoint(nth, None));
        };
        let entry = Entry::read(nth, Table::new(item.span().start, entries), lookup)?;
        roster.add(&entry).map_err(|fault| fault.in_endpoint(nth, Some(&entry.id.value)))?;
    }
    roster.finish(version)
}

fn endpoint_items<'a>(root: Table<'a>) -> Result<&'a [Spanned<DeValue<'a>>], Fault> {
    match root.value("endpoint") {
        None => Ok(&[]),
        Some(Found { value: DeValue::Array(items), .. }) => Ok(items),
        Some(Found { at, value: DeValue::Table(_) }) => {
            Err(Fault::new(at, "an endpoint is written with two brackets: [[endpoint]]"))
        }
        Some(found) => Err(wrong_type("endpoint", "an array of tables", found)),
    }
}

fn not_a_table(item: &Spanned<DeValue<'_>>) -> Fault {
    wrong_type(
        "endpoint",
        "an array of tables",
        Found { at: item.span().start, value: item.get_ref() },
    )
}

/// The parser's error without what it repeats of the text.
fn syntax_fault(error: &toml::de::Error, lines: &Lines<'_>) -> Fault {
    let at = error.span().map_or(0, |span| span.start);
    if hint::is_proxy_line(lines.text_at(at)) {
        return Fault::new(lines.start_at(at), format!("not valid TOML; {}", hint::HINT));
    }
    match SYNTAX_FAULTS.iter().find(|known| error.message().starts_with(**known)) {
        Some(known) => Fault::new(at, format!("not valid TOML: {known}")),
        None => Fault::new(at, "not valid TOML"),
    }
}

/// What of the parser's messages is passed on: these are known to hold nothing of the text.
const SYNTAX_FAULTS: [&str; 14] = [
    "duplicate key",
    "string values must be quoted",
    "key with no value",
    "missing value",
    "extra `=`",
    "unclosed array table",
    "unclosed table",
    "unclosed array",
    "unclosed inline table",
    "missing comma between array elements",
    "missing comma between key-value pairs",
    "unexpected key or value",
    "invalid basic string",
    "invalid literal string",
];
