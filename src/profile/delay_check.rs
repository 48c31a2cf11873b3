// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the keys of a `delay` go together, and the delay that they give.

use super::delay::{Delay, DelayDraft, Jitter, JitterDraft, Spread};
use super::located::{latest, value};
use super::quantile::largest_sd_ns;
use super::trace_figures::figures;
use super::{Distribution, Reorder, Shape, Trace};
use crate::text::{At, Located, Mistake, Nanoseconds, Reader, Time};

impl Reader {
    /// Returns the finished delay; meaningless if that adds a mistake.
    pub(super) fn finish_delay(&mut self, draft: &DelayDraft, trace: Option<&Trace>) -> Delay {
        let samples = draft.jitter.samples.as_ref();
        let mean_ns = value(&draft.mean_ns)
            .or_else(|| samples.map(|s| s.value.mean_ns.round() as u64))
            .unwrap_or_default();
        let written = draft.values();
        let constant = Delay {
            mean_ns,
            share: written.share.filter(|share| *share < 1.0),
            // A limit of delays that vary.
            max_ns: None,
            ..written
        };
        let measured = samples.map(|samples| Located {
            value: Spread::Sd(samples.value.sd_ns),
            at: samples.at.clone(),
        });
        if draft.broken {
            return constant;
        }
        if let Some(max) = draft.max_ns.as_ref().filter(|max| max.value < mean_ns) {
            let help = format!(
                "write a longer `max`, or leave it out; the mean is \"{}\"",
                Time(mean_ns)
            );
            let title = format!("a `max` of {} is below the mean", Time(max.value));
            self.mistake(&max.at, title, help);
        }
        // Rows that have the jitter take all that is said of it from here.
        let by_rows = trace.is_some_and(|trace| figures(trace).max_jitter_ns > Some(0));
        let of_rows = by_rows.then(|| Located {
            value: Spread::Jitter(0.0),
            at: draft.at.clone().unwrap_or(At::START),
        });
        let spread = draft.jitter.spread.as_ref();
        let Some(spread) = spread.or(measured.as_ref()).or(of_rows.as_ref()) else {
            self.nothing_without_jitter(draft);
            return constant;
        };
        if draft.mean_ns.is_none() && samples.is_none() && !by_rows {
            let key = match spread.value {
                Spread::Jitter(_) => "jitter",
                Spread::Sd(_) => "sd",
            };
            let help = "add `mean`: delay = { mean = \"50ms\", jitter = \"5ms\" }";
            self.mistake(&spread.at, format!("`{key}` without `mean`"), help);
            return constant;
        }
        self.coherence_is_not_zero(draft);
        self.correlation_is_of_packets(draft);
        match self.jitter(draft, spread, mean_ns) {
            jitter if jitter.sd_ns > 0.0 || by_rows && jitter != Jitter::default() => Delay {
                jitter: Some(jitter),
                max_ns: written.max_ns,
                ..constant
            },
            _ => constant,
        }
    }

    fn jitter(&mut self, draft: &DelayDraft, spread: &Located<Spread>, mean_ns: u64) -> Jitter {
        let distribution = shape_of(&draft.jitter, spread.value);
        let largest = largest_sd_ns(distribution.clone(), mean_ns);
        // Bounds are in the user's own terms.
        let (written, sd_ns, largest) = match (spread.value, &distribution) {
            (Spread::Jitter(half), Shape::Named(Distribution::Uniform)) => {
                (half, distribution.sd_of(half), mean_ns as f64)
            }
            (Spread::Jitter(jitter), shape) => {
                (jitter, shape.sd_of(jitter), largest / shape.sd_of(1.0))
            }
            (Spread::Sd(sd), _) => (sd, sd, largest),
        };
        if written > largest {
            let places = [
                draft.mean_ns.as_ref().map(|mean| &mean.at),
                draft
                    .jitter
                    .distribution
                    .as_ref()
                    .map(|distribution| &distribution.at),
            ];
            self.mistakes.push(too_wide(
                latest(&spread.at, places),
                spread.value,
                &distribution,
                mean_ns,
                largest,
            ));
        }
        Jitter {
            sd_ns,
            distribution,
            ..draft.jitter.values()
        }
    }

    fn coherence_is_not_zero(&mut self, draft: &DelayDraft) {
        if let Some(Located { value: 0, at }) = &draft.jitter.coherence_ns {
            let help = "leave it out for one that fits the spread; for independent packets \
                        write reorder = \"jitter\"";
            self.mistake(at, "a coherence time of zero", help);
        }
    }

    fn correlation_is_of_packets(&mut self, draft: &DelayDraft) {
        let reorder = value(&draft.jitter.reorder).unwrap_or_default();
        let Some(Located { value, at }) = &draft.jitter.correlation else {
            return;
        };
        if reorder == Reorder::Never && *value > 0.0 {
            let help = "add reorder = \"jitter\", so that each packet draws its own; in order, \
                        `coherence` says how long the delay stays like it was";
            let title = "`correlation` of a delay that keeps the order";
            self.mistake(at, title, help);
        }
    }

    fn nothing_without_jitter(&mut self, draft: &DelayDraft) {
        let shaping = [
            (
                "distribution",
                draft.jitter.distribution.as_ref().map(|d| &d.at),
            ),
            ("reorder", draft.jitter.reorder.as_ref().map(|r| &r.at)),
            (
                "coherence",
                draft.jitter.coherence_ns.as_ref().map(|c| &c.at),
            ),
            (
                "correlation",
                draft.jitter.correlation.as_ref().map(|c| &c.at),
            ),
            ("max", draft.max_ns.as_ref().map(|max| &max.at)),
        ];
        let before = self.mistakes.len();
        for (key, at) in shaping {
            let Some(at) = at else { continue };
            let help = "add `jitter` or `sd`, or leave it out";
            self.mistake(at, format!("`{key}` without `jitter`"), help);
        }
        if let (Some(table), None, true) =
            (&draft.at, &draft.mean_ns, before == self.mistakes.len())
        {
            let help = "write delay = { mean = \"50ms\" } or delay = \"50ms\"";
            self.mistake(table, "a delay without `mean`", help);
        }
    }
}

/// Returns the configured or measured distribution; without one, the default.
fn shape_of(draft: &JitterDraft, spread: Spread) -> Shape {
    let measured = draft.samples.as_ref().and_then(|s| s.value.table.as_ref());
    match (&draft.distribution, measured, spread) {
        (Some(asked), _, _) => asked.value.clone(),
        (None, Some(table), _) => Shape::Table(table.clone()),
        (None, None, Spread::Jitter(_)) => Distribution::Uniform.into(),
        (None, None, Spread::Sd(_)) => Distribution::Normal.into(),
    }
}

fn too_wide(at: &At, spread: Spread, distribution: &Shape, mean_ns: u64, largest: f64) -> Mistake {
    let (name, written) = match spread {
        Spread::Jitter(ns) => ("jitter", ns),
        Spread::Sd(ns) => ("sd", ns),
    };
    let mean = Time(mean_ns);
    let skewed = match distribution {
        Shape::Named(Distribution::Pareto) | Shape::LogNormal => "",
        _ => "; a skewed one, distribution = \"pareto\", allows up to 1.73 times the mean",
    };
    let help = match distribution {
        Shape::Table(_) => "with this file and mean".to_owned(),
        shape => format!("with distribution = \"{}\" and this mean", shape.word()),
    };
    let why = match distribution {
        Shape::LogNormal => "is too skewed",
        _ => "would need delays below zero",
    };
    Mistake::new(
        at,
        format!(
            "`{name}` of {} about a mean of {mean} {why}",
            Nanoseconds(written)
        ),
        format!(
            "{help}, `{name}` is at most \"{}\"{skewed}",
            Nanoseconds(largest.floor())
        ),
    )
}
