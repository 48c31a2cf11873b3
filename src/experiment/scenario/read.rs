// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a scenario from text or a file.

use std::path::Path;

use super::error::ScenarioError;
use super::limits::{MAX_LINKS, MAX_MEDIA, MAX_NODES};
use super::medium::{self, MediumDraft, MediumTableDraft, Mobility, SegmentTableDraft};
use super::model::{Link, LinkDraft, NodeTable, Scenario, TopDraft};
use super::plan::NodeDraft;
use super::reading::Reading;
use super::{keys, topology_read, value};
use crate::text::{At, Entry, Mistakes, Reader, TextError, Value, document, read_file, utf8};

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
        if scenario.top.name.is_empty() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            scenario.top.name = stem.chars().filter(|c| !c.is_control()).take(64).collect();
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
                Some(reading.scenario(&entries))
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

impl Reading<'_> {
    fn scenario(&mut self, entries: &[Entry]) -> Scenario {
        let mut draft = TopDraft::default();
        let mut topology = None;
        let (mut nodes, mut links, mut media) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match entry.key.value.as_str() {
                "topology" => topology = topology_read::read(self, entry),
                "node" => nodes = self.nodes(entry),
                "link" => links = self.links(entry),
                "medium" => media.extend(self.media(entry, "medium", "wlan0", Self::medium)),
                "segment" => media.extend(self.media(entry, "segment", "lan", Self::segment)),
                _ => self.key(&mut draft, entry, &keys::TOP),
            }
        }
        let given = entries.iter().any(|e| e.key.value == "topology");
        if nodes.is_empty() && !given && self.reader.mistakes.is_empty() {
            // An empty scenario, such as a truncated or wrong file.
            let help =
                "add nodes, [node.NAME], and links between them, [link.NAME], or a [topology]";
            self.mistake(&At::default(), "the scenario has no node", help);
        }
        Scenario {
            top: draft.values(),
            text: self.source.text.clone(),
            origin: self.source.origin.clone(),
            network_at: draft.network.map(|network| network.at).unwrap_or_default(),
            topology,
            nodes,
            links,
            media,
        }
    }

    fn nodes(&mut self, entry: &Entry) -> Vec<NodeTable> {
        let help = "write a header for each node, such as [node.server], and its keys below it";
        let most = MAX_NODES as usize;
        let nodes = value::tables(&mut self.reader, "node", &entry.value, most, help);
        nodes.into_iter().map(|node| self.node(node)).collect()
    }

    fn node(&mut self, entry: &Entry) -> NodeTable {
        let mistake = value::node_name(&entry.key).err();
        self.reader.mistakes.extend(mistake);
        // For its mistakes; the tables of a node are applied one over the other later.
        let _: NodeDraft = self.table(entry, &keys::NODE, "[node.server]");
        let keys = match &entry.value.value {
            Value::Table(keys) => keys.clone(),
            _ => Vec::new(),
        };
        let name = entry.key.clone();
        NodeTable { name, keys }
    }

    /// Reads the tables `[what.NAME]`.
    fn media(
        &mut self,
        entry: &Entry,
        what: &str,
        example: &str,
        read: fn(&mut Self, &Entry) -> Option<MediumDraft>,
    ) -> Vec<MediumDraft> {
        let help = format!(
            "write a header for each {what}, such as [{what}.{example}], and its keys below it"
        );
        let media = value::tables(&mut self.reader, what, &entry.value, MAX_MEDIA, &help);
        let media = media.into_iter();
        media
            .filter_map(|entry| {
                let mistake = value::link_name(&entry.key).err();
                self.reader.mistakes.extend(mistake);
                read(self, entry)
            })
            .collect()
    }

    fn segment(&mut self, entry: &Entry) -> Option<MediumDraft> {
        let mut draft = SegmentTableDraft::default();
        let name = &entry.key.value;
        let help = "write its keys below a header such as [segment.lan]";
        for entry in value::table(&mut self.reader, name, &entry.value, help) {
            if !draft.none(&entry.key.value, &entry.value) {
                self.key(&mut draft, entry, &keys::SEGMENT);
            }
        }
        let finished = draft.finish();
        let (segment, table) = finished
            .map_err(|mistake| self.reader.mistakes.push(mistake))
            .ok()?;
        Some(MediumDraft {
            name: entry.key.clone(),
            table,
            mobility: None,
            segment: Some(segment),
        })
    }

    fn medium(&mut self, entry: &Entry) -> Option<MediumDraft> {
        let mut draft = MediumTableDraft::default();
        let name = &entry.key.value;
        let help = "write its keys below a header such as [medium.wlan0]";
        for entry in value::table(&mut self.reader, name, &entry.value, help) {
            // Where `none` is a value, and not the lack of one.
            if !draft.none(&entry.key.value, &entry.value) {
                self.key(&mut draft, entry, &keys::MEDIUM);
            }
        }
        let mobility = draft.mobility.as_ref();
        if let Some(propagation) = &mut draft.propagation {
            medium::load_grid(&mut self.reader, propagation);
        }
        Some(MediumDraft {
            name: entry.key.clone(),
            mobility: mobility.and_then(|value| Mobility::read(&mut self.reader, value)),
            table: draft.values(),
            segment: None,
        })
    }

    fn links(&mut self, entry: &Entry) -> Vec<Link> {
        let help = "write a header for each link, such as [link.uplink], and its keys below it";
        let links = value::tables(&mut self.reader, "link", &entry.value, MAX_LINKS, help);
        links.into_iter().filter_map(|l| self.link(l)).collect()
    }

    fn link(&mut self, entry: &Entry) -> Option<Link> {
        let mistake = value::link_name(&entry.key).err();
        self.reader.mistakes.extend(mistake);
        let draft: LinkDraft = self.table(entry, &keys::LINK, "[link.uplink]");
        let profile = self.profile(draft.profile.as_ref());
        if draft.between.is_none() && !draft.broken {
            let help = "set the nodes it joins: between = [\"client\", \"server\"]";
            let title = format!("link `{}` joins no nodes", entry.key.value);
            self.mistake(&entry.key.at, title, help);
        }
        Some(Link {
            name: entry.key.clone(),
            between: draft.values().between?,
            profile,
        })
    }
}
