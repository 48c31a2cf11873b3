// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of the kinds that more than one format has.

use std::path::PathBuf;
use std::str::FromStr;

use super::{Located, Mistake, Time, UnitError, Value, Word, closest};

/// Collects mistakes instead of stopping at the first.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub mistakes: Vec<Mistake>,
    /// Where the relative paths in the text start; empty: the working directory.
    pub folder: PathBuf,
}

impl Reader {
    /// What `read` makes of `value`, with its place.
    pub fn read<T>(
        &mut self,
        value: &Located<Value>,
        read: impl Fn(&Located<Value>) -> Result<T, Mistake>,
    ) -> Option<Located<T>> {
        match read(value) {
            Ok(read) => Some(Located {
                value: read,
                at: value.at.clone(),
            }),
            Err(mistake) => {
                self.mistakes.push(mistake);
                None
            }
        }
    }

    /// Puts what `read` makes of `value` into `slot`.
    pub fn put<T>(
        &mut self,
        slot: &mut Option<Located<T>>,
        value: &Located<Value>,
        read: impl Fn(&Located<Value>) -> Result<T, Mistake>,
    ) {
        if let Some(read) = self.read(value, read) {
            *slot = Some(read);
        }
    }
}

/// A quantity written as text; a bare number is left to its parser, which asks for the unit.
pub(crate) fn quantity<T: FromStr<Err = UnitError>>(
    value: &Located<Value>,
    key: &str,
    example: &str,
) -> Result<T, Mistake> {
    match &value.value {
        Value::Text(text) | Value::Number(text) => text
            .parse()
            .map_err(|error| Mistake::unit(&value.at, error)),
        other => Err(Mistake::new(
            &value.at,
            format!("`{key}` cannot be {}", other.kind()),
            format!("write it as text, such as {key} = {example}"),
        )),
    }
}

/// Nanoseconds.
pub(crate) fn duration(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
    quantity(value, key, "\"50ms\"").map(|Time(ns)| ns)
}

/// A plain number within bounds; `help` says what it is and between which.
pub(crate) fn number(
    value: &Located<Value>,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
    help: &str,
) -> Result<f64, Mistake> {
    let (Value::Number(text) | Value::Text(text)) = &value.value else {
        let title = format!("`{key}` cannot be {}", value.value.kind());
        return Err(Mistake::new(&value.at, title, help));
    };
    match text.parse::<f64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(_) => {
            let title = format!("`{key}` of {text} is out of range");
            Err(Mistake::new(&value.at, title, help))
        }
        Err(_) => {
            let title = format!("`{text}` is not a plain number");
            Err(Mistake::new(&value.at, title, help))
        }
    }
}

/// One word of a few.
pub(crate) fn word<T: Word>(value: &Located<Value>, key: &str) -> Result<T, Mistake> {
    let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
    one_of(value, key, &words).map(|index| T::WORDS[index].1)
}

/// The index of a word among a few.
pub(crate) fn one_of(value: &Located<Value>, key: &str, words: &[&str]) -> Result<usize, Mistake> {
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let choice = format!("`{key}` is one of {}", quoted.join(", "));
    let Value::Text(text) = &value.value else {
        let title = format!("`{key}` cannot be {}", value.value.kind());
        return Err(Mistake::new(&value.at, title, choice));
    };
    words.iter().position(|word| word == text).ok_or_else(|| {
        let help = match closest(text, words.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"? ({choice})"),
            None => choice,
        };
        Mistake::new(&value.at, format!("`{key}` cannot be `{text}`"), help)
    })
}
