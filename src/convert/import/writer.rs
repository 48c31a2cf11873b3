// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes lines of TOML, each after its comments.

use std::fmt::Display;

use super::Header;
use crate::profile::{MAX_BYTES, PACKET_BYTES, Profile, ProfileError, Trace, TraceSource};
use crate::text::{At, Mistake, TextError, Time};

/// Width of a comment's text.
const WIDTH: usize = 94;
/// Rows with more text than this go into a separate file.
const INLINE_BYTES: usize = MAX_BYTES / 2;

/// Of rules that are prio's choice by ToS.
const BY_TOS: &str =
    "prio chooses the band by the priority that a packet gets from its ToS; IPv6 sets none.";

#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    pub warnings: Vec<String>,
    /// Lines from which on the profile is made of a part of the text that is imported.
    origins: Vec<(usize, At)>,
}

impl Writer {
    /// Notes the position of what the next lines are made of.
    pub fn from(&mut self, at: &At) {
        self.origins.push((self.text.lines().count(), at.clone()));
    }

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

    /// Returns a queue's limit of `bytes`, with a warning at least that of one packet.
    pub fn room(&mut self, bytes: u32) -> u32 {
        if bytes < PACKET_BYTES {
            let text = "this queue has room for one packet";
            self.warning(format!("a limit of {bytes} bytes: {text}"));
        }
        bytes.max(PACKET_BYTES)
    }

    pub fn key(&mut self, key: &str, value: impl Display) {
        self.raw(&format!("{key} = {value}"));
    }

    /// Adds a rule; `is_tos`: tc takes the priority of its packets from their type of service.
    pub fn rule(
        &mut self,
        at: &At,
        is_tos: bool,
        matches: &[(&str, String)],
        link: &str,
        direction: Header,
    ) {
        self.from(at);
        self.header("[rule]");
        if is_tos {
            self.note(BY_TOS);
        }
        let keys: Vec<_> = (matches.iter())
            .map(|(key, value)| (*key, Some(value.clone())))
            .collect();
        if !keys.is_empty() {
            self.key("match", table(&keys));
        }
        self.key("link", quoted(link));
        if direction != Header::Link {
            self.key("direction", quoted(direction.word()));
        }
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

    /// Returns what emud's reader of profiles rejects, at the position of the text from which the line
    /// was made: its user has never seen the profile.
    pub fn check(&self) -> Result<(), Mistake> {
        let cannot = |title: &str| format!("a profile cannot represent this: {title}");
        let found = match Profile::parse(&self.text, "the profile") {
            Ok(_) => return Ok(()),
            Err(ProfileError::Text(TextError::Mistakes(found))) => found,
            Err(other) => return Err(Mistake::new(&At::START, cannot(&other.to_string()), "")),
        };
        let Some(first) = found.iter().next() else {
            return Ok(());
        };
        let number = found.line(first);
        let before = self.origins.iter().rev().find(|(lines, _)| *lines < number);
        let at = before.map_or(At::START, |(_, at)| at.clone());
        let line = self.text.lines().nth(number - 1).unwrap_or_default();
        let line: String = line.chars().take(WIDTH).collect();
        let help = format!("{} (line {number} of the profile is `{line}`)", first.help);
        Err(Mistake::new(&at, cannot(&first.title), help))
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
