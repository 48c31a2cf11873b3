// SPDX-License-Identifier: MIT OR Apache-2.0
//! `slot`: departures in slots, as on a link whose time is divided.

use schemars::JsonSchema;
use serde::Serialize;

use super::kinds::{Duration, SomeBytes, SomePackets};
use crate::text::{Reader, table};

table! {
    /// Slots follow one another at distances uniform between two bounds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    pub struct Slot {
        /// Shortest time between two slots in ns.
        min_ns: u64 = 0, "min" as Duration;
        /// Longest time between two slots in ns.
        max_ns: u64 = 0, "max" as Duration;
        /// Packets per slot; null: any.
        #[schemars(range(min = 1))]
        packets: Option<u32> = None, "packets" as SomePackets;
        /// Bytes per slot; null: any.
        #[schemars(range(min = 1))]
        bytes: Option<u32> = None, "bytes" as SomeBytes;
    }
    struct SlotDraft {}
}

impl Slot {
    /// Returns the distances, and what else there is to say: `min 10ms max 20ms packets 3`.
    pub fn summary(&self) -> String {
        self.plain_text(&[]).trim_start().to_owned()
    }

    /// As the value of the key.
    pub(super) fn text(mut self) -> String {
        // It goes along with `min`.
        if self.max_ns == self.min_ns {
            self.max_ns = 0;
        }
        format!("{{ {} }}", self.keys_text().join(", "))
    }
}

impl Reader {
    /// Returns the finished slots; meaningless if that adds a mistake.
    pub(super) fn finish_slot(&mut self, draft: &SlotDraft) -> Option<Slot> {
        let at = draft.at.as_ref().filter(|_| !draft.broken)?;
        let Some(min) = &draft.min_ns else {
            let help = "give the distance between slots: slot = { min = \"10ms\", max = \"20ms\" }";
            self.mistake(at, "slots without `min`", help);
            return None;
        };
        let mut slot = draft.values();
        if draft.max_ns.is_none() {
            slot.max_ns = slot.min_ns;
        }
        let wrong = match (min.value, draft.max_ns.as_ref()) {
            (0, _) => Some((&min.at, "slots no time apart")),
            (min, Some(max)) if max.value < min => Some((&max.at, "`max` is below `min`")),
            _ => None,
        };
        if let Some((at, title)) = wrong {
            let help = "distances are from `min` to `max`, both above 0";
            self.mistake(at, title, help);
        }
        Some(slot)
    }
}
