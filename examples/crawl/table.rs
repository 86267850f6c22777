//! Aligned columns.

use std::io::{self, Write};

/// Prints the rows below a blank line, the first column to the left and the rest to the right.
pub(crate) fn print(out: &mut impl Write, table: &[Vec<String>]) -> io::Result<()> {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    writeln!(out)?;
    for row in table {
        write!(out, "{:<width$}", row[0], width = widths[0])?;
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(out, "  {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let mut out = Vec::new();
        print(&mut out, &[row(["A", "BB", "C"]), row(["long", "1", "100"])]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\nA     BB    C\nlong   1  100\n");
    }
}
