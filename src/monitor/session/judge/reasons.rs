// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run is invalid for, read from the sentences of its judgement.

use emud_monitor::log::Judgement;

use crate::datapath::radio::{DELIVERED_LATE, READ_LATE};

/// Failure of packets that an engine dropped, by its counters.
pub const ENGINE_DROPPED: &str = "packets were dropped by the engine, not by the link";

/// Failure of packets that a bottleneck did not know when it decided on later ones.
pub const DISORDERED: &str = "packets were read after their bottleneck had decided on later ones";

/// Returns how many packets a bottleneck decided on too late in a run that is invalid for nothing else.
pub fn only_disordered(judgement: &Judgement) -> Option<u64> {
    let number = |why: &String| {
        let number = why.strip_suffix(DISORDERED)?.trim_end();
        number.rsplit(' ').next()?.parse::<u64>().ok()
    };
    let sum = judgement.invalid.iter().map(number).sum::<Option<u64>>();
    sum.filter(|sum| *sum > 0)
}

/// Returns whether a run is invalid only because packets left late, or frames of a medium: nothing was lost or
/// unwatched.
pub fn only_late(judgement: &Judgement) -> bool {
    !judgement.invalid.is_empty() && judgement.invalid.iter().all(|why| late(why))
}

/// Returns whether a run is invalid because its engine dropped packets, and for nothing else but packets that
/// left late.
pub fn only_dropped(judgement: &Judgement) -> bool {
    let dropped = |why: &String| {
        why.ends_with(ENGINE_DROPPED) || why.contains(" were dropped, and no contention ")
    };
    let invalid = &judgement.invalid;
    invalid.iter().any(dropped) && invalid.iter().all(|why| late(why) || dropped(why))
}

fn late(why: &str) -> bool {
    let of_medium = [DELIVERED_LATE, READ_LATE];
    why.starts_with("packets left ") && why.contains(" late, and no ")
        || of_medium.iter().any(|late| why.contains(late))
}
