// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of reading a scenario, and what every table needs of it.

use super::error::ScenarioError;
use super::model::Asked;
use super::{keys, value};
use crate::profile::{Profile, ProfileError, shipped};
use crate::text::{At, Draft, Entry, Located, Reader, Section, Source, TextError, Value, is_file};

/// The state of reading a text.
pub(crate) struct Reading<'a> {
    pub reader: Reader,
    pub source: &'a Source,
    /// The first profile with mistakes in its file.
    pub bad_profile: Option<ScenarioError>,
}

impl Reading<'_> {
    pub fn mistake(&mut self, at: &At, title: impl Into<String>, help: impl Into<String>) {
        self.reader.mistake(at, title, help);
    }

    pub fn key(&mut self, draft: &mut impl Draft, entry: &Entry, section: &Section) {
        let before = self.reader.mistakes.len();
        match draft.key(&mut self.reader, entry) {
            true => *draft.about().1 |= self.reader.mistakes.len() > before,
            false => {
                let unknown = keys::unknown(&entry.key, section);
                self.reader.mistakes.push(unknown);
            }
        }
    }

    /// Reads a table; `example` is its header.
    pub fn table<D: Draft>(&mut self, entry: &Entry, section: &Section, example: &str) -> D {
        let mut draft = D::default();
        let before = self.reader.mistakes.len();
        let help = format!("write its keys below a header such as {example}");
        let entries = value::table(&mut self.reader, &entry.key.value, &entry.value, &help);
        *draft.about().1 = self.reader.mistakes.len() > before;
        for entry in entries {
            self.key(&mut draft, entry, section);
        }
        draft
    }

    /// Reads a profile by its name, its path, or inline.
    pub fn profile(&mut self, value: Option<&Located<Value>>) -> Option<Asked> {
        let value = value?;
        let asked = self.any_profile(value)?;
        // The links of a topology share a profile, but not their losses.
        if asked.profile.seed.is_some() {
            let help = "omit it: `emud run --seed N` sets the seed of a run, of which each link has its own";
            self.mistake(&value.at, "a profile of a scenario has no `seed`", help);
        }
        Some(asked)
    }

    fn any_profile(&mut self, value: &Located<Value>) -> Option<Asked> {
        let asked = |profile, asked: &str| Asked {
            profile,
            asked: asked.to_owned(),
            at: value.at.clone(),
        };
        let name = match &value.value {
            Value::Table(entries) => {
                let profile = Profile::within(&mut self.reader, entries)?;
                let text = profile.one_line();
                return Some(asked(profile, &text));
            }
            Value::Text(name) => name,
            _ => {
                let help = "write the name of a shipped profile, a file, or tables: \
                            profile = \"lte\", profile.link.rate = \"10Mbit\"";
                self.reader.wrong_kind(value, "profile", help);
                return None;
            }
        };
        let found = match is_file(name) {
            true => Profile::load(&self.reader.folder.join(name)),
            false => shipped::find(name),
        };
        found
            .map(|profile| asked(profile, name))
            .map_err(|error| self.no_profile(value, name, error))
            .ok()
    }

    fn no_profile(&mut self, value: &Located<Value>, name: &str, error: ProfileError) {
        match error {
            ProfileError::UnknownName { name, help } => {
                let title = format!("no profile named `{name}` is shipped with emud");
                let help = help.trim_start_matches("help: ");
                self.mistake(&value.at, title, help);
            }
            ProfileError::Text(TextError::Unreadable { path, error }) => {
                let title = format!("{}: {error}", path.display());
                let help = "a relative path starts at the scenario's folder";
                self.mistake(&value.at, title, help);
            }
            error => {
                let before = self
                    .source
                    .text
                    .get(..value.at.span.start)
                    .unwrap_or_default();
                self.bad_profile.get_or_insert(ScenarioError::Profile {
                    origin: self.source.origin.clone(),
                    line: before.matches('\n').count() + 1,
                    asked: name.to_owned(),
                    error,
                });
            }
        }
    }
}
