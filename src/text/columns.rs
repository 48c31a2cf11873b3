// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables in plain text.

use std::io::{self, IsTerminal};

/// Returns the rows as lines, with two spaces between columns that are as wide as their widest cell.
/// If a terminal is too narrow for a line, the first cell of each row has a line for itself, and the other
/// columns have as many lines as they need.
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
    let is_narrow = |width: &usize| lines.iter().any(|line| line.chars().count() > width + 1);
    let Some(width) = width.filter(is_narrow).filter(|_| widths.len() > 2) else {
        return lines.concat();
    };
    // The first column of each line, and where the last one ends.
    let (mut starts, mut used) = (vec![1], 0);
    for (i, column) in widths.iter().enumerate().skip(1) {
        if used > 0 && used + 2 + column > width {
            starts.push(i);
            used = 0;
        }
        used += 2 + column;
    }
    starts.push(widths.len());
    let mut out = String::new();
    for row in rows {
        let row = row.as_ref();
        if !row[0].is_empty() {
            out += &format!("{}\n", row[0]);
        }
        for part in starts.windows(2) {
            let cells = row.get(part[0]..part[1].min(row.len()));
            let cells = line(cells.unwrap_or_default(), &widths[part[0]..]);
            if cells != "\n" {
                out += &format!("  {cells}");
            }
        }
    }
    out
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

    #[test]
    fn a_folded_row_has_as_many_lines_as_it_needs() {
        let rows: [&[&str]; 3] = [
            &["", "a", "b", "b - a", ""],
            &["up delay", "20ms ± 1ms", "21ms ± 1ms", "+1ms", "p = 0.03"],
            &["up loss", "0", "-"],
        ];
        let owned =
            |row: &[&str]| -> Vec<String> { row.iter().map(|cell| (*cell).to_owned()).collect() };
        let rows = rows.map(owned);
        let folded = "  a           b\n  b - a\nup delay\n  20ms ± 1ms  21ms ± 1ms\n  +1ms   p = 0.03\n\
                      up loss\n  0           -\n";
        assert_eq!(within(&rows, Some(24)), folded);
        assert!(folded.lines().all(|line| line.chars().count() <= 24));
        // A cell is not cut.
        assert_eq!(within(&rows, Some(1)).lines().count(), 11);
    }
}
