// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link that changes with time, and its canonical text.

use std::fmt::Write;
use std::sync::Arc;

use crate::text::{Percent, Time};

/// As many rows, or opportunities, as a trace may have.
pub const MAX_ROWS: usize = 1 << 22;

/// Figures of a link over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The file or the rows.
    pub source: TraceSource,
    /// Over and over; else the last row holds, and after the last opportunity nothing is sent.
    pub repeat: bool,
    /// Where in the trace it begins, ns.
    pub offset_ns: u64,
}

/// Where it says so.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceSource {
    /// Rows in the profile or a file of rows.
    Rows {
        /// In the order of their times, from 0 on; all have the same columns.
        rows: Arc<[TraceRow]>,
        /// From row 0 to row 0 of the next round; above the last row's time.
        period_ns: u64,
    },
    /// Delivery opportunities, ms; in order, the last one not 0.
    Mahimahi(Arc<[u32]>),
    /// Rows that are too many to be kept as text: those that the kernel has.
    InForce(Summary),
}

/// From a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TraceRow {
    /// Time of the row, from the beginning of the trace.
    pub at_ns: u64,
    /// bit/s; 0: nothing moves. `None`, here and below: the link's own.
    pub rate: Option<u64>,
    /// Mean delay in ns; `None`: that of the link.
    pub delay_ns: Option<u64>,
    /// As the key `jitter`.
    pub jitter_ns: Option<u64>,
    /// Share lost, 0.0..=1.0.
    pub loss: Option<f64>,
}

/// All of a trace but its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Of the rows as the kernel has them.
    pub content: u64,
    /// Number of rows.
    pub rows: u32,
    /// Whether rows are opportunities of Mahimahi.
    pub mahimahi: bool,
    /// 0: without a rate.
    pub mean_rate: u64,
    /// The highest rate, bit/s.
    pub max_rate: u64,
    /// If there is a column of that.
    pub max_delay_ns: Option<u64>,
    /// If there is a column of that.
    pub max_jitter_ns: Option<u64>,
    /// Length of a repetition.
    pub period_ns: u64,
    /// The link's own mean delay, if the rows carry it.
    pub own_mean_ns: Option<u64>,
    /// The rate in the long run, bit/s: the mean, or without repetition the last row's.
    pub long_rate: u64,
    /// Fraction bits of bytes in the rows.
    pub frac: u32,
}

impl Trace {
    /// Returns whether each row has a rate, or is an opportunity.
    pub fn has_rate(&self) -> bool {
        match &self.source {
            TraceSource::Rows { rows, .. } => rows.iter().any(|row| row.rate.is_some()),
            TraceSource::Mahimahi(_) => true,
            TraceSource::InForce(summary) => summary.mean_rate > 0,
        }
    }

    /// Returns how many rows or opportunities.
    pub fn len(&self) -> usize {
        match &self.source {
            TraceSource::Rows { rows, .. } => rows.len(),
            TraceSource::Mahimahi(ms) => ms.len(),
            TraceSource::InForce(summary) => summary.rows as usize,
        }
    }

    /// Returns false: a trace has a row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rows as a CSV file; nothing of opportunities.
    pub(crate) fn csv(&self) -> String {
        match &self.source {
            TraceSource::Rows { rows, .. } => rows_text(rows, '\n') + "\n",
            TraceSource::Mahimahi(_) | TraceSource::InForce(_) => String::new(),
        }
    }

    /// Returns the value of `trace` as text that reads back to it.
    pub(crate) fn text(&self) -> String {
        let mut out = match &self.source {
            TraceSource::Rows { rows, period_ns } => {
                format!(
                    "{{ rows = \"{}\", period = \"{}\"",
                    rows_text(rows, ';'),
                    Time(*period_ns)
                )
            }
            TraceSource::Mahimahi(ms) => {
                format!("{{ opportunities = \"{}\"", opportunities_text(ms))
            }
            TraceSource::InForce(summary) => format!("{{ in-force = \"{}\"", summary.text()),
        };
        let _ = write!(out, ", loop = {}", self.repeat);
        if self.offset_ns > 0 {
            let _ = write!(out, ", offset = \"{}\"", Time(self.offset_ns));
        }
        out + " }"
    }
}

fn rows_text(rows: &[TraceRow], separator: char) -> String {
    let mut out = "time_ns".to_owned();
    let first = rows.first().copied().unwrap_or_default();
    for (there, name) in [
        (first.rate.is_some(), ",rate_bit"),
        (first.delay_ns.is_some(), ",delay_ns"),
        (first.jitter_ns.is_some(), ",jitter_ns"),
        (first.loss.is_some(), ",loss"),
    ] {
        if there {
            out += name;
        }
    }
    for row in rows {
        let _ = write!(out, "{separator}{}", row.at_ns);
        for number in [row.rate, row.delay_ns, row.jitter_ns]
            .into_iter()
            .flatten()
        {
            let _ = write!(out, ",{number}");
        }
        if let Some(loss) = row.loss {
            let _ = write!(out, ",{}", Percent(loss));
        }
    }
    out
}

/// As in the file, with `x3` for three of the same time.
fn opportunities_text(ms: &[u32]) -> String {
    let mut words = Vec::new();
    for same in ms.chunk_by(|a, b| a == b) {
        words.push(match same {
            [one] => one.to_string(),
            many => format!("{}x{}", many[0], many.len()),
        });
    }
    words.join(" ")
}

impl Summary {
    fn text(&self) -> String {
        let or = |value: Option<u64>| value.map_or("-".to_owned(), |v| v.to_string());
        format!(
            "{:016x} {} {} {} {} {} {} {} {} {} {}",
            self.content,
            self.rows,
            if self.mahimahi { "mahimahi" } else { "rows" },
            self.mean_rate,
            self.max_rate,
            or(self.max_delay_ns),
            or(self.max_jitter_ns),
            self.period_ns,
            or(self.own_mean_ns),
            self.long_rate,
            self.frac
        )
    }

    /// Reads back its own text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let summary = Self {
            content: u64::from_str_radix(words.next()?, 16).ok()?,
            rows: words.next()?.parse().ok()?,
            mahimahi: match words.next()? {
                "mahimahi" => true,
                "rows" => false,
                _ => return None,
            },
            mean_rate: words.next()?.parse().ok()?,
            max_rate: words.next()?.parse().ok()?,
            max_delay_ns: optional(words.next()?)?,
            max_jitter_ns: optional(words.next()?)?,
            period_ns: words.next()?.parse().ok()?,
            own_mean_ns: optional(words.next()?)?,
            long_rate: words.next()?.parse().ok()?,
            // A shift of 64 bits.
            frac: words.next()?.parse().ok().filter(|bits| *bits < 64)?,
        };
        words.next().is_none().then_some(summary)
    }
}

fn optional(word: &str) -> Option<Option<u64>> {
    match word {
        "-" => Some(None),
        word => word.parse().ok().map(Some),
    }
}
