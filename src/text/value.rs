// SPDX-License-Identifier: MIT OR Apache-2.0
//! TOML reduced to the values of emud's files, with the position of each.

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::{At, Located, Mistake};

/// A value before its key determines its meaning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// Decimal text as written.
    Number(String),
    Table(Vec<Entry>),
    Flag(bool),
    List(Vec<Located<Value>>),
    /// A type that no key accepts, by its kind.
    Other(&'static str),
}

impl Value {
    /// Returns the kind, with its article.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Number(_) => "a number",
            Self::Table(_) => "a table",
            Self::Flag(_) => "true or false",
            Self::List(_) => "an array",
            Self::Other(kind) => kind,
        }
    }
}

impl Mistake {
    /// Returns that a value of this kind cannot be the key's.
    pub(crate) fn wrong_kind(value: &Located<Value>, key: &str, help: impl Into<String>) -> Self {
        let title = format!("`{key}` cannot be {}", value.value.kind());
        Self::new(&value.at, title, help)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub key: Located<String>,
    pub value: Located<Value>,
}

/// Reads a TOML document.
pub(crate) fn document(source: usize, text: &str) -> Result<Vec<Entry>, Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Origin { source, offset: 0 }.entries(table.get_ref()));
    }
    if let Some(mistake) = other_format(source, text) {
        return Err(vec![mistake]);
    }
    Err(errors
        .iter()
        .map(|error| syntax(source, text, 0..text.len(), error))
        .collect())
}

/// Detects YAML or JSON at the first line that shows it.
fn other_format(source: usize, text: &str) -> Option<Mistake> {
    let line = text.lines().find(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && line != "---"
    })?;
    let is_key = |key: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == ' ';
        !key.trim().is_empty() && key.chars().all(plain)
    };
    let format = match line.split_once(':') {
        _ if line.trim_start().starts_with('{') => "JSON",
        Some((key, rest)) if is_key(key) && (rest.is_empty() || rest.starts_with(' ')) => "YAML",
        _ => return None,
    };
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    let at = At {
        source,
        span: start..start + line.len(),
    };
    let help = "write TOML: a [header] on a separate line, below it lines such as delay = \"50ms\"";
    Some(Mistake::new(&at, format!("this is {format}"), help))
}

/// Reads one TOML value: the part of `text` from `offset` on.
pub(crate) fn toml_value(
    source: usize,
    text: &str,
    offset: usize,
) -> Result<Located<Value>, Mistake> {
    match DeValue::parse(&text[offset..]) {
        Ok(value) => Ok(Origin { source, offset }.value(&value)),
        Err(error) => Err(syntax(source, text, offset..text.len(), &error)),
    }
}

fn syntax(source: usize, text: &str, within: std::ops::Range<usize>, error: &Error) -> Mistake {
    let span = error.span().unwrap_or(0..within.len());
    let span = on_characters(text, within.start + span.start, within.start + span.end);
    let help = "TOML is `key = \"value\"` lines under [headers]";
    Mistake::new(
        &At { source, span },
        format!("not valid TOML: {}", error.message()),
        help,
    )
}

/// Returns the range extended to whole characters, so that it can be sliced and displayed.
fn on_characters(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let mut start = start.min(text.len());
    let mut end = end.clamp(start, text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// The base of positions.
struct Origin {
    source: usize,
    offset: usize,
}

impl Origin {
    fn at<T>(&self, spanned: &Spanned<T>) -> At {
        let span = spanned.span();
        At {
            source: self.source,
            span: span.start + self.offset..span.end + self.offset,
        }
    }

    fn entries(&self, table: &DeTable) -> Vec<Entry> {
        let entry = |(key, value)| Entry {
            key: self.key(key),
            value: self.value(value),
        };
        table.iter().map(entry).collect()
    }

    fn key(&self, key: &Spanned<std::borrow::Cow<str>>) -> Located<String> {
        Located {
            value: key.get_ref().to_string(),
            at: self.at(key),
        }
    }

    fn value(&self, value: &Spanned<DeValue>) -> Located<Value> {
        let kind = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => {
                match i128::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(integer) => Value::Number(integer.to_string()),
                    // More than 38 digits: too large for every key, which then reports it.
                    Err(_) => Value::Number(integer.as_str().to_owned()),
                }
            }
            DeValue::Float(float) => Value::Number(float.as_str().to_owned()),
            DeValue::Table(table) => Value::Table(self.entries(table)),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(_) => Value::Other("a date or time"),
            DeValue::Array(array) => {
                Value::List(array.iter().map(|item| self.value(item)).collect())
            }
        };
        Located {
            value: kind,
            at: self.at(value),
        }
    }
}
