// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that arrive twice and packets that arrive damaged.

use schemars::JsonSchema;
use serde::Serialize;

use super::kinds::{Correlation, Count, OneOf, Share};
use super::located::latest;
use crate::text::{Percent, Reader, table, words};

/// The most bits of a packet that are turned over (bpf/abi/link.h).
pub const MAX_CORRUPT_BITS: u32 = crate::abi::EMUD_CORRUPT_BITS;

table! {
    /// Packets of which a copy arrives, too, with a separate delay.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    pub struct Duplicate {
        /// Probability that a packet is affected.
        #[schemars(range(min = 0, max = 1))]
        probability: f64 = 0.0, "probability" as Share;
        /// Correlation with the decision on the previous packet.
        #[schemars(range(min = 0, max = 1))]
        correlation: f64 = 0.0, "correlation" as Correlation;
    }
    struct DuplicateDraft {}
}

table! {
    /// Packets in which bits are turned over.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    pub struct Corrupt {
        /// Probability that a packet is affected.
        #[schemars(range(min = 0, max = 1))]
        probability: f64 = 0.0, "probability" as Share;
        /// Correlation with the decision on the previous packet.
        #[schemars(range(min = 0, max = 1))]
        correlation: f64 = 0.0, "correlation" as Correlation;
        /// Number of bits that are inverted in a packet, 1 to 32.
        #[schemars(range(min = 1, max = 32))]
        bits: u32 = 1, "bits" as Count<1, MAX_CORRUPT_BITS>;
        /// First byte that can be damaged, from the start of the IP header.
        #[serde(rename = "from_bytes")]
        from: u32 = 0, "from" as Count<0, { u32::MAX }>;
        /// Byte after the last one that can be damaged; null: the end of the packet.
        #[serde(rename = "to_bytes")]
        to: Option<u32> = None, "to" as Count<0, { u32::MAX }>;
        /// "mend": the checksum is corrected.
        checksum: ChecksumAfter = ChecksumAfter::Keep, "checksum" as OneOf<ChecksumAfter>;
    }
    struct CorruptDraft {}
}

impl Duplicate {
    /// Returns the share, and what else there is to say: `1% correlation 25%`.
    pub fn summary(&self) -> String {
        Percent(self.probability).to_string() + &self.plain_text(&["probability"])
    }
}

impl Corrupt {
    /// Returns whether it leaves wrong checksums, so that receivers notice the damage.
    pub fn keeps_checksums(&self) -> bool {
        self.probability > 0.0 && self.checksum == ChecksumAfter::Keep
    }

    /// Returns the share, and what else there is to say: `1% bits 3`.
    pub fn summary(&self) -> String {
        Percent(self.probability).to_string() + &self.plain_text(&["probability"])
    }
}

words! {
    /// Checksum of a damaged packet.
    #[derive(Default)]
    pub enum ChecksumAfter {
        /// It stays, so a receiver notices.
        #[default]
        Keep = "keep",
        /// It is made right again, so the damage reaches the application.
        Mend = "mend",
    }
}

impl Reader {
    /// Returns the finished value; meaningless if that adds a mistake.
    pub(super) fn finish_duplicate(&mut self, draft: &DuplicateDraft) -> Duplicate {
        if draft.at.is_none() || draft.broken {
            return Duplicate::default();
        }
        if draft.probability.is_none() {
            self.no_probability(draft.at.as_ref(), "duplicate");
        }
        let duplicate = draft.values();
        match duplicate.probability {
            0.0 => Duplicate::default(),
            _ => duplicate,
        }
    }

    /// Returns the finished value; meaningless if that adds a mistake.
    pub(super) fn finish_corrupt(&mut self, draft: &CorruptDraft) -> Corrupt {
        if draft.at.is_none() || draft.broken {
            return Corrupt::default();
        }
        if draft.probability.is_none() {
            self.no_probability(draft.at.as_ref(), "corrupt");
        }
        let corrupt = draft.values();
        if let Some(to) = &draft.to
            && to.value <= corrupt.from
        {
            let title = format!("no bytes from {} to {}", corrupt.from, to.value);
            let help = "`to` is the first byte that is safe again: write more than `from`";
            self.mistake(&to.at, title, help);
        }
        self.bits_have_room(draft, &corrupt);
        match corrupt.probability {
            0.0 => Corrupt::default(),
            _ => corrupt,
        }
    }

    /// Checks that the range has enough bits: all flipped ones are different.
    fn bits_have_room(&mut self, draft: &CorruptDraft, corrupt: &Corrupt) {
        let (Some(bits), Some(to)) = (&draft.bits, &draft.to) else {
            return;
        };
        let room = 8 * u64::from(to.value).saturating_sub(corrupt.from.into());
        if room == 0 || u64::from(corrupt.bits) <= room {
            return;
        }
        let title = format!("{} bits of {} bytes", corrupt.bits, room / 8);
        let help = format!("there are {room}: write fewer `bits`, or a `to` further from `from`");
        let from = draft.from.as_ref().map(|from| &from.at);
        let at = latest(&bits.at, [Some(&to.at), from]);
        self.mistake(at, title, help);
    }

    fn no_probability(&mut self, at: Option<&crate::text::At>, name: &str) {
        let Some(at) = at else { return };
        let title = format!("`{name}` without `probability`");
        let help = format!("write {name} = \"1%\" or {name} = {{ probability = \"1%\", ... }}");
        self.mistake(at, title, help);
    }
}
