// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of a timeline: figures that hold from a time on, and the bytes sent until then.

use crate::abi;
use crate::abi::mix;
use crate::datapath::stage::fixed::probability;
use crate::datapath::stage::rate::ns_per_byte;
use crate::profile::{TraceRow, UNLIMITED_BYTES, longest_queue};

/// bit/s times ns of a byte.
pub(super) const BYTE: u128 = 8_000_000_000;
/// EMUD_STOPPED, for which bindgen has no type of 64 bits.
pub(super) const STOPPED: u64 = u64::MAX;
const JITTER_ONE: f64 = (1u32 << abi::EMUD_JITTER_SHIFT) as f64;

/// A row before bytes are reckoned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) at_ns: u64,
    pub(super) rate: Rate,
    pub(super) row: abi::emud_row,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rate {
    /// The rate of the link.
    Own,
    Unlimited,
    /// 0: nothing moves.
    Bits(u64),
}

impl Step {
    pub(super) fn new(at_ns: u64, rate: Rate) -> Self {
        let row = abi::emud_row {
            number: abi::EMUD_SAME_LINK,
            ..Default::default()
        };
        Self { at_ns, rate, row }
    }

    pub(super) fn of_trace(
        row: &TraceRow,
        max_jitter_ns: Option<u64>,
        own_mean_ns: Option<u64>,
    ) -> Self {
        let mut step = Self::new(row.at_ns, row.rate.map_or(Rate::Own, Rate::Bits));
        if let Some(ns) = row.delay_ns.or(own_mean_ns) {
            step.row.set |= abi::EMUD_SET_DELAY;
            step.row.delay_ns = ns;
        }
        if let (Some(ns), Some(max)) = (row.jitter_ns, max_jitter_ns) {
            step.row.set |= abi::EMUD_SET_JITTER;
            step.row.jitter = (ns as f64 / max.max(1) as f64 * JITTER_ONE).round() as u32;
        }
        if let Some(loss) = row.loss {
            step.row.set |= abi::EMUD_SET_LOSS;
            step.row.loss = probability(loss);
        }
        step
    }
}

/// Rows as the map has them, but for where they are in it.
pub(super) struct Built {
    pub(super) timeline: abi::emud_timeline,
    pub(super) rows: Vec<abi::emud_row>,
}

/// Builds the rows of a timeline. `queue_bytes`: the largest backlog that is compared with a limit; 0: none is.
pub(super) fn assemble(
    steps: &[Step],
    period_ns: u64,
    opportunities: bool,
    queue_bytes: u64,
) -> Built {
    // In bit/s times ns: exact.
    let mut carried = 0u128;
    let mut before = Vec::with_capacity(steps.len() + 1);
    for (i, step) in steps.iter().enumerate() {
        before.push(carried);
        let end = steps.get(i + 1).map_or(period_ns, |next| next.at_ns);
        carried += match step.rate {
            Rate::Own => 0,
            Rate::Unlimited => u128::from(UNLIMITED_BYTES) * BYTE,
            Rate::Bits(bits) => u128::from(end.saturating_sub(step.at_ns)) * u128::from(bits),
        };
    }
    let max_rate = steps.iter().map(|step| match step.rate {
        Rate::Bits(bits) => bits,
        _ => 0,
    });
    let frac = fraction_bits(carried / BYTE, max_rate.max().unwrap_or(0), queue_bytes);
    let bytes = |carried: u128| ((carried << frac) / BYTE) as u64;
    let mut rows: Vec<_> = (steps.iter().zip(&before))
        .map(|(step, before)| finished(step, bytes(*before), frac))
        .collect();
    rows.push(abi::emud_row {
        at_ns: match (opportunities, period_ns) {
            (false, ns) if ns > 0 => ns,
            _ => u64::MAX,
        },
        sent: if period_ns > 0 {
            bytes(carried)
        } else {
            u64::MAX
        },
        ..Default::default()
    });
    let kind = match (opportunities, steps.first().map(|s| s.rate)) {
        (true, _) => abi::EMUD_TIMELINE_OPPORTUNITIES,
        (false, None | Some(Rate::Own)) => abi::EMUD_TIMELINE_FIGURES,
        (false, Some(_)) => abi::EMUD_TIMELINE_RATES,
    };
    Built {
        timeline: abi::emud_timeline {
            period_ns,
            sent: bytes(carried),
            count: steps.len() as u32,
            kind,
            frac,
            ..Default::default()
        },
        rows,
    }
}

/// As many as the classifier's 64 bits have room for: the bytes of the rows, and a backlog of any
/// number of periods up to its limit and a packet.
fn fraction_bits(bytes: u128, max_rate: u64, queue_bytes: u64) -> u32 {
    let fits = |frac: u32| {
        (bytes + 1) << frac < 1 << 62
            && queue_bytes <= longest_queue(frac)
            && (u128::from(max_rate) << (frac + abi::EMUD_BYTE_RATE_SHIFT)) / BYTE < 1 << 63
    };
    (1..=abi::EMUD_FRAC_MAX)
        .rev()
        .find(|frac| fits(*frac))
        .unwrap_or(1)
}

fn finished(step: &Step, sent: u64, frac: u32) -> abi::emud_row {
    let mut row = abi::emud_row {
        at_ns: step.at_ns,
        sent,
        ..step.row
    };
    match step.rate {
        Rate::Own => return row,
        Rate::Unlimited => {}
        Rate::Bits(0) => row.rate_mult = STOPPED,
        Rate::Bits(bits) => {
            (row.rate_mult, row.rate_shift) = ns_per_byte(bits);
            let shift = frac + abi::EMUD_BYTE_RATE_SHIFT;
            row.byte_rate = ((u128::from(bits) << shift) / BYTE) as u64;
        }
    }
    row.set |= abi::EMUD_SET_RATE;
    row
}

pub(super) fn content(rows: &[abi::emud_row]) -> u64 {
    let words = |row: &abi::emud_row| {
        let small = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        [
            row.at_ns,
            row.rate_mult,
            row.sent,
            // Its fraction bits differ also where `sent` is 0 in all rows.
            row.byte_rate,
            row.delay_ns,
            row.loss,
            small(row.rate_shift, row.jitter),
            small(row.set, row.number),
        ]
    };
    rows.iter()
        .flat_map(words)
        .fold(1, |hash, word| mix(hash ^ word).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of a second at 20 Mbit/s: without the limit in sight, a backlog of 16 MiB would wrap.
    #[test]
    fn a_backlog_of_many_periods_fits() {
        let bits = |queue_bytes| fraction_bits(2_500_000, 20_000_000, queue_bytes);
        assert_eq!(bits(0), abi::EMUD_FRAC_MAX);
        for queue_bytes in [20_000_000u64, u64::from(u32::MAX)] {
            assert!(u128::from(queue_bytes) << bits(queue_bytes) < 1 << 63);
        }
    }
}
