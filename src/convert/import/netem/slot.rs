// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts netem's slots.

use super::SlotOption;
use crate::convert::import::writer::{Writer, quoted, table};
use crate::convert::netem::MOST_QUEUED;
use crate::profile::Time;

pub(super) fn slots(out: &mut Writer, slot: &SlotOption) {
    if slot.bare_time {
        let text = "a slot's time without a unit is nanoseconds for iproute2, as it is here";
        out.note(text);
        out.warnings.push(text.to_owned());
    }
    let Some((min, max)) = slot.distances_ns else {
        let text = "emud's slots have distances between two bounds, without a distribution";
        return out.warning(format!("`{}`: {text}", slot.text));
    };
    if max == 0 {
        return out.note("Slots with a distance of 0 have no effect.");
    }
    out.note(
        "netem's next slot begins this long after the packet that waits for it or that filled the previous \
         one; emud's follow one another by the clock.",
    );
    if slot.packets > MOST_QUEUED {
        let text = format!(
            "up to {} packets per slot: emud's queue never has more than {MOST_QUEUED}, so any \
             number of them leaves in one",
            slot.packets
        );
        out.warning(text);
    }
    let limit = |n: u32| (1..=MOST_QUEUED).contains(&n).then(|| n.to_string());
    let bytes = |n: u32| (n > 0).then(|| quoted(format!("{n}B")));
    out.key(
        "slot",
        table(&[
            ("min", Some(quoted(Time(min.max(1))))),
            ("max", Some(quoted(Time(max)))),
            ("packets", limit(slot.packets)),
            ("bytes", bytes(slot.bytes)),
        ]),
    );
}
