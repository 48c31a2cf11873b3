// SPDX-License-Identifier: GPL-2.0-only
//! Traces, phases and slots, read back from the classifier's rows: where in them it is now.

use serde::Serialize;

use crate::abi;
use crate::link::datapath::{DatapathError, Maps};

/// A link that changes with time.
#[derive(Debug, Serialize)]
pub struct TimelineReport {
    /// `rates`, `figures` (no rate among them) or `opportunities`.
    pub kind: &'static str,
    pub rows: u32,
    /// The one in force, from 0; of opportunities the last one that has been.
    pub row: u32,
    /// Since the beginning of this round.
    pub at_s: f64,
    /// Rounds that are over.
    pub round: u64,
    /// Of a round; absent: the last row holds for ever.
    pub period_s: Option<f64>,
    /// Until the next row; absent: never.
    pub next_s: Option<f64>,
    /// bit/s, 0 in an outage; absent: no limit, or none of this row's own.
    pub rate_bit_s: Option<f64>,
}

/// Departures in slots.
#[derive(Debug, Serialize)]
pub struct SlotReport {
    pub min_ns: u64,
    pub max_ns: u64,
    /// Of a slot; absent: any.
    pub packets: Option<u32>,
    pub bytes: Option<u32>,
}

/// Where a direction's timeline is, if it has one.
///
/// # Errors
/// The map cannot be read.
pub(super) fn timeline(
    maps: &Maps,
    link: &abi::emud_link,
    now_ns: u64,
) -> Result<Option<TimelineReport>, DatapathError> {
    let t = &link.timeline;
    if t.count == 0 {
        return Ok(None);
    }
    // As the classifier: an epoch in the future is row 0.
    let since = now_ns.wrapping_sub(t.epoch_ns).cast_signed().max(0) as u64;
    let round = since.checked_div(t.period_ns).unwrap_or(0);
    let pos = since - round * t.period_ns;
    // The first row that is later.
    let (mut low, mut high) = (0, t.count);
    while low < high {
        let middle = low + (high - low) / 2;
        match maps.row(t.first + middle)?.at_ns <= pos {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    let row = low.saturating_sub(1);
    let next = match maps.row(t.first + low)?.at_ns {
        u64::MAX if t.period_ns > 0 => Some(t.period_ns),
        u64::MAX => None,
        ns => Some(ns),
    };
    let now = maps.row(t.first + row)?;
    let rate_bit_s = match (now.set & abi::EMUD_SET_RATE, now.rate_mult) {
        (0, _) | (_, 0) => None,
        (_, u64::MAX) => Some(0.0),
        (_, mult) => Some(8e9 * 2f64.powi(now.rate_shift as i32) / mult as f64),
    };
    Ok(Some(TimelineReport {
        kind: match t.kind {
            abi::EMUD_TIMELINE_OPPORTUNITIES => "opportunities",
            abi::EMUD_TIMELINE_RATES => "rates",
            _ => "figures",
        },
        rows: t.count,
        row,
        at_s: pos as f64 / 1e9,
        round,
        period_s: (t.period_ns > 0).then_some(t.period_ns as f64 / 1e9),
        next_s: next.map(|ns| ns.saturating_sub(pos) as f64 / 1e9),
        rate_bit_s,
    }))
}

/// The slots of a direction, if it has them.
pub(super) fn slot(link: &abi::emud_link) -> Option<SlotReport> {
    let t = &link.tdma;
    (t.span_ns > 0).then(|| SlotReport {
        min_ns: t.min_ns,
        max_ns: t.min_ns + t.span_ns - 1,
        packets: (t.packets > 0).then_some(t.packets),
        bytes: (t.bytes > 0).then_some(t.bytes),
    })
}
