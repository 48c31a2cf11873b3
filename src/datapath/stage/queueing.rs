// SPDX-License-Identifier: MIT OR Apache-2.0
//! Framing, limits, marking and management of the queue: from the profile to
//! what the classifier runs, and back for `emud show`.

use crate::abi;
use crate::profile::{self, Aqm, DEFAULT_QUEUE_PACKETS, Length, PACKET_BYTES};
use schemars::JsonSchema;
use serde::Serialize;

/// tc-red(8)'s `avpkt`: the paper's "small packet", by which the average falls in idle times.
const RED_PACKET_BYTES: u32 = 1000;
/// RFC 8033's MEAN_PKTSIZE.
const PIE_PACKET_BYTES: u32 = 1024;

const Q32: f64 = 4_294_967_296.0;
/// The classifier shifts lengths of RED's queue by 20.
const RED_LENGTH_MAX_NS: u64 = (1 << 42) - 1;

/// Bytes in front of a pair's link where the profile does not say: as many full packets.
const PAIR_BYTES: u32 = DEFAULT_QUEUE_PACKETS * PACKET_BYTES;

/// The limits of a queue whose rate comes with the packet.
pub(crate) fn of_pairs(out: &mut abi::emud_link, queue: &profile::Queue) {
    let usual = if queue.is_limited() { 0 } else { PAIR_BYTES };
    // At most u32::MAX, where it is read.
    out.queue_bytes = queue.bytes.map_or(0, |bytes| bytes as u32);
    out.pair_packets = queue.packets.unwrap_or(0);
    out.pair_bytes = queue.bytes.map_or(usual, |bytes| bytes as u32);
    out.queue_wait_ns = queue.time_ns.unwrap_or(u64::MAX);
}

/// How long a packet may wait for its slot: until as many slots are full as the queue has packets
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
    let packets = queue.packets.or(usual).map(u64::from);
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
    match &link.queue.aqm {
        None => {}
        Some(Aqm::Red(wanted)) => {
            (q.aqm, ecn) = (abi::EMUD_AQM_RED, wanted.ecn);
            q.red = red(wanted, rate, wire_ns(RED_PACKET_BYTES));
        }
        Some(Aqm::CoDel(codel)) => {
            (q.aqm, ecn) = (abi::EMUD_AQM_CODEL, codel.ecn);
            q.codel = abi::emud_codel {
                target_ns: codel.target_ns,
                interval_ns: codel.interval_ns,
                packet_ns: wire_ns(PACKET_BYTES),
            };
        }
        Some(Aqm::Pie(pie)) => {
            (q.aqm, ecn) = (abi::EMUD_AQM_PIE, pie.ecn);
            q.pie = abi::emud_pie {
                target_ns: pie.target_ns,
                tupdate_ns: pie.tupdate_ns,
                alpha: pie_gain(pie.alpha),
                beta: pie_gain(pie.beta),
                packets_ns: 2 * wire_ns(PIE_PACKET_BYTES),
            };
        }
    }
    q.ecn = ecn.into();
    if !ecn && q.aqm == abi::EMUD_AQM_NONE && q.mpu == 0 && q.cell_size == 0 {
        out.flags |= abi::EMUD_F_PLAIN_QUEUE;
    }
}

fn limits(out: &mut abi::emud_link, queue: &profile::Queue, rate: u64) {
    out.queue_packets = queue.limit_packets();
    out.queue_busy_ns = queue.bytes.map_or(u64::MAX, |bytes| ns(bytes, rate));
}

/// So many bytes' time on the wire.
fn ns(bytes: u64, rate: u64) -> u64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

fn red(red: &profile::Red, rate: u64, packet_ns: u64) -> abi::emud_red {
    let length = |length| match length {
        Length::Bytes(bytes) => ns(bytes, rate).min(RED_LENGTH_MAX_NS),
        Length::Time(ns) => ns,
    };
    abi::emud_red {
        min_ns: length(red.min),
        max_ns: length(red.max),
        packet_ns: packet_ns.max(1),
        probability: (red.probability * Q32) as u64,
        weight: ((red.weight * Q32).round() as u64).max(1),
    }
}

fn pie_gain(per_s: f64) -> u64 {
    let shift = abi::EMUD_PIE_SHIFT + abi::EMUD_PIE_GAIN_SHIFT;
    (per_s / 1e9 * 2f64.powi(shift as i32)).round() as u64
}

/// What a frame of `len` bytes takes on a link's wire at most.
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

/// The limits in force, each in the unit it is judged in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// No rate, so nothing ever waits.
    None,
    #[serde(untagged)]
    Limits(Limits),
}

/// All of those present hold.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct Limits {
    /// Largest number of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 65536))]
    pub packets: Option<u32>,
    /// Largest number of bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub bytes: Option<u64>,
    /// Longest waiting time in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub time_ns: Option<u64>,
}

/// What the wire does beside its rate.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Wire {
    /// Bytes that pass at once after an idle time.
    pub burst_bytes: u64,
    /// Smallest size of a packet in bytes, including overhead.
    #[schemars(range(max = 4096))]
    pub mpu_bytes: u32,
    /// Cells into which packets are cut; null: none.
    pub cell: Option<Cell>,
}

/// How packets are cut up.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cell {
    /// Payload of a cell in bytes.
    #[schemars(range(min = 1, max = 65535))]
    pub size_bytes: u32,
    /// Bytes of a cell in addition to its payload.
    #[schemars(range(min = -65534, max = 255))]
    pub overhead_bytes: i32,
    /// The last cell is padded.
    pub padded: bool,
}

/// Who acts before the queue is full; gains and probabilities as the classifier has them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Manager {
    /// Random early detection.
    Red {
        /// Average backlog from which packets are dropped, as time on the wire in ns.
        min_ns: u64,
        /// Average backlog from which all packets are dropped, as time on the wire in ns.
        max_ns: u64,
        /// Drop probability just below `max_ns`.
        #[schemars(range(min = 0, max = 1))]
        probability: f64,
        /// Weight of the newest backlog in the average.
        #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
        weight: f64,
        /// Packets are marked instead of dropped.
        ecn: bool,
    },
    /// Controlled delay.
    Codel {
        /// Acceptable waiting time in ns.
        target_ns: u64,
        /// Time above the target before the first drop in ns.
        interval_ns: u64,
        /// Packets are marked instead of dropped.
        ecn: bool,
    },
    /// Proportional integral controller, enhanced.
    Pie {
        /// Waiting time that is aimed at in ns.
        target_ns: u64,
        /// Time between two updates of the drop probability in ns.
        tupdate_ns: u64,
        /// Change of the probability per second, for each second of delay above the target.
        #[schemars(range(min = 0))]
        alpha: f64,
        /// Change of the probability per second, for each second by which the delay has grown.
        #[schemars(range(min = 0))]
        beta: f64,
        /// Packets are marked instead of dropped.
        ecn: bool,
    },
}

/// Drops with room in the queue, by who decided them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AqmDropped {
    /// By RED.
    pub red: u64,
    /// By CoDel.
    pub codel: u64,
    /// By PIE.
    pub pie: u64,
}

impl AqmDropped {
    pub(crate) fn of(c: &abi::emud_counters) -> Self {
        let by = |aqm: abi::emud_aqm| c.aqm_dropped[aqm as usize];
        Self {
            red: by(abi::EMUD_AQM_RED),
            codel: by(abi::EMUD_AQM_CODEL),
            pie: by(abi::EMUD_AQM_PIE),
        }
    }

    /// By whomever.
    pub fn all(&self) -> u64 {
        self.red + self.codel + self.pie
    }
}

/// What a link's queue runs; `rate` in bit/s.
pub(crate) fn queue(link: &abi::emud_link, rate: Option<f64>) -> Queue {
    let Some(rate) = rate else { return Queue::None };
    let set = |limit: u64| (limit != u64::MAX).then_some(limit);
    Queue::Limits(Limits {
        packets: (link.queue_packets != 0).then_some(link.queue_packets),
        bytes: set(link.queue_busy_ns).map(|ns| bytes(ns, rate)),
        time_ns: set(link.queue_wait_ns),
    })
}

fn bytes(ns: u64, rate: f64) -> u64 {
    (ns as f64 * rate / 8e9).round() as u64
}

/// The wire of a link; `rate` in bit/s.
pub(crate) fn wire(link: &abi::emud_link, rate: Option<f64>) -> Wire {
    let q = &link.queueing;
    Wire {
        burst_bytes: rate.map_or(0, |rate| bytes(q.burst_ns, rate)),
        mpu_bytes: q.mpu,
        cell: (q.cell_size != 0).then_some(Cell {
            size_bytes: q.cell_size,
            overhead_bytes: q.cell_overhead,
            padded: q.cell_pad != 0,
        }),
    }
}

/// The threshold above which a link marks, if it has one.
pub(crate) fn ecn_above_ns(link: &abi::emud_link) -> Option<u64> {
    let q = &link.queueing;
    (q.ecn != 0 && q.aqm == abi::EMUD_AQM_NONE).then_some(q.mark_ns)
}

/// The manager of a link's queue, if it has one.
pub(crate) fn manager(link: &abi::emud_link) -> Option<Manager> {
    let q = &link.queueing;
    let ecn = q.ecn != 0;
    let gain = |fixed: u64| {
        let shift = abi::EMUD_PIE_SHIFT + abi::EMUD_PIE_GAIN_SHIFT;
        fixed as f64 * 1e9 / 2f64.powi(shift as i32)
    };
    match q.aqm {
        abi::EMUD_AQM_RED => Some(Manager::Red {
            min_ns: q.red.min_ns,
            max_ns: q.red.max_ns,
            probability: q.red.probability as f64 / Q32,
            weight: q.red.weight as f64 / Q32,
            ecn,
        }),
        abi::EMUD_AQM_CODEL => Some(Manager::Codel {
            target_ns: q.codel.target_ns,
            interval_ns: q.codel.interval_ns,
            ecn,
        }),
        abi::EMUD_AQM_PIE => Some(Manager::Pie {
            target_ns: q.pie.target_ns,
            tupdate_ns: q.pie.tupdate_ns,
            alpha: gain(q.pie.alpha),
            beta: gain(q.pie.beta),
            ecn,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Cells, Link, Queue as Asked, Red, Wire as AskedWire};

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
            queue: Asked {
                bytes: Some(5_000),
                ..Asked::default()
            },
            ..Link::default()
        });
        assert_eq!((bytes.queue_packets, bytes.queue_busy_ns), (0, 5_000_000));
    }

    #[test]
    fn a_managers_packets_are_framed() {
        let link = Link {
            overhead: 8,
            wire: AskedWire {
                cells: Some(Cells::Atm),
                ..AskedWire::default()
            },
            queue: Asked {
                aqm: Some(Aqm::Red(Red {
                    min: Length::Bytes(1_000),
                    max: Length::Time(9_000_000),
                    probability: 1.0,
                    weight: 1.0,
                    ecn: true,
                })),
                ..Asked::default()
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

    #[test]
    fn pies_gains_come_back() {
        for gain in [0.0, 0.125, 1.25, 10.0] {
            let back = pie_gain(gain) as f64 * 1e9 / 2f64.powi(54);
            assert!((back - gain).abs() <= 1e-6 * gain, "{back} for {gain}");
        }
    }
}
