// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces, phases and slots, read back from the classifier's rows: where in them it is now.

use schemars::JsonSchema;
use serde::Serialize;

use crate::abi;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::stage::rate::bit_s;
use crate::profile::Profile;

/// A link that changes with time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TimelineReport {
    /// Rows with rates, rows with other figures only, or opportunities of 1500 bytes.
    #[schemars(extend("enum" = ["rates", "figures", "opportunities"]))]
    pub kind: &'static str,
    /// Number of rows.
    #[schemars(range(min = 1))]
    pub rows: u32,
    /// Row in force, from 0; of opportunities the last one that has been.
    pub row: u32,
    /// Time since the beginning of this round in s.
    #[schemars(range(min = 0))]
    pub at_s: f64,
    /// Number of complete rounds.
    pub round: u64,
    /// Length of a round in s; null: the last row applies for ever.
    #[schemars(range(min = 0))]
    pub period_s: Option<f64>,
    /// Time until the next row in s; null: there is none.
    #[schemars(range(min = 0))]
    pub next_s: Option<f64>,
    /// Rate of this row in bit/s, 0 in an outage; null: no limit, or the row has no rate.
    #[schemars(range(min = 0))]
    pub rate_bit_s: Option<f64>,
    /// Phase in force; null: a trace.
    pub phase: Option<PhaseReport>,
    /// Bytes that a trace could have sent since its start, for differences; `None`: no trace, or one
    /// without a limit.
    #[serde(skip)]
    pub offered: Option<Offered>,
}

/// Bytes that a trace could have sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offered {
    /// Identity of the rows and their start.
    pub id: u64,
    /// Bytes since that start.
    pub bytes: f64,
}

impl Offered {
    /// Returns the bytes since an earlier time; `None` after a change or a restart of the trace, which counts from 0.
    pub fn since(self, before: Self) -> Option<f64> {
        (self.id == before.id).then_some(self.bytes - before.bytes)
    }
}

/// The phase in force.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseReport {
    /// Number of the phase, from 1.
    #[schemars(range(min = 1))]
    pub number: u32,
    /// Number of phases.
    #[schemars(range(min = 1))]
    pub of: u32,
    /// Name of the phase, or else of its link; null: none.
    #[schemars(length(min = 1))]
    pub name: Option<String>,
}

/// Where a link's timeline is.
pub(crate) struct Moment {
    /// The one in force.
    pub row: abi::emud_row,
    pub report: TimelineReport,
}

impl Moment {
    /// Returns the bytes that a rate sends from an earlier moment to this one, which at the rate of that moment are
    /// `constant`. `None`: this is not known.
    pub(crate) fn sent_since(&self, before: &Self, constant: f64) -> Option<f64> {
        let (now, then) = (&self.report, &before.report);
        match (then.kind, now.offered, then.offered) {
            ("rates", Some(now), Some(then)) => now.since(then),
            ("figures", ..) => {
                let same = (now.row, now.round) == (then.row, then.round);
                let of_link = [self.row.number, before.row.number] == [abi::EMUD_SAME_LINK; 2];
                (same || of_link).then_some(constant)
            }
            _ => None,
        }
    }
}

/// Returns where a direction's timeline is, if it has one.
///
/// # Errors
/// The map cannot be read.
pub(crate) fn moment(
    maps: &Maps,
    link: &abi::emud_link,
    profile: Option<&Profile>,
    now_ns: u64,
) -> Result<Option<Moment>, DatapathError> {
    let t = &link.timeline;
    if t.count == 0 {
        return Ok(None);
    }
    // As the classifier: an epoch in the future is row 0.
    let since = now_ns.wrapping_sub(t.epoch_ns).cast_signed().max(0) as u64;
    let round = since.checked_div(t.period_ns).unwrap_or(0);
    let pos = since - round * t.period_ns;
    let later = later_row(maps, t, pos)?;
    let number = later.saturating_sub(1);
    let next = match maps.row(t.first + later)?.at_ns {
        u64::MAX if t.period_ns > 0 => Some(t.period_ns),
        u64::MAX => None,
        ns => Some(ns),
    };
    let row = maps.row(t.first + number)?;
    let report = TimelineReport {
        kind: match t.kind {
            abi::EMUD_TIMELINE_OPPORTUNITIES => "opportunities",
            abi::EMUD_TIMELINE_RATES => "rates",
            _ => "figures",
        },
        rows: t.count,
        row: number,
        at_s: pos as f64 / 1e9,
        round,
        period_s: (t.period_ns > 0).then_some(t.period_ns as f64 / 1e9),
        next_s: next.map(|ns| ns.saturating_sub(pos) as f64 / 1e9),
        rate_bit_s: match row.set & abi::EMUD_SET_RATE {
            0 => None,
            _ => rate_bit_s(row.rate_mult, row.rate_shift),
        },
        phase: phase(&row, profile),
        offered: offered(t, &row, [pos, round], later).map(|bytes| Offered { id: t.id, bytes }),
    };
    Ok(Some(Moment { row, report }))
}

/// Returns the bytes that a trace could have sent until `pos` ns of a round, with those of earlier
/// rounds.
fn offered(
    t: &abi::emud_timeline,
    row: &abi::emud_row,
    [pos, round]: [u64; 2],
    later: u32,
) -> Option<f64> {
    // The kernel's figures have a fraction.
    let bytes = |sent: u64| sent as f64 / (1u64 << t.frac) as f64;
    match t.kind {
        abi::EMUD_TIMELINE_OPPORTUNITIES => {
            let past = round as f64 * f64::from(t.count) + f64::from(later);
            Some(past * f64::from(abi::EMUD_OPPORTUNITY))
        }
        abi::EMUD_TIMELINE_RATES => {
            let rate = rate_bit_s(row.rate_mult, row.rate_shift)?;
            let of_row = rate / 8e9 * pos.saturating_sub(row.at_ns) as f64;
            Some(round as f64 * bytes(t.sent) + bytes(row.sent) + of_row)
        }
        _ => None,
    }
}

/// Returns the first row that begins after `pos`; the one after the last if none does.
fn later_row(maps: &Maps, t: &abi::emud_timeline, pos: u64) -> Result<u32, DatapathError> {
    let (mut low, mut high) = (0, t.count);
    while low < high {
        let middle = low + (high - low) / 2;
        match maps.row(t.first + middle)?.at_ns <= pos {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(low)
}

/// Returns the bit/s of a fixed-point figure; 0: nothing moves, `None`: no limit.
pub(crate) fn rate_bit_s(mult: u64, shift: u32) -> Option<f64> {
    match mult {
        0 => None,
        u64::MAX => Some(0.0),
        mult => Some(bit_s(mult, shift)),
    }
}

/// Links of phases and states have successive numbers, after the named ones.
fn phase(row: &abi::emud_row, profile: Option<&Profile>) -> Option<PhaseReport> {
    let profile = profile.filter(|_| row.number != abi::EMUD_SAME_LINK)?;
    let place = row.number.checked_sub(1 + profile.links.len() as u32)?;
    let phases = &profile.phases.list;
    Some(PhaseReport {
        number: place + 1,
        of: phases.len() as u32,
        name: phases.get(place as usize)?.name.clone(),
    })
}
