//! The one printer: tables for people, JSON for programs.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use serde_json::Value;

use super::failure::Failure;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    Table,
    /// One document of JSON, or one a line while something is watched.
    Json,
}

/// A result in both forms.
pub(crate) struct Report {
    text: String,
    json: Value,
}

impl Report {
    pub(crate) fn new(json: Value) -> Self {
        Self { text: String::new(), json }
    }

    /// A line of text.
    pub(crate) fn line(mut self, line: impl AsRef<str>) -> Self {
        self.text += line.as_ref();
        self.text.push('\n');
        self
    }

    /// Names with values, under one another.
    pub(crate) fn facts(mut self, facts: &[(&str, String)]) -> Self {
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
        for (name, value) in facts {
            self.text += format!("{name:width$}{value}").trim_end();
            self.text.push('\n');
        }
        self
    }

    /// A table; names of columns that begin with `>` stand to the right, without it.
    pub(crate) fn table(mut self, columns: &[&str], rows: Vec<Vec<String>>) -> Self {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        if !io::stdout().is_terminal() {
            table.force_no_tty();
        }
        table.set_header(columns.iter().map(|name| name.trim_start_matches('>').to_uppercase()));
        for row in rows {
            table.add_row(row);
        }
        if leaves_room(&table) {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        for (nth, column) in columns.iter().enumerate() {
            if let Some(shaped) = table.column_mut(nth) {
                shaped.set_padding((0, 2));
                // Only the last one is broken into lines: a name that is broken cannot be copied.
                if nth + 1 < columns.len() {
                    shaped.set_constraint(ColumnConstraint::ContentWidth);
                }
                if column.starts_with('>') {
                    shaped.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        for line in table.to_string().lines() {
            self.text += line.trim_end();
            self.text.push('\n');
        }
        self
    }

    /// The result in a form, with a line's end.
    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Table => self.text.clone(),
            Format::Json => format!("{}\n", self.json),
        }
    }

    /// Prints it.
    pub(crate) fn print(&self, format: Format) -> Result<(), Failure> {
        write(&self.render(format))
    }
}

/// Whether the terminal has room for some words of the last column beside all others. Where it has
/// none the terminal breaks the lines, which a few letters in each would not be better than.
fn leaves_room(table: &Table) -> bool {
    let widths = table.column_max_content_widths();
    let others = widths.split_last().map_or(&[][..], |(_, others)| others);
    let taken: u16 = others.iter().map(|width| width + 2).sum();
    table.width().is_some_and(|width| width >= taken.saturating_add(20))
}

/// Writes to standard output.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a line to standard error. Where nobody reads that, nothing can be done about it.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// `1 endpoint`, `2 endpoints`.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// The first few of many.
pub(crate) fn some<T: ToString>(all: &[T]) -> String {
    let shown = all.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match all.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

const SHOWN: usize = 5;
