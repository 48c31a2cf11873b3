// SPDX-License-Identifier: MIT OR Apache-2.0
//! Framing, limits and marking of the queue: from the profile to
//! what the classifier runs, and back for `emud show`.

use super::aqm;
use super::rate::ns;
use crate::abi;
use crate::profile::{self, Cells, DEFAULT_QUEUE_PACKETS, PACKET_BYTES, Queue, Wire};

/// Bytes in front of a pair's link where the profile does not say: as many full packets.
const PAIR_BYTES: u32 = DEFAULT_QUEUE_PACKETS * PACKET_BYTES;

/// Writes the limits of a queue whose rate depends on the packet's pair.
pub(crate) fn of_pairs(out: &mut abi::emud_link, queue: &profile::Queue) {
    out.pair_packets = queue.pair_limit_packets();
    let limited = queue.is_limited() || out.pair_packets != 0;
    let usual = if limited { 0 } else { PAIR_BYTES };
    // At most u32::MAX, where it is read.
    out.queue_bytes = queue.bytes.map_or(0, |bytes| bytes as u32);
    out.pair_bytes = queue.bytes.map_or(usual, |bytes| bytes as u32);
    out.queue_wait_ns = queue.time_ns.unwrap_or(u64::MAX);
}

/// Returns how long a packet may wait for its slot: until as many slots are full as the queue has packets
/// or bytes for. Packets are taken for full ones where slots count the other.
pub(crate) fn slot_wait_ns(slot: &profile::Slot, queue: &profile::Queue) -> u64 {
    if slot.packets.is_none() && slot.bytes.is_none() {
        return u64::MAX; // The next one has room for all.
    }
    let slots = |packets: u64, bytes: u64| {
        let by_packets = packets.div_ceil(slot.packets.map_or(u64::MAX, u64::from).max(1));
        let by_bytes = bytes.div_ceil(slot.bytes.map_or(u64::MAX, u64::from).max(1));
        // A slot has one packet at least.
        by_packets.max(by_bytes.min(packets))
    };
    let full = u64::from(PACKET_BYTES);
    let usual = (!queue.is_limited()).then_some(DEFAULT_QUEUE_PACKETS);
    let packets = match queue.pair_limit_packets() {
        0 => usual.map(u64::from),
        limit => Some(limit.into()),
    };
    let by_packets = packets.map(|packets| slots(packets, packets * full));
    let by_bytes = queue.bytes.map(|bytes| slots(bytes.div_ceil(full), bytes));
    let mean_ns = u64::midpoint(slot.min_ns, slot.max_ns);
    let limits = by_packets.into_iter().chain(by_bytes);
    let waits = limits.map(|slots| slots.saturating_mul(mean_ns));
    let wait_ns = waits.chain(queue.time_ns).min();
    wait_ns.unwrap_or(u64::MAX)
}

/// Fills in the queue of a link with this rate (bit/s).
pub(crate) fn compile(out: &mut abi::emud_link, link: &profile::Link, rate: u64) {
    limits(out, &link.queue, rate);
    let wire_ns = |bytes: u32| ns(link.wire.bytes(bytes, link.overhead), rate);
    let q = &mut out.queueing;
    q.burst_ns = link.wire.burst.map_or(0, |bytes| ns(bytes, rate));
    q.mpu = link.wire.mpu;
    if let Some(cells) = link.wire.cells {
        q.cell_size = cells.size();
        q.cell_overhead = cells.overhead();
        q.cell_pad = cells.padded().into();
    }
    q.mark_ns = link.queue.ecn_above_ns.unwrap_or(u64::MAX);
    let mut ecn = link.queue.ecn_above_ns.is_some();
    if let Some(wanted) = &link.queue.aqm {
        (q.aqm, ecn) = aqm::encode(q, wanted, rate, wire_ns);
    }
    q.ecn = ecn.into();
    let plain_packets = q.mpu == 0 && q.cell_size == 0 && link.background.is_none();
    if !ecn && q.aqm == abi::EMUD_AQM_NONE && plain_packets {
        out.flags |= abi::EMUD_F_PLAIN_QUEUE;
    }
}

fn limits(out: &mut abi::emud_link, queue: &profile::Queue, rate: u64) {
    out.queue_packets = queue.limit_packets();
    out.queue_busy_ns = queue.bytes.map_or(u64::MAX, |bytes| ns(bytes, rate));
}

/// Returns the most bytes that a frame of `len` bytes takes on a link's wire.
pub fn wire_bytes(link: &abi::emud_link, len: f64) -> f64 {
    let q = &link.queueing;
    let len = (len + f64::from(link.overhead)).max(f64::from(q.mpu));
    if q.cell_size == 0 {
        return len;
    }
    let (cells, size) = (
        (len / f64::from(q.cell_size)).ceil(),
        f64::from(q.cell_size),
    );
    cells * (size + f64::from(q.cell_overhead))
}

/// Returns the limits, marking and management of a queue.
pub(crate) fn decode_queue(link: &abi::emud_link) -> Queue {
    let q = &link.queueing;
    let set = |limit: u64| (limit != u64::MAX).then_some(limit);
    let aqm = aqm::decode(q);
    Queue {
        packets: (link.pair_packets != 0).then_some(link.pair_packets),
        bytes: (link.queue_bytes != 0).then_some(link.queue_bytes.into()),
        time_ns: set(link.queue_wait_ns),
        ecn_above_ns: (q.ecn != 0 && aqm.is_none()).then_some(q.mark_ns),
        aqm,
        blocks: false,
    }
}

/// Returns framing and burst of a link with this rate in bit/s.
pub(crate) fn decode_wire(link: &abi::emud_link, rate: u64) -> Wire {
    let q = &link.queueing;
    Wire {
        burst: (q.burst_ns != 0).then(|| bytes(q.burst_ns, rate)),
        mpu: q.mpu,
        cells: (q.cell_size != 0).then_some(match (q.cell_size, q.cell_overhead) {
            (64, 1) if q.cell_pad == 0 => Cells::Ptm,
            (48, 5) => Cells::Atm,
            (size, overhead) => Cells::Of { size, overhead },
        }),
    }
}

/// Returns the least number of bytes that take so long: [`ns`] rounds down.
fn bytes(ns: u64, rate: u64) -> u64 {
    let bytes = (u128::from(ns) * u128::from(rate)).div_ceil(8_000_000_000);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Aqm, Length, Link, Red};

    fn compiled(link: &Link) -> abi::emud_link {
        let mut out = abi::emud_link::default();
        compile(&mut out, link, 8_000_000);
        out
    }

    #[test]
    fn without_a_limit_it_is_a_thousand_packets() {
        let none = compiled(&Link::default());
        assert_eq!((none.queue_packets, none.queue_busy_ns), (1000, u64::MAX));
        let bytes = compiled(&Link {
            queue: Queue {
                bytes: Some(5_000),
                ..Queue::default()
            },
            ..Link::default()
        });
        assert_eq!((bytes.queue_packets, bytes.queue_busy_ns), (0, 5_000_000));
    }

    #[test]
    fn a_pairs_limit_is_in_one_unit() {
        let limits = |queue: &Queue| {
            let mut out = abi::emud_link::default();
            of_pairs(&mut out, queue);
            (out.pair_packets, out.pair_bytes)
        };
        assert_eq!(limits(&Queue::default()), (0, PAIR_BYTES));
        let figures = crate::profile::Rio {
            min: Length::Time(1),
            max: Length::Time(2),
            probability: 0.1,
            assured_min: Length::Time(3),
            assured_max: Length::Time(4),
            assured_probability: 0.1,
            assured: 1,
            weight: 1.0,
            ecn: false,
        };
        let rio = Queue {
            aqm: Some(Aqm::Rio(figures)),
            ..Queue::default()
        };
        assert_eq!(limits(&rio), (DEFAULT_QUEUE_PACKETS, 0));
    }

    #[test]
    fn a_managers_packets_are_framed() {
        let link = Link {
            overhead: 8,
            wire: Wire {
                cells: Some(Cells::Atm),
                ..Wire::default()
            },
            queue: Queue {
                aqm: Some(Aqm::Red(Red {
                    min: Length::Bytes(1_000),
                    max: Length::Time(9_000_000),
                    probability: 1.0,
                    weight: 1.0,
                    ecn: true,
                })),
                ..Queue::default()
            },
            ..Link::default()
        };
        let out = compiled(&link);
        let red = out.queueing.red;
        // 1008 bytes are 21 cells.
        assert_eq!(red.packet_ns, 21 * 53 * 1000);
        assert_eq!((red.min_ns, red.max_ns), (1_000_000, 9_000_000));
        assert_eq!((red.probability, red.weight), (1 << 32, 1 << 32));
        assert_eq!((out.queueing.ecn, out.queueing.mark_ns), (1, u64::MAX));
        assert_eq!(wire_bytes(&out, 1000.0), 21.0 * 53.0);
    }
}
