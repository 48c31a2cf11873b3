// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values set so far with their positions: the command line overrides the file. Conflicts
//! between values are checked at the end.

use std::collections::{BTreeMap, BTreeSet};

use emud_monitor::Config;
use emud_monitor::criteria::table::{Conflict, Kind, Value as Setting, Values};
use emud_monitor::criteria::{Section, sections};

use super::argument::{Argument, Only, Said};
use super::print;
use super::value::OFF;
use super::{keys, value};
use crate::text::{At, Entry, Located, Mistake, Reader, Value};

/// Number of the file among the sources; the arguments follow.
pub(crate) const FILE: usize = 0;

/// Section, key and, in a table of devices, name.
type Path = (&'static str, &'static str, Option<String>);

#[derive(Debug, Default)]
pub(crate) struct Draft {
    said: BTreeMap<Path, Located<Setting>>,
    /// Sections with an invalid value, which is not missing.
    unread: BTreeSet<&'static str>,
}

/// Merges values into a draft; later ones override earlier ones, unless both are on the command
/// line.
struct Merge<'a> {
    draft: &'a mut Draft,
    reader: &'a mut Reader,
    arguments: &'a [Argument],
}

impl Draft {
    /// Applies the file.
    pub fn read(&mut self, reader: &mut Reader, entries: &[Entry]) {
        let mut merge = Merge {
            draft: self,
            reader,
            arguments: &[],
        };
        entries.iter().for_each(|entry| merge.top(entry));
    }

    /// Applies the command line; also returns the values of `--only`.
    pub fn arguments(&mut self, reader: &mut Reader, arguments: &[Argument]) -> Vec<Only> {
        let mut merge = Merge {
            draft: self,
            reader,
            arguments,
        };
        let mut only = Vec::new();
        let mut keys = Vec::new();
        for (argument, source) in arguments.iter().zip(FILE + 1..) {
            match argument.read(source) {
                Ok(Said::Keys(entries)) => keys.extend(entries),
                Ok(Said::Only(said)) => only.push(said),
                Err(mistakes) => merge.reader.mistakes.extend(mistakes),
            }
        }
        // Arguments about whole sections come last, so that they conflict with every threshold, in
        // any order of the arguments.
        let (whole, keys): (Vec<_>, Vec<_>) = keys
            .into_iter()
            .partition(|entry| matches!(entry.value.value, Value::Text(_)));
        for entry in keys.iter().chain(&whole) {
            merge.top(entry);
        }
        for only in &only {
            for section in sections() {
                if only.resources.iter().all(|r| r.value != section.name) {
                    merge.off(section, &only.whole);
                }
            }
        }
        only
    }

    /// Returns the configuration, which is meaningless if this adds a mistake.
    pub fn finish(mut self, reader: &mut Reader, only: &[Only]) -> Config {
        let mut config = Config::default();
        for section in sections() {
            if !self.unread.contains(section.name) {
                for conflict in (section.conflicts)(&self.values(section)) {
                    self.conflict(reader, section, conflict);
                }
            }
            (section.set)(&mut config, &self.values(section));
        }
        // After other mistakes a criterion may be missing for a different reason.
        if reader.mistakes.is_empty() {
            let named = only.iter().flat_map(|only| &only.resources);
            let off = named.filter(|resource| {
                let mut sections = sections();
                // Applications have no thresholds: programs report.
                let section = sections.find(|section| section.name == resource.value);
                section.is_some_and(|section| !section.is_on(&config))
            });
            reader.mistakes.extend(off.map(|resource| {
                Mistake::new(
                    &resource.at,
                    format!("`{}` has no threshold", resource.value),
                    "it is off: set one in the file or with its flag",
                )
            }));
        }
        config
    }

    /// Returns the values of a section, with its defaults for missing ones.
    fn values(&self, section: &Section) -> Values {
        let mut values = (section.usual)();
        let said = self.said.iter().filter(|((of, ..), _)| *of == section.name);
        for ((_, key, name), value) in said {
            let value = value.value.clone();
            match name {
                None => drop(values.0.insert(key, value)),
                Some(name) => {
                    let devices = values
                        .0
                        .entry(key)
                        .or_insert(Setting::Named(BTreeMap::new()));
                    if let Setting::Named(devices) = devices {
                        devices.insert(name.clone(), value);
                    }
                }
            }
        }
        values
    }

    /// Reports a mistake at the later one of the keys, unless one of them gives way.
    fn conflict(&mut self, reader: &mut Reader, section: &Section, conflict: Conflict) {
        let path = |(key, name): &(&'static str, _)| (section.name, *key, Option::clone(name));
        let paths: Vec<Path> = conflict.between.iter().map(path).collect();
        let places = paths.iter().map(|path| Some(&self.said.get(path)?.at));
        let written: Vec<Option<&At>> = places.collect();
        if conflict.gives_way
            && let [Some(first), Some(second)] = written[..]
            && first.source == FILE
            && second.source > FILE
        {
            self.said.remove(&paths[0]);
            return;
        }
        let last = written.into_iter().flatten();
        let Some(at) = last.max_by_key(|at| (at.source, at.span.start)) else {
            return;
        };
        let values = self.values(section);
        let mut title = conflict.title;
        for (i, (_, key, name)) in paths.iter().enumerate() {
            let shown = print::shown(section, key, name.as_deref(), &values);
            title = title.replace(&format!("${i}"), &shown);
        }
        reader.mistake(at, title, conflict.help);
    }
}

impl Merge<'_> {
    fn top(&mut self, entry: &Entry) {
        match sections().find(|section| section.name == entry.key.value) {
            Some(section) => self.section(section, entry),
            None => self.mistake(keys::unknown(&entry.key, None)),
        }
    }

    fn section(&mut self, section: &'static Section, entry: &Entry) {
        let name = section.name;
        let value = &entry.value;
        let keys: Vec<_> = section.keys.iter().map(|key| key.name).collect();
        match &value.value {
            Value::Table(entries)
                if entries.is_empty()
                    && section.is_optional()
                    && !section.is_on(&Config::default()) =>
            {
                let title = format!("`{name}` has no keys");
                let keys = keys.join(" and ");
                let help = format!("it has no default thresholds, set one of: {keys}");
                self.mistake(Mistake::new(&value.at, title, help));
            }
            Value::Table(entries) => entries.iter().for_each(|entry| self.key(section, entry)),
            Value::Text(text) if text == OFF && section.is_optional() => {
                self.off(section, &value.at);
            }
            other => {
                let title = match other {
                    Value::Text(text) => format!("`{name}` cannot be `{text}`"),
                    other => format!("`{name}` cannot be {}", other.kind()),
                };
                let off = match section.is_optional() {
                    true => format!("; {name} = \"off\" switches it off"),
                    false => String::new(),
                };
                let keys = keys.join(", ");
                let help = format!("write the header [{name}], and below it its keys: {keys}{off}");
                self.mistake(Mistake::new(&value.at, title, help));
            }
        }
    }

    /// Switches all thresholds of a section off.
    fn off(&mut self, section: &Section, at: &At) {
        for key in section.keys.iter().filter(|key| key.threshold) {
            let of_key = |path: &&Path| (path.0, path.1) == (section.name, key.name);
            let paths: Vec<Path> = match key.kind {
                Kind::Named(..) => self.draft.said.keys().filter(of_key).cloned().collect(),
                _ => vec![(section.name, key.name, None)],
            };
            for path in paths {
                let value = Setting::Off;
                let at = at.clone();
                self.set(path, Located { value, at });
            }
        }
    }

    fn key(&mut self, section: &'static Section, entry: &Entry) {
        let Entry { key, value } = entry;
        let Some(found) = section.keys.iter().find(|known| known.name == key.value) else {
            self.mistake(keys::unknown(key, Some(section.name)));
            return;
        };
        let Kind::Named(device, of) = found.kind else {
            let path = (section.name, found.name, None);
            self.put(path, value, |value| value::single(found, value));
            return;
        };
        let Value::Table(entries) = &value.value else {
            let key = found.name;
            let title = format!("`{key}` cannot be {}", value.value.kind());
            let help = format!("add the name of the device: {key}.NAME = ...");
            self.mistake(Mistake::new(&value.at, title, help));
            return;
        };
        for Entry { key, value } in entries {
            match value::device_name(device, key) {
                Ok(name) => {
                    let path = (section.name, found.name, Some(name.clone()));
                    self.put(path, value, |value| value::device(of, &name, value));
                }
                Err(mistake) => self.mistake(mistake),
            }
        }
    }

    fn put(
        &mut self,
        path: Path,
        value: &Located<Value>,
        read: impl Fn(&Located<Value>) -> Result<Setting, Mistake>,
    ) {
        match self.reader.read(value, read) {
            Some(new) => self.set(path, new),
            None => drop(self.draft.unread.insert(path.0)),
        }
    }

    fn set(&mut self, path: Path, new: Located<Setting>) {
        if let Some(old) = self.draft.said.get(&path)
            && old.value != new.value
            && new.at.source > FILE
            && let Some(said) = old.at.source.checked_sub(FILE + 1)
        {
            let said = self.arguments.get(said).map_or("", Argument::text);
            let title = format!("this contradicts `{said}`");
            self.mistake(Mistake::new(&new.at, title, "remove one of the two"));
            return;
        }
        self.draft.said.insert(path, new);
    }

    fn mistake(&mut self, mistake: Mistake) {
        self.reader.mistakes.push(mistake);
    }
}
