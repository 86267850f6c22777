//! Line and column of a byte in a text.

use std::fmt;

/// Where the lines of a text begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let after_newline = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(after_newline.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    pub(super) fn position(&self, at: usize) -> Position {
        let line = self.line(at);
        let start = self.start(line);
        let before = self.text.get(start..).unwrap_or_default().char_indices();
        let column = before.take_while(|(offset, _)| start + offset < at).count() + 1;
        Position { line, column }
    }

    /// The line of the byte, counted from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// The text of the line that the byte is on.
    pub(super) fn text_at(&self, at: usize) -> &'a str {
        let rest = self.text.get(self.start_at(at)..).unwrap_or_default();
        rest.lines().next().unwrap_or_default()
    }

    /// The byte at which the line of the byte begins.
    pub(super) fn start_at(&self, at: usize) -> usize {
        self.start(self.line(at))
    }

    fn start(&self, line: usize) -> usize {
        self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// A place in a text, counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    line: usize,
    column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "é = 1\r\nab\n";
        let lines = Lines::new(text);
        let of = |at| lines.position(at).to_string();
        assert_eq!(of(0), "line 1, column 1");
        assert_eq!(of(3), "line 1, column 3");
        assert_eq!(of(8), "line 2, column 1");
        assert_eq!(of(9), "line 2, column 2");
        assert_eq!(of(text.len()), "line 3, column 1");
        assert_eq!(lines.text_at(9), "ab");
    }

    #[test]
    fn any_offset_has_a_position() {
        let lines = Lines::new("éé\né");
        for at in 0..20 {
            let _ = (lines.position(at), lines.text_at(at));
        }
        assert_eq!(Lines::new("").position(0).to_string(), "line 1, column 1");
    }
}
