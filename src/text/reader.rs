// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads values of kinds that several formats share.

use std::path::PathBuf;
use std::str::FromStr;

use super::{At, Located, Mistake, Time, UnitError, Value, Word, closest};

/// Collects mistakes instead of stopping at the first.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub mistakes: Vec<Mistake>,
    /// The base of relative paths in the text; empty: the working directory.
    pub folder: PathBuf,
}

impl Reader {
    /// Notes a mistake.
    pub fn mistake(&mut self, at: &At, title: impl Into<String>, help: impl Into<String>) {
        self.mistakes.push(Mistake::new(at, title, help));
    }

    /// Notes that a value of this kind cannot be the key's.
    pub fn wrong_kind(&mut self, value: &Located<Value>, key: &str, help: impl Into<String>) {
        self.mistakes.push(Mistake::wrong_kind(value, key, help));
    }

    /// Applies `read` to `value`; the result keeps the position.
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

    /// Stores the result of `read` for `value` in `slot`.
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

/// Reads a quantity that is written as text; its parser reports a bare number and suggests the
/// unit.
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

/// Reads nanoseconds.
pub(crate) fn duration(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
    quantity(value, key, "\"50ms\"").map(|Time(ns)| ns)
}

/// Reads a plain number within bounds; `help` describes the number and the bounds.
pub(crate) fn number(
    value: &Located<Value>,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
    help: &str,
) -> Result<f64, Mistake> {
    let (Value::Number(text) | Value::Text(text)) = &value.value else {
        return Err(Mistake::wrong_kind(value, key, help));
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

/// Reads one of several names.
pub(crate) fn word<T: Word>(value: &Located<Value>, key: &str) -> Result<T, Mistake> {
    let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
    one_of(value, key, &words).map(|index| T::WORDS[index].1)
}

/// Returns the index of a name in a list.
pub(crate) fn one_of(value: &Located<Value>, key: &str, words: &[&str]) -> Result<usize, Mistake> {
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let choice = format!("`{key}` is one of {}", quoted.join(", "));
    let Value::Text(text) = &value.value else {
        return Err(Mistake::wrong_kind(value, key, choice));
    };
    words.iter().position(|word| word == text).ok_or_else(|| {
        let help = match closest(text, words.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"? ({choice})"),
            None => choice,
        };
        Mistake::new(&value.at, format!("`{key}` cannot be `{text}`"), help)
    })
}
