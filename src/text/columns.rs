// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables in plain text.

/// Returns the rows as lines, with two spaces between columns that are as wide as their widest cell.
pub fn columns<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max();
    let widths: [_; N] = std::array::from_fn(|i| width(i).unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["", "value", ""], ["äöü", "1", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(rows), "     value\näöü  1      x\n");
        assert_eq!(columns::<2>([]), "");
    }
}
