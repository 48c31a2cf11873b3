// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes lines of TOML, each after its comments.

use std::fmt::Display;

use crate::profile::{MAX_BYTES, Trace, TraceSource};
use crate::text::{At, Mistake, Time};

/// Width of a comment's text.
const WIDTH: usize = 94;
/// Rows with more text than this go into a separate file.
const INLINE_BYTES: usize = MAX_BYTES / 2;

#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    pub warnings: Vec<String>,
}

impl Writer {
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    pub fn header(&mut self, word: &str) {
        self.blank();
        self.raw(&format!("[{word}]"));
    }

    /// Adds a comment, wrapped.
    pub fn note(&mut self, text: &str) {
        let mut line = String::from("#");
        for word in text.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.raw(&line);
                line = String::from("#");
            }
            line.push(' ');
            line.push_str(word);
        }
        self.raw(&line);
    }

    /// Adds a prominent comment: what the profile lacks.
    pub fn warning(&mut self, text: String) {
        self.note(&format!("NOT IMPORTED: {text}"));
        self.warnings.push(text);
    }

    pub fn key(&mut self, key: &str, value: impl Display) {
        self.raw(&format!("{key} = {value}"));
    }

    /// Adds the key `trace` with the rows, or with the name of the file `beside` for rows that do not fit;
    /// returns the content of that file.
    pub fn trace(
        &mut self,
        trace: &Trace,
        beside: Option<&str>,
        start: &At,
    ) -> Result<Option<String>, Mistake> {
        let inline = trace.text();
        let TraceSource::Rows { period_ns, .. } = &trace.source else {
            self.key("trace", inline);
            return Ok(None);
        };
        match (inline.len() > INLINE_BYTES, beside) {
            (false, _) => {
                self.key("trace", inline);
                Ok(None)
            }
            (true, Some(name)) => {
                let (name, period) = (string(name), Time(*period_ns));
                let value = format!("{{ file = {name}, period = \"{period}\", loop = true }}");
                self.key("trace", value);
                Ok(Some(trace.csv()))
            }
            (true, None) => {
                let title = format!("{} rows do not fit into the profile", trace.len());
                let help = "write a file with -o: the rows go into a CSV file beside it";
                Err(Mistake::new(start, title, help))
            }
        }
    }

    /// Adds the lines and warnings of another writer.
    pub fn append(&mut self, other: Self) {
        self.text += &other.text;
        self.warnings.extend(other.warnings);
    }

    fn raw(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of lines so far.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    pub fn finish(self) -> crate::convert::import::Imported {
        crate::convert::import::Imported {
            toml: self.text,
            warnings: self.warnings,
            beside: None,
        }
    }
}

pub(crate) fn quoted(value: impl Display) -> String {
    format!("\"{value}\"")
}

/// Formats foreign text as a TOML string.
pub(crate) fn string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Formats an inline table of the keys with values.
pub(crate) fn table(keys: &[(&str, Option<String>)]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .filter_map(|(key, value)| Some(format!("{key} = {}", value.as_ref()?)))
        .collect();
    format!("{{ {} }}", keys.join(", "))
}

/// Formats delays for the profile, in ms.
pub(crate) fn inline_samples(delays_ns: &[f64], half: bool) -> String {
    let values: Vec<_> = delays_ns
        .iter()
        // Whole ns as ms with the fewest digits.
        .map(|ns| (ns.round() / 1e6).to_string())
        .collect();
    let half = half.then(|| "true".to_owned());
    table(&[
        ("values", Some(quoted(values.join(" ")))),
        ("unit", Some(quoted("ms"))),
        ("half", half),
    ])
}
