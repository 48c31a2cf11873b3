// SPDX-License-Identifier: MIT OR Apache-2.0
//! `slot`: from the profile to the figures of bpf/slot.h, and back.

use super::queueing::slot_wait_ns;
use crate::abi::{self, mix};
use crate::profile::{Queue, Slot};

/// Returns the slots of a link with this queue.
pub(crate) fn encode(slot: &Slot, queue: &Queue) -> abi::emud_tdma {
    let (packets, bytes) = (slot.packets.unwrap_or(0), slot.bytes.unwrap_or(0));
    let figures = [
        slot.min_ns,
        slot.max_ns,
        u64::from(packets) << 32 | u64::from(bytes),
    ];
    abi::emud_tdma {
        min_ns: slot.min_ns,
        span_ns: slot.max_ns - slot.min_ns + 1,
        id: figures.iter().fold(1, |id, figure| mix(id ^ figure)) | 1,
        wait_ns: slot_wait_ns(slot, queue),
        packets,
        bytes,
    }
}

/// Returns the slots, if there are any.
pub(crate) fn decode(tdma: &abi::emud_tdma) -> Option<Slot> {
    (tdma.span_ns > 0).then(|| Slot {
        min_ns: tdma.min_ns,
        max_ns: tdma.min_ns + tdma.span_ns - 1,
        packets: (tdma.packets > 0).then_some(tdma.packets),
        bytes: (tdma.bytes > 0).then_some(tdma.bytes),
    })
}
