// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of netem that import and export share (net/sched/sch_netem.c, iproute2's tables).

use crate::profile::{Distribution, PACKET_BYTES};

/// netem's default limit, and emud's default queue, in packets.
pub(crate) const USUAL_LIMIT: u32 = 1000;
/// A limit without practical effect: far beyond the memory of a machine.
pub(crate) const NO_LIMIT: u32 = 1_000_000;
/// The longest queue of emud, in packets: as many departures as the classifier remembers.
pub(crate) const MOST_QUEUED: u32 = crate::abi::EMUD_RING_LEN;
/// The kernel's sigma is a signed 32-bit number of ns.
pub(crate) const MOST_JITTER_NS: u64 = i32::MAX as u64;

/// Returns the number of packets of 1514 bytes in flight at this rate for this time. netem's limit
/// includes them in addition to waiting packets.
pub(crate) fn on_their_way(rate_bits: u64, delay_ns: u64) -> u64 {
    let bit_ns = u128::from(rate_bits) * u128::from(delay_ns);
    let packets = bit_ns.div_ceil(8 * 1_000_000_000 * u128::from(PACKET_BYTES));
    packets.try_into().unwrap_or(u64::MAX)
}

/// How a table of iproute2 differs from its distribution, in jitters.
pub(crate) struct TableFacts {
    /// Distance of its lowest value below the mean.
    pub lowest: f64,
    pub sd: f64,
    /// Distance of its mean below zero.
    pub mean: f64,
}

pub(crate) fn table_facts(distribution: Distribution) -> TableFacts {
    let (lowest, sd, mean) = match distribution {
        Distribution::Uniform => (1.0, 1.0, 0.0),
        Distribution::Normal => (4.0, 1.0, 0.0),
        Distribution::Pareto => (0.667, 0.82, 0.033),
        Distribution::ParetoNormal => (1.502, 0.834, 0.025),
    };
    TableFacts { lowest, sd, mean }
}
