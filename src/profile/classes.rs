// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes of bottlenecks and the links whose packets wait there: whether they go together.

use super::Bottleneck;
use super::draft::LinkDraft;
use super::read::Draft;
use crate::text::{Located, Mistake, Reader};

impl Draft {
    /// Links wait in classes that exist.
    pub(super) fn classes(&self, reader: &mut Reader, bottlenecks: &[Bottleneck]) {
        let named = self.links.iter().flat_map(|link| [&link.up, &link.down]);
        let own = [&self.up, &self.down].into_iter();
        for link in own.chain(named).chain(self.phases.links()) {
            if let Some(class) = &link.class {
                reader.is_service(class, bottlenecks);
                no_slot(reader, class, link);
            }
        }
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
