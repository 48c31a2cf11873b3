// SPDX-License-Identifier: MIT OR Apache-2.0
//! Did the network repeat? With one seed, and packets at the same times, it must.

use schemars::JsonSchema;
use serde::Serialize;

use super::totals::{Totals, of_class, of_link, of_station};
use super::{Run, count};

/// How far the network repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// Every sample of every link, class of a bottleneck and station has the same counters.
    BySample,
    /// The totals are the same, but distributed differently over the samples.
    InTotal,
    /// A total differs.
    Different,
    /// Different seeds, different links, no or lost samples, or a single run.
    NotComparable,
}

/// Whether packets, bytes, losses, drops, marks, copies and damage of the measured phase are the same
/// in all runs, and likewise the counts of classes of bottlenecks and of stations.
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

    /// Returns the result as a phrase.
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

/// Compares the losses of at least two runs.
pub fn losses(runs: &[&Run]) -> Losses {
    let Some((first, others)) = runs.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Losses::new(Same::NotComparable, "a single run".to_owned());
    };
    if others.iter().any(|run| run.about.seed != first.about.seed) {
        return Losses::new(Same::NotComparable, "other seeds".to_owned());
    }
    if let Some(why) = runs.iter().find_map(|run| run.why_fewer_samples()) {
        return Losses::new(Same::NotComparable, why);
    }
    let first = parts(first);
    if first.iter().all(|part| part.interval_ns == 0) {
        return Losses::new(Same::NotComparable, "no samples".to_owned());
    }
    let mut same = Same::BySample;
    for other in others {
        let other = parts(other);
        if !(first.iter().map(|a| &a.name)).eq(other.iter().map(|b| &b.name)) {
            return Losses::new(Same::NotComparable, "other links".to_owned());
        }
        for (a, b) in first.iter().zip(&other) {
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

/// A direction of a link, a class of a bottleneck, or a station.
struct Tallied {
    name: String,
    interval_ns: u64,
    totals: Totals,
    fingerprint: u64,
}

fn parts(run: &Run) -> Vec<Tallied> {
    let tracks = run.tracks.iter().map(|track| Tallied {
        name: track.name(),
        interval_ns: track.measured.interval_ns,
        totals: of_link(&track.measured.counted),
        fingerprint: track.fingerprint,
    });
    let classes = run.classes.iter().map(|class| Tallied {
        name: format!("{} {}", class.link, class.name()),
        interval_ns: class.interval_ns,
        totals: of_class(&class.counted),
        fingerprint: class.fingerprint,
    });
    let stations = run.stations.iter().map(|station| Tallied {
        name: format!("{} {}", station.medium, station.node),
        interval_ns: station.interval_ns,
        totals: of_station(&station.counted),
        fingerprint: station.fingerprint,
    });
    tracks.chain(classes).chain(stations).collect()
}

/// Returns the first total that differs.
fn differ(a: &Tallied, b: &Tallied) -> Option<String> {
    let mut totals = a.totals.iter().zip(&b.totals);
    let ((what, x), (_, y)) = totals.find(|(x, y)| x != y)?;
    let (x, y) = (count(*x), count(*y));
    Some(format!("{}: {x} and {y} {what}", a.name))
}
