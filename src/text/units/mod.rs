// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities as people write them, like in tc: a number directly followed by its unit.
//!
//! Every kind has one table of units, `FromStr`, and a `Display` that reads back to the same value.

mod distance;
mod number;
mod percent;
mod rate;
mod size;
mod time;

pub use percent::Percent;
pub use rate::Rate;
pub use size::Size;
pub use time::{Nanoseconds, Time};

pub(crate) use distance::Distance;
pub(crate) use time::Span;

pub(crate) use number::{QuantityKind, Unit, shifted};

use number::{Number, comma};

/// The problem of a quantity, and its correction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct UnitError {
    /// The mistake as a phrase.
    pub problem: String,
    /// The correction: what to write instead.
    pub help: String,
}

impl UnitError {
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            help: help.into(),
        }
    }
}

/// Returns the candidate that is the most likely meaning of a misspelt name.
pub(crate) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        // A third of the letters may be wrong, as in rustc.
        .map(|c| ((word.len().max(c.len()) / 3).max(1), c))
        // More letters are missing than may be wrong: skip the comparison.
        .filter(|(wrong, c)| word.len().abs_diff(c.len()) <= *wrong)
        .map(|(wrong, c)| (strsim::osa_distance(&word, &c.to_lowercase()), wrong, c))
        .filter(|(distance, wrong, _)| distance <= wrong)
        .min_by_key(|(distance, ..)| *distance)
        .map(|(.., c)| c)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn of_several_similar_words_the_most_similar_is_suggested() {
        let words = ["source-mac", "source-port", "source"];
        assert_eq!(closest("source-prt", words), Some("source-port"));
        assert_eq!(closest("sorce", words), Some("source"));
        assert_eq!(closest("destination", words), None);
    }
}
