// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a scenario from text or a file.

use std::path::Path;
use std::time::Duration;

use ipnet::Ipv4Net;

use super::error::ScenarioError;
use super::limits::{MAX_LINKS, MAX_NODES};
use super::model::{Asked, LinkDraft, NodeDraft, Scenario, Topology};
use super::{keys, topology_read, value};
use crate::profile::{Profile, ProfileError, shipped};
use crate::text::{
    At, Entry, Located, Mistake, Mistakes, Reader, Source, TextError, Value, document, read_file,
    utf8,
};

/// Default of the network for addresses.
const NETWORK: &str = "10.77.0.0/16";
const READY_WITHIN: Duration = Duration::from_secs(10);
const CLEAN_UP_WITHIN: Duration = Duration::from_secs(30);
/// The file is the first and only source.
const FILE: usize = 0;

impl Scenario {
    /// Reads a scenario; `origin` is its name in messages, relative paths start at `folder`.
    ///
    /// # Errors
    /// All mistakes in `text`, or the first invalid profile that it refers to.
    pub fn parse(text: &str, origin: &str, folder: &Path) -> Result<Self, ScenarioError> {
        Self::from_bytes(text.as_bytes(), origin, folder)
    }

    /// Reads a scenario's file; the default name is that of the file.
    ///
    /// # Errors
    /// As [`Scenario::parse`], and if the file cannot be read or is not text.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let origin = path.display().to_string();
        let mut scenario = Self::from_bytes(&read_file(path)?, &origin, folder)?;
        if scenario.name.is_empty() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            scenario.name = stem.chars().filter(|c| !c.is_control()).take(64).collect();
        }
        Ok(scenario)
    }

    fn from_bytes(bytes: &[u8], origin: &str, folder: &Path) -> Result<Self, ScenarioError> {
        let source = utf8(bytes, origin)?;
        let mut reading = Reading {
            reader: Reader {
                folder: folder.to_owned(),
                ..Reader::default()
            },
            source: &source,
            bad_profile: None,
        };
        let scenario = match document(FILE, &source.text) {
            Ok(mut entries) => {
                entries.sort_by_key(|entry| entry.key.at.span.start);
                Some(reading.scenario(&entries)?)
            }
            Err(mistakes) => {
                reading.reader.mistakes = mistakes;
                None
            }
        };
        let (mistakes, bad_profile) = (reading.reader.mistakes, reading.bad_profile);
        match (scenario, bad_profile) {
            (Some(scenario), None) if mistakes.is_empty() => Ok(scenario),
            (_, Some(error)) if mistakes.is_empty() => Err(error),
            _ => Err(TextError::Mistakes(Mistakes::new(vec![source], mistakes)).into()),
        }
    }
}

/// The state of reading a text.
pub(crate) struct Reading<'a> {
    pub reader: Reader,
    source: &'a Source,
    /// The first profile with mistakes in its file.
    bad_profile: Option<ScenarioError>,
}

impl Reading<'_> {
    fn scenario(&mut self, entries: &[Entry]) -> Result<Scenario, ScenarioError> {
        let mut name = None;
        let mut description = None;
        let mut network = None;
        let mut measure = None;
        let mut ready_within = None;
        let mut clean_up_within = None;
        let mut topology = None;
        let (mut nodes, mut links) = (Vec::new(), Vec::new());
        for entry in entries {
            let value = &entry.value;
            let reader = &mut self.reader;
            match entry.key.value.as_str() {
                "name" => reader.put(&mut name, value, |v| one_line(v, "name")),
                "description" => {
                    reader.put(&mut description, value, |v| value::string(v, "description"));
                }
                "network" => reader.put(&mut network, value, value::network),
                "measure" => {
                    reader.put(&mut measure, value, |v| value::some_time(v, "measure"));
                }
                "ready_within" => reader.put(&mut ready_within, value, |v| {
                    value::some_time(v, "ready_within")
                }),
                "clean_up_within" => reader.put(&mut clean_up_within, value, |v| {
                    value::some_time(v, "clean_up_within")
                }),
                "topology" => topology = topology_read::read(self, entry),
                "node" => nodes = self.nodes(entry),
                "link" => links = self.links(entry),
                _ => reader.mistakes.push(keys::unknown(&entry.key, &keys::TOP)),
            }
        }
        self.something(topology.as_ref(), &nodes, entries);
        Ok(Scenario {
            name: name.map(|name| name.value).unwrap_or_default(),
            description: description.map(|text| text.value).unwrap_or_default(),
            text: self.source.text.clone(),
            origin: self.source.origin.clone(),
            network: network.unwrap_or_else(default_network),
            measure: measure.map(|time| time.value),
            ready_within: ready_within.map_or(READY_WITHIN, |time| time.value),
            clean_up_within: clean_up_within.map_or(CLEAN_UP_WITHIN, |time| time.value),
            topology,
            nodes,
            links,
        })
    }

    /// Rejects an empty scenario, such as a truncated or wrong file.
    fn something(&mut self, topology: Option<&Topology>, nodes: &[NodeDraft], entries: &[Entry]) {
        let given = entries.iter().any(|e| e.key.value == "topology");
        if nodes.is_empty() && topology.is_none() && !given && self.reader.mistakes.is_empty() {
            let help =
                "add nodes, [node.NAME], and links between them, [link.NAME], or a [topology]";
            let title = "the scenario has no node";
            self.reader
                .mistakes
                .push(Mistake::new(&start(), title, help));
        }
    }

    fn nodes(&mut self, entry: &Entry) -> Vec<NodeDraft> {
        let help = "write a header for each node, such as [node.server], and its keys below it";
        let nodes = value::tables(&mut self.reader, entry, MAX_NODES as usize, help);
        nodes.into_iter().map(|node| self.node(node)).collect()
    }

    fn node(&mut self, entry: &Entry) -> NodeDraft {
        let reader = &mut self.reader;
        reader.mistakes.extend(value::node_name(&entry.key).err());
        let mut node = NodeDraft::new(entry.key.clone());
        let help = "write its keys below a header such as [node.server]";
        for Entry { key, value } in value::table(reader, entry, help) {
            let name = key.value.as_str();
            let shell = |v: &Located<Value>| value::plain_strings(v, name);
            match name {
                "command" => reader.put(&mut node.command, value, value::program),
                "service" => reader.put(&mut node.service, value, |v| value::flag(v, name)),
                "ready" => reader.put(&mut node.ready, value, |v| value::string(v, name)),
                "start" => reader.put(&mut node.start, value, |v| value::time(v, name)),
                "waits_for" => {
                    reader.put(&mut node.waits_for, value, |v| value::strings(v, name));
                }
                "prepare" => reader.put(&mut node.prepare, value, shell),
                "clean_up" => reader.put(&mut node.clean_up, value, shell),
                "artefacts" => reader.put(&mut node.artefacts, value, shell),
                "forwards" => reader.put(&mut node.forwards, value, |v| value::flag(v, name)),
                "outside" => reader.put(&mut node.outside, value, |v| value::flag(v, name)),
                _ => reader.mistakes.push(keys::unknown(key, &keys::NODE)),
            }
        }
        node
    }

    fn links(&mut self, entry: &Entry) -> Vec<LinkDraft> {
        let help = "write a header for each link, such as [link.uplink], and its keys below it";
        let links = value::tables(&mut self.reader, entry, MAX_LINKS, help);
        links
            .into_iter()
            .filter_map(|link| self.link(link))
            .collect()
    }

    fn link(&mut self, entry: &Entry) -> Option<LinkDraft> {
        let reader = &mut self.reader;
        reader.mistakes.extend(value::link_name(&entry.key).err());
        let help = "write its keys below a header such as [link.uplink]";
        let mut between = None;
        let mut given = false;
        let mut profile = None;
        for Entry { key, value } in value::table(reader, entry, help) {
            match key.value.as_str() {
                "between" => {
                    given = true;
                    between = self.reader.read(value, two_names);
                }
                "profile" => profile = self.profile(value),
                _ => {
                    let unknown = keys::unknown(key, &keys::LINK);
                    self.reader.mistakes.push(unknown);
                }
            }
        }
        if !given && matches!(entry.value.value, Value::Table(_)) {
            let help = "set the nodes it joins: between = [\"client\", \"server\"]";
            let title = format!("link `{}` joins no nodes", entry.key.value);
            let mistake = Mistake::new(&entry.key.at, title, help);
            self.reader.mistakes.push(mistake);
        }
        Some(LinkDraft {
            name: entry.key.clone(),
            between: between?.value,
            profile,
        })
    }

    /// Reads a profile by its name, its path, or inline.
    pub fn profile(&mut self, value: &Located<Value>) -> Option<Asked> {
        let asked = |profile, asked: &str| Asked {
            profile,
            asked: asked.to_owned(),
            at: value.at.clone(),
        };
        let name = match &value.value {
            Value::Table(entries) => {
                let profile = Profile::within(&mut self.reader, entries)?;
                return Some(asked(profile, "inline"));
            }
            Value::Text(name) => name,
            other => {
                let title = format!("`profile` cannot be {}", other.kind());
                let help = "write the name of a shipped profile, a file, or tables: \
                            profile = \"lte\", profile.link.rate = \"10Mbit\"";
                let mistake = Mistake::new(&value.at, title, help);
                self.reader.mistakes.push(mistake);
                return None;
            }
        };
        let is_file = name.contains('/') || name.ends_with(".toml");
        let found = match is_file {
            true => Profile::load(&self.reader.folder.join(name)),
            false => shipped::find(name),
        };
        match found {
            Ok(profile) => return Some(asked(profile, name)),
            Err(error) => self.no_profile(value, name, error),
        }
        None
    }

    fn no_profile(&mut self, value: &Located<Value>, name: &str, error: ProfileError) {
        match error {
            ProfileError::UnknownName { name, help } => {
                let title = format!("no profile named `{name}` is shipped with emud");
                let help = help.trim_start_matches("help: ");
                self.reader
                    .mistakes
                    .push(Mistake::new(&value.at, title, help));
            }
            ProfileError::Text(TextError::Unreadable { path, error }) => {
                let title = format!("{}: {error}", path.display());
                let help = "a relative path starts at the scenario's folder";
                self.reader
                    .mistakes
                    .push(Mistake::new(&value.at, title, help));
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

impl NodeDraft {
    fn new(name: Located<String>) -> Self {
        Self {
            name,
            command: None,
            service: None,
            ready: None,
            start: None,
            waits_for: None,
            prepare: None,
            clean_up: None,
            artefacts: None,
            forwards: None,
            outside: None,
        }
    }
}

/// The start of the file.
pub(crate) fn start() -> At {
    At {
        source: FILE,
        span: 0..0,
    }
}

fn default_network() -> Located<Ipv4Net> {
    Located {
        value: NETWORK.parse().unwrap_or_default(),
        at: start(),
    }
}

fn one_line(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    let text = value::string(value, key)?;
    if text.is_empty() || text.len() > 64 || text.contains(char::is_control) {
        let help = "write up to 64 bytes on one line, such as name = \"two-relays\"";
        return Err(Mistake::new(&value.at, "this is not a name", help));
    }
    Ok(text)
}

fn two_names(value: &Located<Value>) -> Result<[Located<String>; 2], Mistake> {
    let help = "a link has two ends: between = [\"client\", \"server\"]";
    let names = match &value.value {
        Value::List(_) => value::strings(value, "between")?,
        other => {
            let title = format!("`between` cannot be {}", other.kind());
            return Err(Mistake::new(&value.at, title, help));
        }
    };
    let number = names.len();
    let names: [Located<String>; 2] = names
        .try_into()
        .map_err(|_| Mistake::new(&value.at, format!("`between` has {number} names"), help))?;
    if names[0].value == names[1].value {
        let title = format!("a link from `{}` to itself", names[0].value);
        return Err(Mistake::new(&value.at, title, help));
    }
    Ok(names)
}
