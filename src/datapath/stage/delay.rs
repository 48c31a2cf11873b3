// SPDX-License-Identifier: MIT OR Apache-2.0
//! `delay` and `reorder`: from the profile to the figures of bpf/delay.h, and back.

use super::fixed::{of_probability, probability};
use crate::abi;
use crate::profile::quantile::{
    SpreadError, coherence_ns, delay_table, normal_correlation, table_moments,
};
use crate::profile::{Delay, Jitter, Reorder, Reordering, Shape};

/// The in-order jitter's coherence time by default, over the span of delays
/// between -3 and +3 standard deviations: 4 standard deviations for a normal
/// one. At this the delay falls faster than time passes in 1 to 3 % of all
/// instants, and the clamp moves the distribution by 0.001 to 0.003
/// (Kolmogorov-Smirnov); half of it gives 0.02 to 0.04, twice of it converges
/// half as fast.
const COHERENCE_OVER_SPAN: f64 = 0.66;

/// The classifier divides a time below one coherence time, shifted by 20.
const COHERENCE_MAX_NS: u64 = 1 << 42;

/// Fills in how long packets take; the table of a delay that varies.
///
/// # Errors
/// The delay's mean and standard deviation cannot both be had with delays >= 0.
pub(crate) fn encode(
    out: &mut abi::emud_link,
    delay: &Delay,
) -> Result<Box<abi::emud_table>, SpreadError> {
    out.delay_ns = delay.mean_ns;
    if let Some(share) = delay.share {
        out.share = probability(share);
        out.flags |= abi::EMUD_F_SHARE;
    }
    let mut table = Box::<abi::emud_table>::default();
    let Some(jitter) = &delay.jitter else {
        return Ok(table);
    };
    table.delay_ns.copy_from_slice(&delay_table(delay)?);
    out.flags |= abi::EMUD_F_JITTER;
    if jitter.reorder == Reorder::Jitter {
        out.flags |= abi::EMUD_F_PER_PACKET;
        correlation(out, &table, jitter.correlation);
    }
    out.coherence_ns = jitter
        .coherence_ns
        .unwrap_or_else(|| match jitter.distribution {
            Shape::Named(_) => default_coherence_ns(&table.delay_ns),
            _ => coherence_ns(&table.delay_ns) as u64,
        })
        .clamp(1, COHERENCE_MAX_NS);
    Ok(table)
}

/// Returns how long packets take, by the delays in force, absent for a constant one. Of `wanted` is what no
/// figure has: the distribution that the table is made of, and what was done to it.
pub(crate) fn decode(
    link: &abi::emud_link,
    mean_ns: u64,
    delays: Option<&[u64]>,
    wanted: Option<&Delay>,
) -> Delay {
    let constant = Delay {
        mean_ns,
        share: (link.flags & abi::EMUD_F_SHARE != 0).then(|| of_probability(link.share)),
        max_ns: wanted.and_then(|wanted| wanted.max_ns),
        jitter: None,
    };
    let Some(delays) = delays else {
        return constant;
    };
    let (mean_ns, sd_ns) = table_moments(delays);
    let per_packet = link.flags & abi::EMUD_F_PER_PACKET != 0;
    let wanted = wanted.and_then(|wanted| wanted.jitter.clone());
    let jitter = Jitter {
        sd_ns,
        reorder: match per_packet {
            true => Reorder::Jitter,
            false => Reorder::Never,
        },
        coherence_ns: (!per_packet).then_some(link.coherence_ns),
        ..wanted.unwrap_or_default()
    };
    Delay {
        mean_ns: mean_ns.round() as u64,
        jitter: Some(jitter),
        ..constant
    }
}

/// Fills in what is sent without delay.
pub(crate) fn encode_reorder(out: &mut abi::emud_link, reordering: &Reordering) {
    out.reorder = probability(reordering.probability);
    out.reorder_repeat = probability(reordering.correlation);
    out.reorder_gap = u64::from(reordering.gap);
    out.flags |= abi::EMUD_F_REORDER;
}

/// Returns the share of packets sent without delay; `None`: none.
pub(crate) fn decode_reorder(link: &abi::emud_link) -> Option<Reordering> {
    (link.flags & abi::EMUD_F_REORDER != 0).then(|| Reordering {
        probability: of_probability(link.reorder),
        correlation: of_probability(link.reorder_repeat),
        gap: link.reorder_gap as u32,
    })
}

/// Writes the factors by which the classifier correlates delays, so that their correlation is `of_delays`.
fn correlation(out: &mut abi::emud_link, table: &abi::emud_table, of_delays: f64) {
    const ONE: f64 = (1u32 << 30) as f64;
    if of_delays <= 0.0 {
        return;
    }
    let r = normal_correlation(&table.delay_ns, of_delays);
    out.correlation = ((r * ONE) as u32).min((1 << 30) - 1);
    // Of the rounded one: together they keep a variance of 1.
    let r = f64::from(out.correlation) / ONE;
    out.innovation = ((1.0 - r * r).sqrt() * ONE).round() as u32;
    out.flags |= abi::EMUD_F_CORRELATED;
}

/// Returns the default coherence time in ns, from the spread of the table between -3 and +3 standard deviations.
fn default_coherence_ns(delay_ns: &[u64; abi::EMUD_TABLE_LEN as usize]) -> u64 {
    const PER_SD: usize = (abi::EMUD_TABLE_STEPS / 16) as usize;
    let span = delay_ns[11 * PER_SD].saturating_sub(delay_ns[5 * PER_SD]);
    (span as f64 * COHERENCE_OVER_SPAN) as u64
}
