// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of a table without a row.

/// Returns the position after empty lines and comments, which the reader of CSV counts as the record's, as it does a
/// line feed behind a carriage return.
pub(crate) fn behind_blank(text: &str, start: usize) -> usize {
    let mut at = start;
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        if !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
        at += line.len();
    }
    at
}
