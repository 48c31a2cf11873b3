// SPDX-License-Identifier: GPL-2.0-only
//! Whether the values of a link go together.

use super::draft::{DelayDraft, LinkDraft, Spread};
use super::{Delay, Distribution, Jitter, Link};
use crate::link::quantile::largest_sd_ns;
use crate::text::{At, Located, Mistake, Nanoseconds, Reader, Time, Word};

impl Reader {
    /// The finished link; meaningless if that adds a mistake.
    pub(super) fn finish(&mut self, draft: &LinkDraft) -> Link {
        let wire = self.finish_wire(draft);
        Link {
            rate: value(&draft.rate),
            overhead: value(&draft.overhead).unwrap_or_default(),
            queue: self.finish_queue(draft, &wire),
            wire,
            delay: self.finish_delay(&draft.delay),
            loss: value(&draft.loss).unwrap_or_default(),
            neighbours: value(&draft.neighbours).unwrap_or_default(),
        }
    }

    fn finish_delay(&mut self, draft: &DelayDraft) -> Delay {
        let mean_ns = value(&draft.mean).unwrap_or_default();
        let constant = Delay {
            mean_ns,
            jitter: None,
        };
        let Some(spread) = &draft.spread else {
            self.nothing_without_jitter(draft);
            return constant;
        };
        if draft.mean.is_none() {
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
        match self.jitter(draft, spread, mean_ns) {
            jitter if jitter.sd_ns > 0.0 => Delay {
                mean_ns,
                jitter: Some(jitter),
            },
            _ => constant,
        }
    }

    fn jitter(&mut self, draft: &DelayDraft, spread: &Located<Spread>, mean_ns: u64) -> Jitter {
        let usual = match spread.value {
            Spread::Jitter(_) => Distribution::Uniform,
            Spread::Sd(_) => Distribution::Normal,
        };
        let distribution = value(&draft.distribution).unwrap_or(usual);
        // The half-width of a uniform distribution has bounds in the user's own terms.
        let (sd_ns, written, largest) = match (spread.value, distribution) {
            (Spread::Jitter(half), Distribution::Uniform) => {
                (half / 3f64.sqrt(), half, mean_ns as f64)
            }
            (Spread::Jitter(sd) | Spread::Sd(sd), _) => {
                (sd, sd, largest_sd_ns(distribution, mean_ns))
            }
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
                distribution,
                mean_ns,
                largest,
            ));
        }
        Jitter {
            sd_ns,
            distribution,
            reorder: value(&draft.reorder).unwrap_or_default(),
            coherence_ns: value(&draft.coherence),
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

    fn nothing_without_jitter(&mut self, draft: &DelayDraft) {
        let shaping = [
            ("distribution", draft.distribution.as_ref().map(|d| &d.at)),
            ("reorder", draft.reorder.as_ref().map(|r| &r.at)),
            ("coherence", draft.coherence.as_ref().map(|c| &c.at)),
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

fn too_wide(
    at: &At,
    spread: Spread,
    distribution: Distribution,
    mean_ns: u64,
    largest: f64,
) -> Mistake {
    let (name, written) = match spread {
        Spread::Jitter(ns) => ("jitter", ns),
        Spread::Sd(ns) => ("sd", ns),
    };
    let mean = Time(mean_ns);
    let skewed = match distribution {
        Distribution::Pareto => "",
        _ => "; a skewed one, distribution = \"pareto\", allows up to 1.73 times the mean",
    };
    Mistake::new(
        at,
        format!(
            "`{name}` of {} about a mean of {mean} would need delays below zero",
            Nanoseconds(written)
        ),
        format!(
            "with distribution = \"{}\" and this mean, `{name}` is at most \"{}\"{skewed}",
            distribution.word(),
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
