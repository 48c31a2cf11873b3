// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile from text, bytes or a file.

use std::path::Path;

use super::bottleneck::BottleneckDraft;
use super::draft::LinkDraft;
use super::kinds::Count;
use super::links::{self, NamedDraft};
use super::located::value;
use super::matrix::{self, MatrixDraft};
use super::model::DEFAULT_INSTANCES;
use super::phase_read::PhasesDraft;
use super::rules::RuleDraft;
use super::{
    Link, Matrix, NamedLink, Offload, Phases, Profile, ProfileError, Rule, bottleneck_read, keys,
    rules_read,
};
use crate::text::{
    At, Entry, Kind, Located, Mistake, Mistakes, Reader, Source, TextError, Value, document,
    read_file, utf8, word,
};

/// Bounds of the texts, so that a profile fits into the kernel's map beside what to restore.
const NAME_BYTES: usize = 256;
const TEXT_BYTES: usize = 4096;

impl Profile {
    /// Reads a profile; `origin` is what messages call it, its file name for one.
    ///
    /// ```
    /// use emud::profile::{Profile, ProfileError};
    ///
    /// let text = "link.delay = '20ms'\nup.rate = '2Mbit'";
    /// let profile = Profile::parse(text, "dsl.toml")?;
    /// assert_eq!((profile.up.rate, profile.down.rate), (Some(2_000_000), None));
    ///
    /// // All mistakes at once, each with its location.
    /// let mistakes = Profile::parse("link.delay = '20 parsecs'\nup.rat = '2Mbit'", "dsl.toml");
    /// let text = mistakes.unwrap_err().to_string();
    /// assert!(text.contains("dsl.toml:1:") && text.contains("dsl.toml:2:"), "{text}");
    /// # Ok::<(), ProfileError>(())
    /// ```
    ///
    /// # Errors
    /// All mistakes in `text`, or that it is longer than [`MAX_BYTES`](super::MAX_BYTES).
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        Self::from_bytes(text.as_bytes(), origin)
    }

    /// Reads a profile that may not even be text.
    ///
    /// # Errors
    /// As [`Profile::parse`], and where the bytes are not UTF-8.
    pub fn from_bytes(bytes: &[u8], origin: &str) -> Result<Self, ProfileError> {
        Self::read(bytes, origin, Path::new(""))
    }

    /// As [`Profile::from_bytes`], with the folder where relative paths start.
    fn read(bytes: &[u8], origin: &str, folder: &Path) -> Result<Self, ProfileError> {
        let source = utf8(bytes, origin)?;
        let mut reader = Reader {
            folder: folder.to_owned(),
            ..Reader::default()
        };
        let mut draft = Draft::default();
        match document(0, &source.text) {
            Ok(entries) => draft.read(&mut reader, &entries),
            Err(mistakes) => reader.mistakes = mistakes,
        }
        draft.finish(reader, vec![source])
    }

    /// As [`Profile::parse`], with the folder where relative paths start.
    pub fn from_text(text: &str, origin: &str, folder: &Path) -> Result<Self, ProfileError> {
        Self::read(text.as_bytes(), origin, folder)
    }

    /// Reads a profile within another format's text; its mistakes are added to the reader's.
    pub(crate) fn within(reader: &mut Reader, entries: &[Entry]) -> Option<Self> {
        let mut inner = Reader {
            folder: reader.folder.clone(),
            ..Reader::default()
        };
        let mut draft = Draft::default();
        draft.read(&mut inner, entries);
        let profile = draft.judge(&mut inner);
        let good = inner.mistakes.is_empty();
        reader.mistakes.append(&mut inner.mistakes);
        good.then_some(profile)
    }

    /// Reads a profile file; one without a name takes the file's.
    ///
    /// # Errors
    /// As [`Profile::from_bytes`], and where the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, ProfileError> {
        Ok(Self::load_text(path)?.0)
    }

    /// As [`Profile::load`]; also returns the text, since a pipe can be read once only.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn load_text(path: &Path) -> Result<(Self, String), ProfileError> {
        let bytes = read_file(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut profile = Self::read(&bytes, &path.display().to_string(), folder)?;
        if profile.name.is_empty() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            profile.name = stem.chars().filter(|c| !c.is_control()).take(64).collect();
        }
        Ok((profile, String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// A whole profile so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    name: Option<Located<String>>,
    description: Option<Located<String>>,
    source: Option<Located<String>>,
    seed: Option<Located<u64>>,
    offload: Option<Located<Offload>>,
    pub up: LinkDraft,
    pub down: LinkDraft,
    pub links: Vec<NamedDraft>,
    pub bottlenecks: Vec<BottleneckDraft>,
    pub rules: Vec<RuleDraft>,
    instances: Option<Located<u32>>,
    pub matrix: Option<MatrixDraft>,
    pub phases: PhasesDraft,
}

impl Draft {
    pub fn read(&mut self, reader: &mut Reader, entries: &[Entry]) {
        let mut both = LinkDraft::default();
        let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
        for entry in entries {
            self.top(reader, &mut both, entry);
        }
        let neighbours = both.neighbours.clone();
        let tables = ["link", "up", "down", "phase", "state", "rule", "matrix"];
        let nothing =
            reader.mistakes.is_empty() && tables.iter().all(|table| find(table).is_none());
        if let (true, Some(links)) = (nothing, find("links")) {
            let name = match &links.value.value {
                Value::Table(links) => links.first().map(|link| link.key.value.as_str()),
                _ => None,
            };
            let name = name.unwrap_or("lte");
            let help = format!(
                "a [links.NAME] is used where a [[rule]] or a [[phase]] has link = \"{name}\"; for \
                 all packets write [link] in place of [links.{name}]"
            );
            let title = "the profile uses none of its links";
            (reader.mistakes).push(Mistake::new(&links.key.at, title, help));
        } else if nothing {
            // A file cut short, or the wrong one: never a link without any property.
            let help = "add a table [link] (both directions), [up] or [down]; an empty [link] is a \
                        link that does nothing";
            reader.mistake(&At::START, "the profile describes no link", help);
        }
        if let Some(link) = find("link").and_then(|entry| section(reader, entry)) {
            let (offload, link): (Vec<_>, Vec<_>) = link
                .iter()
                .cloned()
                .partition(|entry| entry.key.value == "offload");
            for entry in &offload {
                self.offload(reader, entry);
            }
            reader.link(&mut both, &link);
        }
        self.down = both.clone();
        self.up = both;
        if let Some(up) = find("up").and_then(|entry| section(reader, entry)) {
            reader.link(&mut self.up, up);
        }
        if let Some(down) = find("down").and_then(|entry| section(reader, entry)) {
            reader.link(&mut self.down, down);
        }
        if let Some(entry) = find("links") {
            self.links = links::read(reader, entry, &neighbours);
        }
        if let Some(entry) = find("bottleneck") {
            self.bottlenecks = bottleneck_read::read(reader, entry);
        }
        if let Some(entry) = find("rule") {
            self.rules = rules_read::read(reader, &entry.value);
        }
        if let Some(entry) = find("matrix")
            && let Some(keys) = section(reader, entry)
        {
            self.matrix = Some(matrix::read(reader, &entry.key.at, keys));
        }
        let own = [&self.up, &self.down];
        self.phases.read(reader, entries, own, &self.links);
    }

    /// Reads the keys at the top, without the tables.
    fn top(&mut self, reader: &mut Reader, both: &mut LinkDraft, entry: &Entry) {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "name" => reader.put(&mut self.name, value, name),
            "description" => reader.put(&mut self.description, value, |v| prose(v, "description")),
            "source" => reader.put(&mut self.source, value, |v| prose(v, "source")),
            "seed" => reader.put(&mut self.seed, value, seed),
            "offload" => self.offload(reader, entry),
            "instances" => reader.put(&mut self.instances, value, |v| {
                Count::<1, { crate::abi::EMUD_INSTANCES_MAX }>::read(v, "instances")
            }),
            "neighbours" => reader.put(&mut both.neighbours, value, |v| word(v, "neighbours")),
            key if keys::TOP.has(key) => {}
            _ => reader.mistakes.push(keys::unknown(&entry.key, &keys::TOP)),
        }
    }

    fn offload(&mut self, reader: &mut Reader, entry: &Entry) {
        if self.offload.is_some() {
            let help = "keep the one at the top of the file: it is for the whole device";
            reader.mistake(&entry.key.at, "`offload` is given twice", help);
        }
        reader.put(&mut self.offload, &entry.value, |v| word(v, "offload"));
    }

    pub fn finish(self, mut reader: Reader, sources: Vec<Source>) -> Result<Profile, ProfileError> {
        let profile = self.judge(&mut reader);
        if !reader.mistakes.is_empty() {
            return Err(TextError::Mistakes(Mistakes::new(sources, reader.mistakes)).into());
        }
        Ok(profile)
    }

    /// Returns the profile; meaningless if that adds a mistake.
    fn judge(mut self, reader: &mut Reader) -> Profile {
        self.share(reader);
        let (up, down) = (reader.finish(&self.up), reader.finish(&self.down));
        let links = self.links.iter().map(|link| link.finish(reader));
        let links: Vec<_> = links.collect();
        let phases = self.phases.finish(reader, [&up, &down]);
        let bottlenecks = reader.finish_bottlenecks(&self.bottlenecks);
        self.classes(reader, &bottlenecks);
        let rules = reader.finish_rules(&self.rules, &links, &bottlenecks);
        let matrix = self.matrix.as_ref();
        let matrix = matrix.map(|draft| reader.finish_matrix(draft, &links));
        let profile = Profile {
            phases,
            bottlenecks,
            ..self.profile(up, down, links, rules, matrix)
        };
        self.share_at_all_times(reader, &profile);
        if let Some(draft) = &self.matrix {
            reader.pairs_have_room(draft, &profile);
            let own = [&self.up, &self.down];
            reader.pairs_stay(draft, own, &self.links, self.phases.at());
        }
        reader.instances_have_room(&self.rules, &profile);
        self.background_stays(reader, &profile);
        profile
    }

    fn profile(
        &self,
        up: Link,
        down: Link,
        links: Vec<NamedLink>,
        rules: Vec<Rule>,
        matrix: Option<Matrix>,
    ) -> Profile {
        let text = |text: &Option<Located<String>>| {
            let text = text.as_ref().map(|text| text.value.clone());
            text.unwrap_or_default()
        };
        Profile {
            name: text(&self.name),
            description: text(&self.description),
            source: text(&self.source),
            seed: value(&self.seed),
            offload: value(&self.offload).unwrap_or_default(),
            up,
            down,
            links,
            bottlenecks: Vec::new(),
            rules,
            instances: value(&self.instances).unwrap_or(DEFAULT_INSTANCES),
            matrix,
            phases: Phases::default(),
        }
    }
}

/// Returns the entries of a link's table.
pub(super) fn section<'a>(reader: &mut Reader, entry: &'a Entry) -> Option<&'a [Entry]> {
    if let Value::Table(entries) = &entry.value.value {
        return Some(entries);
    }
    let key = &entry.key.value;
    let help = format!("write the header [{key}] on a separate line, its keys below");
    reader.wrong_kind(&entry.value, key, help);
    None
}

pub(super) fn name(value: &Located<Value>) -> Result<String, Mistake> {
    let text = text(value, "name", NAME_BYTES)?;
    if text.is_empty() || text.contains(char::is_control) {
        let help = "write a short name on one line, such as name = \"hsdpa\"";
        return Err(Mistake::new(&value.at, "this is not a name", help));
    }
    Ok(text)
}

/// Reads text that may have several lines, but no control characters for a terminal.
fn prose(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    let text = text(value, key, TEXT_BYTES)?;
    if let Some(bad) = text
        .chars()
        .find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
    {
        let title = format!("`{key}` has a control character, U+{:04X}", u32::from(bad));
        return Err(Mistake::new(
            &value.at,
            title,
            "only line ends and tabs are allowed",
        ));
    }
    Ok(text)
}

fn text(value: &Located<Value>, key: &str, limit: usize) -> Result<String, Mistake> {
    let Value::Text(text) = &value.value else {
        return Err(Mistake::wrong_kind(
            value,
            key,
            format!("write text: {key} = \"...\""),
        ));
    };
    if text.len() > limit {
        let title = format!("`{key}` has {} bytes", text.len());
        return Err(Mistake::new(
            &value.at,
            title,
            format!("the limit is {limit} bytes"),
        ));
    }
    Ok(text.clone())
}

fn seed(value: &Located<Value>) -> Result<u64, Mistake> {
    let seed = match &value.value {
        Value::Number(text) => text.parse().ok(),
        _ => None,
    };
    seed.ok_or_else(|| {
        let help = format!(
            "write a whole number from 0 to {}, such as seed = 42",
            u64::MAX
        );
        Mistake::new(&value.at, "this is not a seed", help)
    })
}
