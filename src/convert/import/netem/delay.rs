// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts netem's delay, jitter and distribution.

use super::Netem;
use crate::convert::import::Tables;
use crate::convert::import::writer::{Writer, inline_samples, quoted, string, table};
use crate::convert::netem::{MOST_JITTER_NS, TableFacts, table_facts};
use crate::profile::quantile::{largest_sd_ns, normal_quantile};
use crate::profile::{Distribution, Percent, Time, Word};
use crate::text::Mistake;

/// Number of points of a distribution that is written out.
const POINTS: usize = 200;

/// The distribution from which netem draws.
enum Drawn {
    Known(Distribution),
    /// A table by its path.
    File(String),
}

impl Netem {
    pub(super) fn delay_keys(
        &self,
        out: &mut Writer,
        has_rate: bool,
        tables: Tables,
    ) -> Result<(), Mistake> {
        let mean = quoted(Time(self.latency_ns));
        if self.jitter_ns == 0 {
            if self.latency_ns > 0 {
                out.key("delay", mean);
            }
            return Ok(());
        }
        if self.jitter_ns > MOST_JITTER_NS {
            out.note("netem's maximum jitter is 2.147483647 s.");
        }
        let jitter_ns = self.jitter_ns.min(MOST_JITTER_NS);
        let drawn = self.drawn(out, tables)?;
        self.order_notes(out, has_rate);
        let reorder = Some(quoted(if has_rate { "never" } else { "jitter" }));
        let correlation = self.correlation(out, has_rate);
        let jitter = Some(quoted(Time(jitter_ns)));
        let keys = match &drawn {
            Drawn::Known(distribution) if self.is_too_wide(*distribution, jitter_ns) => {
                let delays = clipped(*distribution, self.latency_ns, jitter_ns);
                let mean = delays.iter().sum::<f64>() / POINTS as f64;
                out.note(&format!(
                    "The jitter is too wide for the delay: netem sends packets at once that would have to \
                     leave before they arrive, so its delays are {} on average. These are its delays, \
                     written out.",
                    Time(mean.round() as u64)
                ));
                table(&[
                    ("samples", Some(inline_samples(&delays, false))),
                    ("reorder", reorder),
                    ("correlation", correlation),
                ])
            }
            Drawn::Known(distribution) => {
                self.tail_note(out, *distribution, jitter_ns);
                table(&[
                    ("mean", Some(mean)),
                    ("jitter", jitter),
                    ("distribution", Some(quoted(distribution.word()))),
                    ("reorder", reorder),
                    ("correlation", correlation),
                ])
            }
            Drawn::File(path) => table(&[
                ("mean", Some(mean)),
                ("jitter", jitter),
                ("distribution", Some(table(&[("file", Some(string(path)))]))),
                ("reorder", reorder),
                ("correlation", correlation),
            ]),
        };
        out.key("delay", keys);
        Ok(())
    }

    fn drawn(&self, out: &mut Writer, tables: Tables) -> Result<Drawn, Mistake> {
        let Some(name) = &self.distribution else {
            out.note("Without a distribution netem's jitter is uniform, not normal as the manual of 2011 says.");
            return Ok(Drawn::Known(Distribution::Uniform));
        };
        if let Some(known) = Distribution::from_word(&name.value) {
            if known == Distribution::Uniform && tables("uniform").is_none() {
                out.note(
                    "iproute2 has no table `uniform`: tc rejects this name; without it netem \
                     draws the same.",
                );
            }
            return Ok(Drawn::Known(known));
        }
        match tables(&name.value) {
            Some(path) => Ok(Drawn::File(path.display().to_string())),
            None => Err(Mistake::new(
                &name.at,
                format!("there is no table `{}`", name.value),
                format!(
                    "tc reads {}.dist in its library folder: set TC_LIB_DIR to the folder that has it",
                    name.value
                ),
            )),
        }
    }

    fn order_notes(&self, out: &mut Writer, has_rate: bool) {
        if has_rate {
            out.note(
                "With a rate netem keeps packets in order, and its jitter is before the \
                 rate: a busy link hides it. emud's jitter is after the rate.",
            );
        } else {
            out.note(
                "netem draws for each packet, so packets overtake, even with a pfifo below it, \
                 contrary to the manual. On most links they do not: reorder = \"never\".",
            );
        }
    }

    fn correlation(&self, out: &mut Writer, has_rate: bool) -> Option<String> {
        if self.delay_correlation == 0.0 {
            return None;
        }
        out.note(
            "netem folds its correlated numbers into the jitter's width with a modulo, which, below \
             a second of jitter, removes nearly all of the correlation. emud's correlation is exact and keeps the distribution.",
        );
        if has_rate {
            let text = format!(
                "the correlation of {} between one delay and the next: in order, the delay \
                 wanders in time; see coherence",
                Percent(self.delay_correlation)
            );
            out.warning(text);
            return None;
        }
        Some(quoted(Percent(self.delay_correlation)))
    }

    fn is_too_wide(&self, distribution: Distribution, jitter_ns: u64) -> bool {
        match distribution {
            Distribution::Uniform => jitter_ns > self.latency_ns,
            other => jitter_ns as f64 > largest_sd_ns(other, self.latency_ns),
        }
    }

    /// Notes the ends of netem's tables and of its delays.
    fn tail_note(&self, out: &mut Writer, distribution: Distribution, jitter_ns: u64) {
        if distribution == Distribution::Uniform {
            return;
        }
        let TableFacts { lowest, sd, mean } = table_facts(distribution);
        if sd < 1.0 {
            out.note(&format!(
                "netem's table ends at 4 times the jitter, so its standard deviation is {sd} of \
                 the jitter and its mean {} lower. emud's standard deviation is the jitter.",
                Time((mean * jitter_ns as f64).round() as u64)
            ));
        }
        if lowest * jitter_ns as f64 > self.latency_ns as f64 {
            out.note(&format!(
                "A delay {} jitters below the mean would be negative: netem sends such packets at \
                 once, so its mean is higher. emud keeps mean and standard deviation.",
                trimmed(lowest)
            ));
        }
    }
}

/// Returns netem's delays in ns at evenly spaced probabilities, none below zero.
fn clipped(distribution: Distribution, mean_ns: u64, jitter_ns: u64) -> Vec<f64> {
    let (mean, jitter) = (mean_ns as f64, jitter_ns as f64);
    let delay = |i: usize| {
        let p = (i as f64 + 0.5) / POINTS as f64;
        (mean + jitter * tabled(distribution, p)).max(0.0)
    };
    (0..POINTS).map(delay).collect()
}

/// Returns the value in jitters at probability `p`, as iproute2 makes its tables (netem/normal.c,
/// pareto.c, paretonormal.c): 16 bits hold up to 4.
fn tabled(distribution: Distribution, p: f64) -> f64 {
    let normal = || normal_quantile(p).clamp(-4.0, 4.0);
    let pareto = || (4.0 / 3.0 * ((1.0 - p).powf(-1.0 / 3.0) - 1.5)).min(4.0);
    match distribution {
        Distribution::Uniform => 2.0 * p - 1.0,
        Distribution::Normal => normal(),
        Distribution::Pareto => pareto(),
        Distribution::ParetoNormal => (normal() + 3.0 * pareto()) / 4.0,
    }
}

/// Formats up to two digits after the point.
pub(super) fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
