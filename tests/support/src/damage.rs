// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts with damage: what a parser must read or reject, without a panic.

use proptest::prelude::*;

/// A change of a text at a position.
#[derive(Debug, Clone)]
pub struct Edit {
    at: usize,
    what: Change,
}

#[derive(Debug, Clone)]
enum Change {
    /// A character instead of another one.
    Replace(char),
    Insert(char),
    /// Characters that are removed.
    Cut(usize),
    /// The line once more.
    Double,
    /// A token instead of another one.
    Word(&'static str),
}

/// Values at which parsers and sums break.
const WORDS: &[&str] = &[
    "",
    "-1",
    "0",
    "1e308",
    "-1e308",
    "NaN",
    "inf",
    "18446744073709551615",
    "340282366920938463463374607431768211455",
    "1e-320",
    "\"\"",
    "[]",
    "{}",
    "\u{0}",
    "\u{1f4a3}",
];

/// Any change.
pub fn edit() -> impl Strategy<Value = Edit> {
    let change = prop_oneof![
        any::<char>().prop_map(Change::Replace),
        prop::sample::select(
            "0123456789.-eE,;\"'[]{}()<>/=#$ \n\t"
                .chars()
                .collect::<Vec<_>>()
        )
        .prop_map(Change::Insert),
        (1..30_usize).prop_map(Change::Cut),
        Just(Change::Double),
        prop::sample::select(WORDS).prop_map(Change::Word),
    ];
    (any::<usize>(), change).prop_map(|(at, what)| Edit { at, what })
}

/// Applies changes, one after the other.
pub fn damaged(text: &str, edits: &[Edit]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for Edit { at, what } in edits {
        if text.is_empty() {
            break;
        }
        let at = at % text.len();
        let is_word = |c: char| c.is_alphanumeric() || "._-".contains(c);
        match what {
            Change::Replace(c) => text[at] = *c,
            Change::Insert(c) => text.insert(at, *c),
            Change::Cut(n) => drop(text.drain(at..(at + n).min(text.len()))),
            Change::Double => {
                let start = text[..at]
                    .iter()
                    .rposition(|c| *c == '\n')
                    .map_or(0, |n| n + 1);
                let end = text[at..].iter().position(|c| *c == '\n');
                let end = end.map_or(text.len(), |n| at + n + 1);
                let line = text[start..end].to_vec();
                text.splice(end..end, line);
            }
            Change::Word(word) => {
                let start = text[..at].iter().rposition(|c| !is_word(*c));
                let end = text[at..].iter().position(|c| !is_word(*c));
                let (start, end) = (
                    start.map_or(0, |n| n + 1),
                    end.map_or(text.len(), |n| at + n),
                );
                text.splice(start..end, word.chars());
            }
        }
    }
    text.into_iter().collect()
}
