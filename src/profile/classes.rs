// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes of bottlenecks and the links whose packets wait there: whether they go together.

use super::draft::LinkDraft;
use super::read::Draft;
use super::{Bottleneck, Target};
use crate::abi::DIRECTIONS;
use crate::text::{Located, Mistake, Reader};

/// A link up and down.
type Both<'a> = [&'a LinkDraft; 2];

impl Draft {
    /// Links wait in classes that exist.
    pub(super) fn classes(&self, reader: &mut Reader, bottlenecks: &[Bottleneck]) {
        for link in self.own_links().chain(self.named_links(None)).flatten() {
            if let Some(class) = &link.class {
                reader.is_service(class, bottlenecks);
            }
        }
        for (class, link) in self.classed() {
            no_slot(reader, class, link);
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
