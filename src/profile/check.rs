// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the values of a link go together.

use super::draft::{DelayDraft, LinkDraft, Spread};
use super::{Delay, Distribution, Jitter, Link, Reorder, Shape};
use crate::profile::quantile::largest_sd_ns;
use crate::text::{At, Located, Mistake, Nanoseconds, Reader, Time};

impl Reader {
    /// The finished link; meaningless if that adds a mistake.
    pub(super) fn finish(&mut self, draft: &LinkDraft) -> Link {
        let wire = self.finish_wire(draft);
        let link = Link {
            rate: value(&draft.rate),
            overhead: value(&draft.overhead).unwrap_or_default(),
            queue: self.finish_queue(draft, &wire),
            wire,
            delay: self.finish_delay(&draft.delay),
            loss: self.finish_loss(&draft.loss),
            neighbours: value(&draft.neighbours).unwrap_or_default(),
            reorder: self.finish_reorder(draft.reorder.as_ref()),
            duplicate: self.finish_duplicate(&draft.duplicate),
            corrupt: self.finish_corrupt(&draft.corrupt),
            state: value(&draft.state).unwrap_or_default(),
            shared: draft.shared.as_ref().map(|name| name.value.clone()),
            trace: self.finish_trace(&draft.trace),
            slot: self.finish_slot(&draft.slot),
        };
        self.rows_in_force_fit(draft, &link);
        link
    }

    fn finish_delay(&mut self, draft: &DelayDraft) -> Delay {
        let samples = draft.samples.as_ref();
        let mean_ns = value(&draft.mean)
            .or_else(|| samples.map(|s| s.value.mean_ns.round() as u64))
            .unwrap_or_default();
        let constant = Delay {
            mean_ns,
            jitter: None,
            share: value(&draft.share).filter(|share| *share < 1.0),
        };
        let measured = samples.map(|samples| Located {
            value: Spread::Sd(samples.value.sd_ns),
            at: samples.at.clone(),
        });
        if draft.broken {
            return constant;
        }
        let Some(spread) = draft.spread.as_ref().or(measured.as_ref()) else {
            self.nothing_without_jitter(draft);
            return constant;
        };
        if draft.mean.is_none() && samples.is_none() {
            let key = match spread.value {
                Spread::Jitter(_) => "jitter",
                Spread::Sd(_) => "sd",
            };
            let help = "say about which delay: delay = { mean = \"50ms\", jitter = \"5ms\" }";
            self.mistakes.push(Mistake::new(
                &spread.at,
                format!("`{key}` without `mean`"),
                help,
            ));
            return constant;
        }
        self.coherence_is_not_zero(draft);
        self.correlation_is_of_packets(draft);
        match self.jitter(draft, spread, mean_ns) {
            jitter if jitter.sd_ns > 0.0 => Delay {
                jitter: Some(jitter),
                ..constant
            },
            _ => constant,
        }
    }

    fn jitter(&mut self, draft: &DelayDraft, spread: &Located<Spread>, mean_ns: u64) -> Jitter {
        let distribution = shape(draft, spread.value);
        let largest = largest_sd_ns(distribution.clone(), mean_ns);
        // Bounds are in the user's own terms.
        let (written, sd_ns, largest) = match (spread.value, &distribution) {
            (Spread::Jitter(half), Shape::Named(Distribution::Uniform)) => {
                (half, half / 3f64.sqrt(), mean_ns as f64)
            }
            (Spread::Jitter(jitter), Shape::Table(table)) => {
                (jitter, jitter * table.sd(), largest / table.sd())
            }
            (Spread::Jitter(sd) | Spread::Sd(sd), _) => (sd, sd, largest),
        };
        if written > largest {
            let places = [
                draft.mean.as_ref().map(|mean| &mean.at),
                draft
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
            reorder: value(&draft.reorder).unwrap_or_default(),
            coherence_ns: value(&draft.coherence),
            correlation: value(&draft.correlation).unwrap_or_default(),
        }
    }

    fn coherence_is_not_zero(&mut self, draft: &DelayDraft) {
        if let Some(Located { value: 0, at }) = &draft.coherence {
            let help = "leave it out for one that fits the spread; for independent packets \
                        write reorder = \"jitter\"";
            self.mistakes
                .push(Mistake::new(at, "a coherence time of zero", help));
        }
    }

    fn correlation_is_of_packets(&mut self, draft: &DelayDraft) {
        let reorder = value(&draft.reorder).unwrap_or_default();
        let Some(Located { value, at }) = &draft.correlation else {
            return;
        };
        if reorder == Reorder::Never && *value > 0.0 {
            let help = "add reorder = \"jitter\", so that each packet draws its own; in order, \
                        `coherence` says how long the delay stays like it was";
            let title = "`correlation` of a delay that keeps the order";
            self.mistakes.push(Mistake::new(at, title, help));
        }
    }

    fn nothing_without_jitter(&mut self, draft: &DelayDraft) {
        let shaping = [
            ("distribution", draft.distribution.as_ref().map(|d| &d.at)),
            ("reorder", draft.reorder.as_ref().map(|r| &r.at)),
            ("coherence", draft.coherence.as_ref().map(|c| &c.at)),
            ("correlation", draft.correlation.as_ref().map(|c| &c.at)),
        ];
        let before = self.mistakes.len();
        for (key, at) in shaping {
            let Some(at) = at else { continue };
            let help = "it says how the delay varies: give `jitter` or `sd` too, or leave it out";
            self.mistakes
                .push(Mistake::new(at, format!("`{key}` without `jitter`"), help));
        }
        if let (Some(table), None, true) =
            (&draft.table, &draft.mean, before == self.mistakes.len())
        {
            let help = "write delay = { mean = \"50ms\" } or delay = \"50ms\"";
            self.mistakes
                .push(Mistake::new(table, "a delay without `mean`", help));
        }
    }
}

/// The distribution as asked for or measured, else the usual one.
fn shape(draft: &DelayDraft, spread: Spread) -> Shape {
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

pub(super) fn value<T: Copy>(slot: &Option<Located<T>>) -> Option<T> {
    slot.as_ref().map(|located| located.value)
}

/// Of the places that do not go together, the one written last: it was the one to change.
pub(super) fn latest<'a, const N: usize>(first: &'a At, others: [Option<&'a At>; N]) -> &'a At {
    others
        .into_iter()
        .flatten()
        .fold(first, |a, b| if b.source > a.source { b } else { a })
}
