// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a link follows from its trace as a whole.

use super::quantile::largest_sd_ns;
use super::{Delay, Jitter, Link, Summary, Trace, TraceRow, TraceSource};
use crate::abi;

const OPPORTUNITY: u64 = abi::EMUD_OPPORTUNITY as u64;
/// Capacity of a row without a limit, bytes: more than any packet has.
pub(crate) const UNLIMITED_BYTES: u64 = 1 << 22;

/// Returns all of the summary but what it takes the rows for.
pub(crate) fn figures(trace: &Trace) -> Summary {
    match &trace.source {
        TraceSource::InForce(summary) => *summary,
        TraceSource::Rows { rows, period_ns } => {
            let max = |f: fn(&TraceRow) -> Option<u64>| rows.iter().filter_map(f).max();
            let ends = rows.iter().skip(1).map(|row| row.at_ns);
            let carried: u128 = (rows.iter().zip(ends.chain([*period_ns])))
                .map(|(row, end)| {
                    u128::from(end.saturating_sub(row.at_ns)) * u128::from(row.rate.unwrap_or(0))
                })
                .sum();
            let mean = carried / u128::from((*period_ns).max(1));
            let has_rate = rows.iter().any(|row| row.rate.is_some());
            let mean_rate = if has_rate { (mean as u64).max(1) } else { 0 };
            let last = rows.last().and_then(|row| row.rate);
            Summary {
                rows: rows.len() as u32,
                mean_rate,
                max_rate: max(|row| row.rate).unwrap_or(0),
                max_delay_ns: max(|row| row.delay_ns),
                max_jitter_ns: max(|row| row.jitter_ns),
                period_ns: *period_ns,
                long_rate: if trace.repeat {
                    mean_rate
                } else {
                    last.unwrap_or(0)
                },
                ..Summary::default()
            }
        }
        TraceSource::Mahimahi(ms) => {
            let period_ms = ms.last().copied().unwrap_or(1).max(1);
            let bits = |n: u64| n * OPPORTUNITY * 8 * 1000;
            let most = ms.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
            let mean_rate = (bits(ms.len() as u64) / u64::from(period_ms)).max(1);
            Summary {
                rows: ms.len() as u32,
                mahimahi: true,
                mean_rate,
                max_rate: bits(most.unwrap_or(1) as u64),
                period_ns: u64::from(period_ms) * 1_000_000,
                long_rate: if trace.repeat { mean_rate } else { 0 },
                ..Summary::default()
            }
        }
    }
}

/// Returns the longest queue, in bytes, that rows with `frac` fraction bits count: its backlog and a packet
/// are a difference of 64 bits (`emud_backlog()`).
pub(crate) fn longest_queue(frac: u32) -> u64 {
    ((1u64 << 63) >> frac).saturating_sub(UNLIMITED_BYTES + 1)
}

/// Returns the delay whose table serves all rows: as the link's, with the widest of their jitters.
pub(crate) fn delay(link: &Link) -> Delay {
    let Some(summary) = link.trace.as_ref().map(figures) else {
        return link.delay.clone();
    };
    let mut delay = link.delay.clone();
    if let Some(max) = summary.max_delay_ns {
        delay.mean_ns = delay.mean_ns.max(max);
    }
    if let Some(jitter_ns) = summary.max_jitter_ns.filter(|ns| *ns > 0) {
        let jitter = delay.jitter.get_or_insert_with(Jitter::default);
        jitter.sd_ns = jitter.distribution.sd_of(jitter_ns as f64);
        // The rows give the mean of this jitter.
        while largest_sd_ns(jitter.distribution.clone(), delay.mean_ns) < jitter.sd_ns {
            delay.mean_ns = delay.mean_ns.max(1) * 2;
        }
    }
    delay
}

/// Returns the link's own mean, where rows of jitter without delay have to say it: the table is about
/// another one, since their jitter is wider than it could be about this.
pub fn own_mean(link: &Link) -> Option<u64> {
    let alone = |s: &Summary| s.max_jitter_ns.is_some() && s.max_delay_ns.is_none();
    link.trace.as_ref().map(figures).filter(alone)?;
    let own_ns = link.delay.mean_ns;
    (delay(link).mean_ns != own_ns).then_some(own_ns)
}

/// Returns the rate for what is reckoned in time although it is bytes: the link's own, else the mean.
pub(crate) fn rate(link: &Link) -> Option<u64> {
    let trace = link.trace.as_ref().filter(|trace| trace.has_rate());
    link.rate.or_else(|| trace.map(|t| figures(t).mean_rate))
}
