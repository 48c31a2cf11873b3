// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which links need no stage but a delay, with or without jitter, and independent losses: their plain
//! packets take the classifier's short path (bpf/short.h).

use super::loss;
use crate::abi;

/// The bits of the control word that this module sets.
pub(crate) const ALL: u32 = abi::EMUD_SHORT << abi::EMUD_UP | abi::EMUD_SHORT << abi::EMUD_DOWN;

/// Flags of a link for which the short path has the same results as the other one.
const FLAGS: u32 =
    abi::EMUD_F_NEIGHBOURS | abi::EMUD_F_CLONE | abi::EMUD_F_JITTER | abi::EMUD_F_PER_PACKET;

/// Returns the bits for the profile's own links of both directions.
pub(crate) fn bits(own: [Option<&abi::emud_link>; 2]) -> u32 {
    let bit = |(direction, link): (u32, Option<&abi::emud_link>)| match link {
        Some(link) if is_short(link) => abi::EMUD_SHORT << direction,
        _ => 0,
    };
    (0..).zip(own).map(bit).fold(0, |all, bit| all | bit)
}

/// Returns whether the short path can run a link. It must check each figure of `emud_link` that has an effect.
fn is_short(link: &abi::emud_link) -> bool {
    let stamped = matches!(
        link.release,
        abi::EMUD_RELEASE_STAMP
            | abi::EMUD_RELEASE_IFB
            | abi::EMUD_RELEASE_MIRRED
            | abi::EMUD_RELEASE_QDISC
            | abi::EMUD_RELEASE_QDISC_IFB
    );
    stamped
        && link.flags & !FLAGS == 0
        && link.rate_mult == 0
        && loss::is_independent(link)
        && link.duplicate.probability == 0
        && link.corrupt.probability == 0
        && link.reset == 0
        && link.queueing.aqm == abi::EMUD_AQM_NONE
        && link.timeline.count == 0
        && link.tdma.span_ns == 0
        && link.service == 0
}
