// SPDX-License-Identifier: MIT OR Apache-2.0
//! A direction of a profile, in the user's units, to what the classifier runs.

use super::{loss, queueing, timeline};
use crate::abi::{self, mix};
use crate::profile::{self, Neighbours, Reorder, Reordering, Shape, quantile};

/// The in-order jitter's coherence time by default, over the span of delays
/// between -3 and +3 standard deviations: 4 standard deviations for a normal
/// one. At this the delay falls faster than time passes in 1 to 3 % of all
/// instants, and the clamp moves the distribution by 0.001 to 0.003
/// (Kolmogorov-Smirnov); half of it gives 0.02 to 0.04, twice of it converges
/// half as fast.
const COHERENCE_OVER_SPAN: f64 = 0.66;

/// The classifier divides a time below one coherence time, shifted by 20.
const COHERENCE_MAX_NS: u64 = 1 << 42;

/// Where the classifier sends the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// `EMUD_RELEASE_*`.
    pub release: abi::emud_release,
    /// The ifb or TAP to redirect to; 0 where there is none.
    pub ifindex: u32,
    /// The device has no Ethernet header.
    pub l3: bool,
}

/// A direction as the maps hold it.
pub struct Compiled {
    pub link: abi::emud_link,
    pub table: Box<abi::emud_table>,
    /// Of a recorded loss pattern.
    pub pattern: Option<Box<abi::emud_pattern>>,
    /// Of a trace, or of phases.
    pub timeline: Option<timeline::Rows>,
}

/// Compiles one direction (`EMUD_UP` or `EMUD_DOWN`).
///
/// `epoch_ns` (CLOCK_MONOTONIC) is the origin of the in-order jitter.
///
/// # Errors
/// The delay's mean and standard deviation cannot both be had with delays >= 0.
pub fn compile(
    link: &profile::Link,
    seed: u64,
    direction: u32,
    epoch_ns: u64,
    place: Place,
) -> Result<Compiled, quantile::SpreadError> {
    let delay = profile::delay_with_trace(link);
    let mut out = abi::emud_link {
        seed: mix(seed ^ mix(u64::from(direction) + 1)),
        delay_ns: delay.mean_ns,
        epoch_ns,
        overhead: link.overhead,
        release: place.release,
        ifindex: place.ifindex,
        queue_wait_ns: u64::MAX,
        queue_busy_ns: u64::MAX,
        queue_bytes: link.queue.bytes.map_or(0, |bytes| bytes as u32),
        ..Default::default()
    };
    out.flags |= if place.l3 { abi::EMUD_F_L3 } else { 0 };
    out.flags |= if link.neighbours == Neighbours::Emulate {
        abi::EMUD_F_NEIGHBOURS
    } else {
        0
    };
    out.flags |= if place.release == abi::EMUD_RELEASE_STAMP {
        abi::EMUD_F_CLONE
    } else {
        0
    };
    if let Some(rate) = profile::rate_with_trace(link) {
        (out.rate_mult, out.rate_shift) = ns_per_byte(rate);
        queueing::compile(&mut out, link, rate);
    }
    queueing::of_pairs(&mut out, &link.queue);
    let pattern = loss::compile(&mut out, link);
    let mut table = Box::<abi::emud_table>::default();
    if let Some(jitter) = &delay.jitter {
        table
            .delay_ns
            .copy_from_slice(&quantile::delay_table(&delay)?);
        out.flags |= abi::EMUD_F_JITTER;
        if jitter.reorder == Reorder::Jitter {
            out.flags |= abi::EMUD_F_PER_PACKET;
            correlation(&mut out, &table, jitter.correlation);
        }
        out.coherence_ns = jitter
            .coherence_ns
            .unwrap_or_else(|| match jitter.distribution {
                Shape::Named(_) => default_coherence_ns(&table.delay_ns),
                _ => quantile::coherence_ns(&table.delay_ns) as u64,
            })
            .clamp(1, COHERENCE_MAX_NS);
    }
    if let Some(share) = link.delay.share {
        out.share = probability(share);
        out.flags |= abi::EMUD_F_SHARE;
    }
    if let Some(reordering) = &link.reorder {
        reorder(&mut out, reordering);
    }
    if let Some(slot) = &link.slot {
        out.tdma = tdma(slot, &link.queue);
    }
    let timeline = timeline::compile(&mut out, link, epoch_ns);
    let mut compiled = Compiled {
        link: out,
        table,
        pattern,
        timeline,
    };
    compiled.link.fq_shift = fq_shift(compiled.longest_delay_ns());
    Ok(compiled)
}

/// The row of the table at the normal value 4.75, above which is 1.0e-6 of the distribution.
const MILLIONTH: usize =
    (abi::EMUD_TABLE_STEPS as usize / 2) + 19 * (abi::EMUD_TABLE_STEPS as usize / 64);

impl Compiled {
    /// The longest delay of a packet, without what it waits before.
    pub fn longest_delay_ns(&self) -> u64 {
        self.delay_at(self.table.delay_ns.len() - 1)
    }

    /// The delay that one packet of a million exceeds: a Pareto distribution has longer ones by
    /// orders of magnitude, for which nobody wants memory.
    pub fn millionth_delay_ns(&self) -> u64 {
        self.delay_at(MILLIONTH)
    }

    /// By the number of a row of the table.
    fn delay_at(&self, row: usize) -> u64 {
        let jitter = self.link.flags & abi::EMUD_F_JITTER != 0;
        let table_end = self.table.delay_ns[row];
        let by_row = self
            .timeline
            .as_ref()
            .map_or(0, |rows| rows.longest_delay_ns);
        let own = if jitter {
            table_end
        } else {
            self.link.delay_ns
        };
        // A row moves the whole table.
        own.saturating_add(by_row)
    }
}

/// Delays up to this one are as many flows of fq as it tells apart, at most.
fn fq_shift(longest_ns: u64) -> u32 {
    let flows = u64::from(abi::EMUD_FQ_OTHERS);
    (abi::EMUD_FQ_SHIFT_MIN..63)
        .find(|shift| longest_ns >> shift < flows)
        .unwrap_or(63)
}

/// The seed of a link: two of a profile decide independently.
pub fn of_number(seed: u64, number: u64) -> u64 {
    seed ^ mix(number)
}

/// A probability as the bound of a random u64 (`as` saturates: 1.0 is 2^64 - 1).
pub(crate) fn probability(p: f64) -> u64 {
    (p * 2f64.powi(64)) as u64
}

/// ns per byte as `mult / 2^shift`, as fine as a train of 1 MiB allows in 64 bits.
pub(crate) fn ns_per_byte(rate: u64) -> (u64, u32) {
    const MULT_MAX: u128 = 1 << 42;
    let ns = 8_000_000_000u128;
    let rate = u128::from(rate.max(1));
    // A million rows have a rate each: so close to the answer the search begins.
    let near = (rate.ilog2() + 12).min(60);
    let shift = (near.saturating_sub(4)..=near)
        .rev()
        .find(|s| (ns << s) / rate < MULT_MAX)
        .unwrap_or(0);
    ((((ns << shift) + rate / 2) / rate) as u64, shift)
}

/// What the classifier multiplies with, so that delays are correlated by `of_delays`.
fn correlation(out: &mut abi::emud_link, table: &abi::emud_table, of_delays: f64) {
    const ONE: f64 = (1u32 << 30) as f64;
    if of_delays <= 0.0 {
        return;
    }
    let r = quantile::normal_correlation(&table.delay_ns, of_delays);
    out.correlation = ((r * ONE) as u32).min((1 << 30) - 1);
    // Of the rounded one: together they keep a variance of 1.
    let r = f64::from(out.correlation) / ONE;
    out.innovation = ((1.0 - r * r).sqrt() * ONE).round() as u32;
    out.flags |= abi::EMUD_F_CORRELATED;
}

fn tdma(slot: &profile::Slot, queue: &profile::Queue) -> abi::emud_tdma {
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
        wait_ns: queueing::slot_wait_ns(slot, queue),
        packets,
        bytes,
    }
}

fn reorder(out: &mut abi::emud_link, reordering: &Reordering) {
    out.reorder = probability(reordering.probability);
    out.reorder_repeat = probability(reordering.correlation);
    out.reorder_gap = u64::from(reordering.gap);
    out.flags |= abi::EMUD_F_REORDER;
}

/// From the spread of the table between -3 and +3 standard deviations.
fn default_coherence_ns(delay_ns: &[u64; abi::EMUD_TABLE_LEN as usize]) -> u64 {
    const PER_SD: usize = (abi::EMUD_TABLE_STEPS / 16) as usize;
    let span = delay_ns[11 * PER_SD].saturating_sub(delay_ns[5 * PER_SD]);
    (span as f64 * COHERENCE_OVER_SPAN) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_exact_to_a_part_in_a_million_million() {
        for rate in [
            1,
            9_600,
            384_000,
            1_500_000,
            10_000_000_000,
            999_999_999_999,
        ] {
            let (mult, shift) = ns_per_byte(rate);
            let got = mult as f64 / 2f64.powi(shift as i32);
            let want = 8e9 / rate as f64;
            assert!((got / want - 1.0).abs() < 1e-12, "{rate}: {got} for {want}");
            assert!(
                u128::from(mult) << 20 < 1 << 63,
                "{rate}: overflows with 1 MiB"
            );
        }
    }

    #[test]
    fn a_probability_covers_the_whole_range() {
        assert_eq!(probability(0.0), 0);
        assert_eq!(probability(0.5), 1 << 63);
        assert_eq!(probability(1.0), u64::MAX);
    }

    #[test]
    fn one_packet_of_a_million_takes_longer() {
        let profile = profile::Profile::parse(
            "[link]\ndelay = { mean = \"100ms\", sd = \"10ms\", distribution = \"normal\" }",
            "test",
        );
        let place = Place {
            release: abi::EMUD_RELEASE_STAMP,
            ifindex: 0,
            l3: false,
        };
        let link = profile.expect("a profile").up;
        let compiled = compile(&link, 1, abi::EMUD_UP, 0, place).expect("a link");
        // Phi^-1(1 - 1.017e-6) = 4.75
        assert!(compiled.millionth_delay_ns().abs_diff(147_500_000) < 10_000);
        assert!(compiled.longest_delay_ns() > 170_000_000);
    }
}
