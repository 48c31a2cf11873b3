// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes of bottlenecks and the links whose packets wait there: whether they go together.

use std::cmp::Reverse;

use super::bottleneck::parts;
use super::draft::LinkDraft;
use super::located::value;
use super::queueing::QueueDraft;
use super::read::Draft;
use super::{Bottleneck, PACKET_BYTES, Target};
use crate::abi::DIRECTIONS;
use crate::text::{Located, Mistake, Reader};

/// A link up and down.
type Both<'a> = [&'a LinkDraft; 2];

impl Draft {
    /// Links wait in classes that exist, and that let their packets in.
    pub(super) fn classes(&self, reader: &mut Reader, bottlenecks: &[Bottleneck]) {
        for link in self.own_links().chain(self.named_links(None)).flatten() {
            if let Some(class) = &link.class {
                reader.is_service(class, bottlenecks);
            }
        }
        let mut classed = self.classed();
        for (class, link) in &classed {
            no_slot(reader, class, link);
        }
        // The longest packets of each class come first.
        classed.sort_by_key(|(_, link)| Reverse(packet_bytes(link)));
        let mut seen = Vec::new();
        for (class, link) in classed {
            if !seen.contains(&&class.value) {
                seen.push(&class.value);
                let limit = self.queue_of(&class.value).and_then(|q| q.bytes.as_ref());
                // A lower one is a mistake with any link.
                let limit = limit.filter(|bytes| bytes.value >= u64::from(PACKET_BYTES));
                reader.holds_a_packet(limit, link, &link.wire.values());
            }
        }
    }

    fn queue_of(&self, class: &str) -> Option<&QueueDraft> {
        let (name, class) = parts(class);
        let bottleneck = self.bottlenecks.iter().find(|b| b.name() == name)?;
        match class {
            None => Some(&bottleneck.queue),
            Some(class) => Some(&bottleneck.classes.iter().find(|c| c.name() == class)?.queue),
        }
    }

    /// Returns the profile's own link, which changes in phases.
    fn own_links(&self) -> impl Iterator<Item = Both<'_>> {
        std::iter::once([&self.up, &self.down]).chain(self.phases.links())
    }

    /// Returns the named links, or only the one of this name.
    fn named_links(&self, only: Option<&str>) -> Vec<Both<'_>> {
        let named = self.links.iter();
        let named = named.filter(|link| only.is_none_or(|only| only == link.name.value));
        named.map(|link| [&link.up, &link.down]).collect()
    }

    /// Returns each class with each link whose packets come there, by the link or by a rule.
    fn classed(&self) -> Vec<(&Located<String>, &LinkDraft)> {
        let links = self.own_links().chain(self.named_links(None)).flatten();
        let of_links = links.filter_map(|link| Some((link.class.as_ref()?, link)));
        let mut all: Vec<_> = of_links.collect();
        for draft in &self.rules {
            let Some(class) = &draft.class else { continue };
            let rule = draft.values();
            let links: Vec<Both<'_>> = match &rule.target {
                Target::Own => self.own_links().collect(),
                Target::Named(name) => self.named_links(Some(name)),
                Target::Untouched => Vec::new(),
            };
            for direction in DIRECTIONS.into_iter().filter(|d| rule.is_for(*d)) {
                all.extend(links.iter().map(|both| (class, both[direction as usize])));
            }
        }
        all
    }
}

/// Slots say when a packet leaves, and a bottleneck says that, too.
fn no_slot(reader: &mut Reader, class: &Located<String>, link: &LinkDraft) {
    let Some(slot) = &link.slot.at else { return };
    let help = "a link of a bottleneck departs when that has served it: take one of the two away";
    let mistake = Mistake::new(slot, "`slot` beside `class`", help);
    let mistake = mistake.beside(&class.at, "the class");
    if !reader.mistakes.contains(&mistake) {
        reader.mistakes.push(mistake);
    }
}

/// Bytes of a full packet on the wire.
fn packet_bytes(link: &LinkDraft) -> u64 {
    let overhead = value(&link.overhead).unwrap_or_default();
    link.wire.values().bytes(PACKET_BYTES, overhead)
}
