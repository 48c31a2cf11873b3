// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the values of a link go together.

use super::Link;
use super::draft::LinkDraft;
use crate::text::Reader;

impl Reader {
    /// Returns the finished link; meaningless if that adds a mistake.
    pub(super) fn finish(&mut self, draft: &LinkDraft) -> Link {
        let trace = self.finish_trace(&draft.trace);
        let wire = self.finish_wire(draft, trace.as_ref());
        let mut queue = self.finish_queue(draft, &wire);
        let link = Link {
            background: self.finish_background(draft, &mut queue),
            queue,
            wire,
            delay: self.finish_delay(&draft.delay, trace.as_ref()),
            loss: self.finish_loss(&draft.loss),
            reorder: self.finish_reorder(&draft.reorder),
            duplicate: self.finish_duplicate(&draft.duplicate),
            corrupt: self.finish_corrupt(&draft.corrupt),
            trace,
            slot: self.finish_slot(&draft.slot),
            ..draft.values()
        };
        self.target_fits(draft, &link);
        self.rows_in_force_fit(draft, &link);
        self.no_cap_on_rows(draft, &link);
        link
    }
}
