// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables in plain text.

use std::io::{self, IsTerminal};

/// Returns the rows as lines, with two spaces between columns that are as wide as their widest cell.
/// If a terminal is too narrow for a line, the first cell of each row has a line for itself.
pub fn columns<R: AsRef<[String]>>(rows: impl IntoIterator<Item = R>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    within(&rows, terminal_width())
}

/// Returns the width of standard output in characters; `None`: it is no terminal.
fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&stdout));
    size?
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width > 0)
}

fn within<R: AsRef<[String]>>(rows: &[R], width: Option<usize>) -> String {
    let mut widths = Vec::new();
    for row in rows {
        for (i, cell) in row.as_ref().iter().enumerate() {
            widths.resize(widths.len().max(i + 1), 0);
            widths[i] = widths[i].max(cell.chars().count());
        }
    }
    let line = |cells: &[String], widths: &[usize]| {
        let cells = cells.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    let lines: Vec<String> = rows.iter().map(|row| line(row.as_ref(), &widths)).collect();
    let fits = |line: &String| width.is_none_or(|width| line.chars().count() <= width + 1);
    if widths.len() < 3 || lines.iter().all(fits) {
        return lines.concat();
    }
    let folded = |row: &R| {
        let row = row.as_ref();
        let rest = line(&row[1..], &widths[1..]);
        match row[0].is_empty() {
            true => format!("  {rest}"),
            false => format!("{}\n  {rest}", row[0]),
        }
    };
    rows.iter().map(folded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["", "value", ""], ["äöü", "1", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(rows), "     value\näöü  1      x\n");
        assert_eq!(columns::<[String; 2]>([]), "");
    }

    #[test]
    fn a_narrow_terminal_folds_rows() {
        let rows = [["", "given", "got"], ["up delay", "20ms", "21ms"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        let wide = "          given  got\nup delay  20ms   21ms\n";
        assert_eq!(within(&rows, None), wide);
        assert_eq!(within(&rows, Some(21)), wide);
        assert_eq!(
            within(&rows, Some(20)),
            "  given  got\nup delay\n  20ms   21ms\n"
        );
    }
}
