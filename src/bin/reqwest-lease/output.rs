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
        let names: Vec<_> =
            columns.iter().map(|name| name.trim_start_matches('>').to_uppercase()).collect();
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        if !io::stdout().is_terminal() {
            table.force_no_tty();
        }
        let is_broken = table.width().is_some_and(|width| is_broken(&names, &rows, width.into()));
        table.set_content_arrangement(match is_broken {
            true => ContentArrangement::Dynamic,
            false => ContentArrangement::Disabled,
        });
        table.set_header(names);
        for row in rows {
            table.add_row(row);
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

/// Writes to standard output.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Whether the cells of the last column are broken into lines: not if all fits, nor if that would
/// make a ribbon of them, which is worse to read than what the terminal makes of long lines.
fn is_broken(names: &[String], rows: &[Vec<String>], width: usize) -> bool {
    let wide = |nth: usize| {
        let cells = rows.iter().filter_map(|row| row.get(nth)).chain(names.get(nth));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let Some(last) = names.len().checked_sub(1) else { return false };
    let left = width.saturating_sub((0..last).map(|nth| wide(nth) + 2).sum());
    (LEAST_TO_BREAK..wide(last)).contains(&left)
}

const LEAST_TO_BREAK: usize = 24;

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
