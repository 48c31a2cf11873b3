// SPDX-License-Identifier: MIT OR Apache-2.0
//! `duplicate`, `corrupt` and `reset`: from the profile to the figures of bpf/alter.h, and back.

use super::fixed::{chance, of_chance, of_probability, probability};
use crate::abi;
use crate::profile::{ChecksumAfter, Corrupt, Duplicate, Link};

/// Fills in what copies and damages packets, and makes resets of them.
pub(crate) fn encode(out: &mut abi::emud_link, link: &Link) {
    let (duplicate, corrupt) = (&link.duplicate, &link.corrupt);
    out.reset = probability(link.reset);
    out.duplicate = chance(duplicate.probability, duplicate.correlation);
    out.corrupt = chance(corrupt.probability, corrupt.correlation);
    out.corrupt_bits = corrupt.bits;
    out.corrupt_from = corrupt.from;
    out.corrupt_to = corrupt.to.unwrap_or(u32::MAX);
    if corrupt.checksum == ChecksumAfter::Mend {
        out.flags |= abi::EMUD_F_MEND;
    }
}

/// The bits of the control word that [`bits`] sets.
pub(crate) const ALL: u32 = abi::EMUD_SUMS << abi::EMUD_UP | abi::EMUD_SUMS << abi::EMUD_DOWN;

/// Returns the bits for all links of both directions.
pub(crate) fn bits<'a>(both: [impl Iterator<Item = &'a abi::emud_link>; 2]) -> u32 {
    let keeps_checksums =
        |link: &abi::emud_link| link.corrupt.probability > 0 && link.flags & abi::EMUD_F_MEND == 0;
    let mut bits = 0;
    for (direction, mut links) in (0..).zip(both) {
        if links.any(keeps_checksums) {
            bits |= abi::EMUD_SUMS << direction;
        }
    }
    bits
}

/// Returns the duplication, the corruption and the share of resets of a link, the inverse of `encode`.
pub(crate) fn decode(link: &abi::emud_link) -> (Duplicate, Corrupt, f64) {
    let (probability, correlation) = of_chance(&link.duplicate);
    let duplicate = Duplicate {
        probability,
        correlation,
    };
    let (probability, correlation) = of_chance(&link.corrupt);
    let corrupt = Corrupt {
        probability,
        correlation,
        bits: link.corrupt_bits,
        from: link.corrupt_from,
        to: (link.corrupt_to != u32::MAX).then_some(link.corrupt_to),
        checksum: match link.flags & abi::EMUD_F_MEND {
            0 => ChecksumAfter::Keep,
            _ => ChecksumAfter::Mend,
        },
    };
    (duplicate, corrupt, of_probability(link.reset))
}
