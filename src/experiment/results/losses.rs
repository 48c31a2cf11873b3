// SPDX-License-Identifier: MIT OR Apache-2.0
//! Did the network repeat? With one seed, and packets at the same times, it must.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Run, Track, count};

/// How far the network repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// Every sample of every link has the same counters.
    BySample,
    /// The totals are the same, but distributed differently over the samples.
    InTotal,
    /// A total differs.
    Different,
    /// Different seeds, different links, no samples, or a single run.
    NotComparable,
}

/// Whether packets, bytes, losses, drops, marks, copies and damage of the measured phase are the same
/// in all runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Losses {
    /// How far the network repeated.
    pub same: Same,
    /// Why the runs cannot be compared, or the first direction that differs; null: neither.
    pub detail: Option<String>,
}

impl Losses {
    fn new(same: Same, detail: impl Into<Option<String>>) -> Self {
        Self {
            same,
            detail: detail.into(),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let said = match self.same {
            Same::BySample => "identical, sample by sample",
            Same::InTotal => "identical in total, not sample by sample",
            Same::Different => "NOT the same",
            Same::NotComparable => "not comparable",
        };
        match &self.detail {
            Some(detail) => format!("{said} ({detail})"),
            None => said.to_owned(),
        }
    }
}

/// Of at least two runs.
pub fn losses(runs: &[&Run]) -> Losses {
    let Some((first, others)) = runs.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Losses::new(Same::NotComparable, "a single run".to_owned());
    };
    if others.iter().any(|run| run.about.seed != first.about.seed) {
        return Losses::new(Same::NotComparable, "other seeds".to_owned());
    }
    if first.tracks.iter().all(|track| track.samples == 0) {
        return Losses::new(Same::NotComparable, "no samples".to_owned());
    }
    let mut same = Same::BySample;
    for other in others {
        if first.tracks.len() != other.tracks.len() {
            return Losses::new(Same::NotComparable, "other links".to_owned());
        }
        for (a, b) in first.tracks.iter().zip(&other.tracks) {
            if a.name() != b.name() {
                return Losses::new(Same::NotComparable, "other links".to_owned());
            }
            if let Some(difference) = differ(a, b) {
                return Losses::new(Same::Different, difference);
            }
            if a.fingerprint != b.fingerprint {
                same = Same::InTotal;
            }
        }
    }
    Losses::new(same, None)
}

/// The first total that differs.
fn differ(a: &Track, b: &Track) -> Option<String> {
    let (x, y) = (&a.measured.counted, &b.measured.counted);
    let totals = [
        ("packets came", x.packets, y.packets),
        ("bytes came", x.bytes, y.bytes),
        ("packets lost", x.lost, y.lost),
        ("packets dropped", x.dropped, y.dropped),
        ("packets marked", x.marked, y.marked),
        ("packets duplicated", x.duplicated, y.duplicated),
        ("packets corrupted", x.corrupted, y.corrupted),
    ];
    let (what, x, y) = totals.into_iter().find(|(_, x, y)| x != y)?;
    let (x, y) = (count(x), count(y));
    Some(format!("{}: {x} and {y} {what}", a.name()))
}
