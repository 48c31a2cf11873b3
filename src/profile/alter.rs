// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that come twice and packets that come damaged.

use super::check::latest;
use super::keyed::{Field, Keyed, Kind, Table};
use super::keys;
use crate::text::{Mistake, Percent, Reader, Word};

/// The most bits of a packet that are turned over (bpf/emud.h).
pub const MAX_CORRUPT_BITS: u32 = crate::abi::EMUD_CORRUPT_BITS;

/// Packets of which a copy comes, too, with a delay of its own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Duplicate {
    /// 0.0..=1.0.
    pub probability: f64,
    /// As that of [`super::LossModel::Bernoulli`].
    pub correlation: f64,
}

/// Packets in which bits are turned over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Corrupt {
    /// 0.0..=1.0.
    pub probability: f64,
    /// As that of [`super::LossModel::Bernoulli`].
    pub correlation: f64,
    /// Different ones of a packet, 1..=[`MAX_CORRUPT_BITS`].
    pub bits: u32,
    /// First byte that may be hit; 0 is the IP header's first.
    pub from: u32,
    /// The byte behind the last; `None`: the packet's end.
    pub to: Option<u32>,
    pub checksum: ChecksumAfter,
}

/// What becomes of the checksum of a damaged packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChecksumAfter {
    /// It stays, so a receiver notices.
    #[default]
    Keep,
    /// It is made right again, so the damage reaches the application.
    Mend,
}

impl Word for ChecksumAfter {
    const WORDS: &'static [(&'static str, Self)] = &[("keep", Self::Keep), ("mend", Self::Mend)];
}

impl Default for Corrupt {
    fn default() -> Self {
        Self {
            probability: 0.0,
            correlation: 0.0,
            bits: 1,
            from: 0,
            to: None,
            checksum: ChecksumAfter::default(),
        }
    }
}

pub(super) const DUPLICATE: Table = Table {
    section: &keys::DUPLICATE,
    kinds: &[Kind::Share, Kind::Share],
    name: "duplicate",
    plain: "probability",
    example: "\"0.5%\"",
};

pub(super) const CORRUPT: Table = Table {
    section: &keys::CORRUPT,
    kinds: &[
        Kind::Share,
        Kind::Share,
        Kind::Count,
        Kind::Count,
        Kind::Count,
        Kind::Checksum,
    ],
    name: "corrupt",
    plain: "probability",
    example: "\"0.1%\"",
};

impl Reader {
    /// The finished value; meaningless if that adds a mistake.
    pub(super) fn finish_duplicate(&mut self, draft: &Keyed) -> Duplicate {
        let Some(probability) = self.probability(draft, &DUPLICATE) else {
            return Duplicate::default();
        };
        let correlation = self.correlation(draft);
        match probability {
            0.0 => Duplicate::default(),
            _ => Duplicate {
                probability,
                correlation,
            },
        }
    }

    /// The finished value; meaningless if that adds a mistake.
    pub(super) fn finish_corrupt(&mut self, draft: &Keyed) -> Corrupt {
        let Some(probability) = self.probability(draft, &CORRUPT) else {
            return Corrupt::default();
        };
        let corrupt = Corrupt {
            probability,
            correlation: self.correlation(draft),
            bits: draft.count("bits").unwrap_or(1) as u32,
            from: draft.count("from").unwrap_or(0) as u32,
            to: draft.count("to").map(|to| to as u32),
            checksum: match draft.get("checksum").map(|field| &field.value) {
                Some(Field::Checksum(checksum)) => *checksum,
                _ => ChecksumAfter::default(),
            },
        };
        if let (false, Some(field)) = (
            (1..=MAX_CORRUPT_BITS).contains(&corrupt.bits),
            draft.get("bits"),
        ) {
            let title = format!("`bits` cannot be {}", corrupt.bits);
            let help = format!("from 1 to {MAX_CORRUPT_BITS} bits of a packet are turned over");
            self.mistakes.push(Mistake::new(&field.at, title, help));
        }
        if let (Some(to), Some(field)) = (corrupt.to, draft.get("to"))
            && to <= corrupt.from
        {
            let title = format!("no byte is from {} up to {to}", corrupt.from);
            let help = "`to` is the first byte that is safe again: write more than `from`";
            self.mistakes.push(Mistake::new(&field.at, title, help));
        }
        self.bits_have_room(draft, &corrupt);
        match probability {
            0.0 => Corrupt::default(),
            _ => corrupt,
        }
    }

    /// Different bits, so there have to be as many.
    fn bits_have_room(&mut self, draft: &Keyed, corrupt: &Corrupt) {
        let (Some(bits), Some(to)) = (draft.get("bits"), draft.get("to")) else {
            return;
        };
        let end = u64::from(corrupt.to.unwrap_or(u32::MAX));
        let room = 8 * end.saturating_sub(corrupt.from.into());
        if room == 0 || u64::from(corrupt.bits) <= room {
            return;
        }
        let title = format!("{} bits of {} bytes", corrupt.bits, room / 8);
        let help = format!("there are {room}: write fewer `bits`, or a `to` further from `from`");
        let from = draft.get("from").map(|field| &field.at);
        let at = latest(&bits.at, [Some(&to.at), from]);
        self.mistakes.push(Mistake::new(at, title, help));
    }

    /// `None`: nothing was written, or without a probability, which is a mistake.
    fn probability(&mut self, draft: &Keyed, table: &Table) -> Option<f64> {
        let at = draft.at.as_ref().filter(|_| !draft.broken)?;
        let probability = draft.share("probability");
        if probability.is_none() {
            let name = table.name;
            let title = format!("`{name}` without `probability`");
            let help = format!("write {name} = \"1%\" or {name} = {{ probability = \"1%\", ... }}");
            self.mistakes.push(Mistake::new(at, title, help));
        }
        probability
    }
}

/// The value of `duplicate` as text that reads back to it.
pub(super) fn duplicate_text(duplicate: &Duplicate) -> String {
    match duplicate.correlation {
        0.0 => percent(duplicate.probability),
        correlation => format!(
            "{{ probability = {}, correlation = {} }}",
            percent(duplicate.probability),
            percent(correlation)
        ),
    }
}

/// The value of `corrupt` as text that reads back to it.
pub(super) fn corrupt_text(corrupt: &Corrupt) -> String {
    let plain = Corrupt {
        probability: corrupt.probability,
        ..Corrupt::default()
    };
    if *corrupt == plain {
        return percent(corrupt.probability);
    }
    let mut keys = vec![format!("probability = {}", percent(corrupt.probability))];
    if corrupt.correlation != 0.0 {
        keys.push(format!("correlation = {}", percent(corrupt.correlation)));
    }
    keys.push(format!("bits = {}, from = {}", corrupt.bits, corrupt.from));
    keys.extend(corrupt.to.map(|to| format!("to = {to}")));
    keys.push(format!("checksum = \"{}\"", corrupt.checksum.word()));
    format!("{{ {} }}", keys.join(", "))
}

fn percent(share: f64) -> String {
    format!("\"{}\"", Percent(share))
}
