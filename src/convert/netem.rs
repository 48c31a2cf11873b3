// SPDX-License-Identifier: MIT OR Apache-2.0
//! What import and export both know of netem (net/sched/sch_netem.c, iproute2's tables).

use crate::profile::{Distribution, PACKET_BYTES};

/// netem's limit where none is given, and emud's queue, in packets.
pub(crate) const USUAL_LIMIT: u32 = 1000;
/// A limit as good as none, and far from what a machine has memory for.
pub(crate) const NO_LIMIT: u32 = 1_000_000;
/// The longest queue that emud has, in packets.
pub(crate) const MOST_QUEUED: u32 = 65536;
/// The kernel's sigma is a signed 32-bit number of ns.
pub(crate) const MOST_JITTER_NS: u64 = i32::MAX as u64;

/// Packets of 1514 bytes that are under way at this rate for so long. netem's limit counts them
/// beside those that wait.
pub(crate) fn on_their_way(rate_bits: u64, delay_ns: u64) -> u64 {
    let bit_ns = u128::from(rate_bits) * u128::from(delay_ns);
    let packets = bit_ns.div_ceil(8 * 1_000_000_000 * u128::from(PACKET_BYTES));
    packets.try_into().unwrap_or(u64::MAX)
}

/// How a table of iproute2 differs from its distribution, in jitters.
pub(crate) struct TableFacts {
    /// Its lowest value is so far below the mean.
    pub lowest: f64,
    pub sd: f64,
    /// Its mean is lower by that.
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
