// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists that a log of any length cannot make large.

use std::collections::VecDeque;

/// Maximum number of alarms, changes or files that are kept one by one; the others are only counted.
const MOST: usize = 1000;
/// Lines of a program's output that are kept: the first ones show how it began, the last ones how it ended.
const FIRST: usize = 100;
const LAST: usize = 400;
/// Characters of such a line.
pub(super) const WIDTH: usize = 500;

/// The first `MOST`, and how many more there were.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept<T> {
    /// The first of them.
    pub items: Vec<T>,
    /// How many more there were.
    pub left_out: u64,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            left_out: 0,
        }
    }
}

impl<T> Kept<T> {
    pub(crate) fn push(&mut self, item: T) {
        match self.items.len() < MOST {
            true => self.items.push(item),
            false => self.left_out += 1,
        }
    }
}

/// A program's output: its first and its last lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail<T> {
    /// The first lines.
    pub first: Vec<T>,
    /// The last lines.
    pub last: VecDeque<T>,
    /// Between the two.
    pub left_out: u64,
}

impl<T> Default for Tail<T> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            last: VecDeque::new(),
            left_out: 0,
        }
    }
}

impl<T> Tail<T> {
    pub(crate) fn push(&mut self, item: T) {
        if self.first.len() < FIRST {
            self.first.push(item);
            return;
        }
        self.last.push_back(item);
        if self.last.len() > LAST {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    /// Lines there were in all.
    pub fn count(&self) -> u64 {
        (self.first.len() + self.last.len()) as u64 + self.left_out
    }
}

/// Cuts a line that is too long to be shown; says so in it.
pub(crate) fn shorten(text: &mut String) {
    let Some((at, _)) = text.char_indices().nth(WIDTH) else {
        return;
    };
    let more = text[at..].chars().count();
    text.truncate(at);
    text.push_str(&format!("… ({more} characters more)"));
    text.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_are_kept_and_the_rest_counted() {
        let mut tail = Tail::default();
        (0..10_000).for_each(|n| tail.push(n));
        assert_eq!((tail.first[0], tail.first.len()), (0, FIRST));
        assert_eq!((tail.last.back(), tail.last.len()), (Some(&9_999), LAST));
        assert_eq!(tail.left_out, 9_500);
        assert_eq!(tail.count(), 10_000);
        let mut kept = Kept::default();
        (0..1_500).for_each(|n| kept.push(n));
        assert_eq!((kept.items.len(), kept.left_out), (MOST, 500));
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let mut text = "ü".repeat(WIDTH + 7);
        shorten(&mut text);
        assert!(text.ends_with("ü… (7 characters more)"), "{text}");
        let mut short = "ü".repeat(WIDTH);
        shorten(&mut short);
        assert_eq!(short.chars().count(), WIDTH);
    }
}
