// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named links: `[links.NAME]`, to which rules and phases refer.

use super::draft::LinkDraft;
use super::read::section;
use super::{Link, Neighbours, Profile, base, rules};
use crate::abi;
use crate::text::{Entry, Located, Mistake, Reader, Value, closest};

/// Beside the profile's own link.
pub const MAX_LINKS: usize = abi::EMUD_LINKS_MAX as usize - 1;
const NAME_BYTES: usize = 32;

/// A link beside the profile's own, both directions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamedLink {
    /// Name that rules refer to.
    pub name: String,
    /// Egress.
    pub up: Link,
    /// Ingress.
    pub down: Link,
}

impl Profile {
    /// Returns all links of a direction by number: the profile's own is 0, then the named ones, then
    /// those of the phases.
    pub fn links_of(&self, direction: u32) -> impl Iterator<Item = &Link> {
        let named = self
            .links
            .iter()
            .map(move |named| named.direction(direction));
        let phases = self.phases.list.iter().map(move |p| p.direction(direction));
        std::iter::once(self.direction(direction))
            .chain(named)
            .chain(phases)
    }

    /// Returns whether anything depends on the time since the start.
    pub fn is_timed(&self) -> bool {
        let traced = |direction| self.links_of(direction).any(|link| link.trace.is_some());
        !self.phases.list.is_empty() || traced(abi::EMUD_UP) || traced(abi::EMUD_DOWN)
    }

    /// Returns the number of a named link.
    pub fn number_of(&self, name: &str) -> Option<u32> {
        let place = self.links.iter().position(|named| named.name == name);
        place.and_then(|place| u32::try_from(place + 1).ok())
    }
}

impl NamedLink {
    /// Returns the link of a direction (`EMUD_UP`, `EMUD_DOWN`).
    pub fn direction(&self, direction: u32) -> &Link {
        if direction == abi::EMUD_UP {
            &self.up
        } else {
            &self.down
        }
    }

    pub(super) fn reversed(self) -> Self {
        Self {
            up: self.down,
            down: self.up,
            ..self
        }
    }
}

#[derive(Debug)]
pub(super) struct NamedDraft {
    pub name: Located<String>,
    pub up: LinkDraft,
    pub down: LinkDraft,
}

impl NamedDraft {
    pub fn finish(&self, reader: &mut Reader) -> NamedLink {
        NamedLink {
            name: self.name.value.clone(),
            up: reader.finish(&self.up),
            down: reader.finish(&self.down),
        }
    }
}

/// Reads the table of tables `links`; what they do not say of `neighbours` is this.
pub(super) fn read(
    reader: &mut Reader,
    entry: &Entry,
    neighbours: &Option<Located<Neighbours>>,
) -> Vec<NamedDraft> {
    let Value::Table(links) = &entry.value.value else {
        let help = "write a header for each link, such as [links.lte], its keys below";
        reader.wrong_kind(&entry.value, "links", help);
        return Vec::new();
    };
    if links.len() > MAX_LINKS {
        let title = format!("{} named links", links.len());
        let help = format!("a profile has at most {MAX_LINKS}");
        reader.mistake(&entry.key.at, title, help);
    }
    let links = links.iter();
    links
        .filter_map(|link| one(reader, link, neighbours))
        .collect()
}

/// Reads `[links.NAME]`: both directions, with tables `up` and `down` that override it.
fn one(
    reader: &mut Reader,
    entry: &Entry,
    neighbours: &Option<Located<Neighbours>>,
) -> Option<NamedDraft> {
    let name = &entry.key;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.value.len() > NAME_BYTES || !name.value.chars().all(plain) || name.value.is_empty() {
        let help = format!("at most {NAME_BYTES} letters, digits, - and _, as in [links.lte]");
        reader.mistake(&name.at, "this is not a link's name", help);
    }
    if [rules::OWN, rules::NONE].contains(&name.value.as_str()) {
        let title = format!("a link cannot be called `{}`", name.value);
        let help = "in a rule, \"link\" is the profile's own and \"none\" lets packets pass: take \
                    another name";
        reader.mistake(&name.at, title, help);
    }
    let entries = section(reader, entry)?;
    reader.one_overhead(entries);
    let of = |direction: &str| entries.iter().find(|e| e.key.value == direction);
    let mut directions = base::of_named(reader, entries);
    for draft in &mut directions {
        draft.neighbours = draft.neighbours.take().or_else(|| neighbours.clone());
    }
    let beside = ["up", "down", "profile"];
    for key in entries
        .iter()
        .filter(|e| !beside.contains(&e.key.value.as_str()))
    {
        for draft in &mut directions {
            reader.link_key(draft, key);
        }
    }
    for (draft, name) in directions.iter_mut().zip(["up", "down"]) {
        if let Some(keys) = of(name).and_then(|entry| section(reader, entry)) {
            reader.link(draft, keys);
        }
    }
    let [up, down] = directions;
    Some(NamedDraft {
        name: name.clone(),
        up,
        down,
    })
}

/// Returns the index of the link with this name.
pub(super) fn find(drafts: &[NamedDraft], name: &Located<String>) -> Result<usize, Mistake> {
    let names = drafts.iter().map(|d| d.name.value.as_str());
    let place = names.clone().position(|known| known == name.value);
    place.ok_or_else(|| unknown(name, names))
}

/// Returns the mistake of a link that does not exist.
pub(super) fn unknown<'a>(
    name: &Located<String>,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Mistake {
    let help = match closest(&name.value, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match names.map(|n| format!("`{n}`")).collect::<Vec<_>>() {
            all if all.is_empty() => "the profile has no [links.NAME]".to_owned(),
            all => format!("named links are {}", all.join(", ")),
        },
    };
    Mistake::new(&name.at, format!("there is no link `{}`", name.value), help)
}
