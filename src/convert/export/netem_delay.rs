// SPDX-License-Identifier: MIT OR Apache-2.0
//! `delay TIME [JITTER] [distribution NAME]`.

use super::netem::Options;
use crate::convert::netem::{MOST_JITTER_NS, table_facts};
use crate::profile::{Delay, Distribution, Jitter, Reorder, Shape, Time, Word};

impl Options {
    pub(crate) fn delay(&mut self, delay: &Delay, has_rate: bool) {
        let Delay {
            mean_ns,
            jitter,
            share,
            ..
        } = delay;
        for key in delay.beyond(&["mean", "share"]) {
            self.differ(format!("`delay.{key}`: netem has no such key"));
        }
        if share.is_some() {
            self.differ("`delay.share`: netem delays all packets except reordered ones");
        }
        let Some(jitter) = jitter.as_ref().filter(|jitter| jitter.sd_ns > 0.0) else {
            if *mean_ns > 0 {
                self.add(format!("delay {}", Time(*mean_ns)));
            }
            return;
        };
        let Jitter {
            sd_ns,
            distribution,
            reorder,
            // Only for jitter in order.
            coherence_ns: _,
            correlation,
        } = jitter;
        self.order(*reorder, has_rate);
        if *correlation != 0.0 {
            self.differ(
                "`delay.correlation`: netem folds its correlated numbers with a modulo, which \
                 removes nearly all of the correlation",
            );
        }
        let shape = self.shape(distribution);
        let jitter_ns = match shape {
            // netem's parameter of a uniform distribution is the half-width.
            Distribution::Uniform => sd_ns * 3f64.sqrt(),
            _ => *sd_ns,
        };
        self.table(shape, jitter_ns, *mean_ns);
        let jitter = (jitter_ns.round() as u64).min(MOST_JITTER_NS);
        if jitter == 0 {
            self.differ("a jitter of less than a nanosecond: netem's times are whole");
            return self.add(format!("delay {}", Time(*mean_ns)));
        }
        let jitter = Time(jitter);
        let distribution = match shape {
            Distribution::Uniform => String::new(),
            named => format!(" distribution {}", named.word()),
        };
        self.add(format!("delay {} {jitter}{distribution}", Time(*mean_ns)));
    }

    fn order(&mut self, reorder: Reorder, has_rate: bool) {
        match (reorder, has_rate) {
            (_, true) => self.differ(
                "jitter after a rate: netem's jitter is before its rate, where a busy \
                 link hides it",
            ),
            (Reorder::Never, false) => self.differ(
                "jitter that keeps packets in order: netem draws for each packet, so they \
                 overtake (reorder = \"jitter\")",
            ),
            (Reorder::Jitter, false) => {}
        }
    }

    /// Returns iproute2's table of that shape, or the nearest one.
    fn shape(&mut self, shape: &Shape) -> Distribution {
        match shape {
            Shape::Named(distribution) => *distribution,
            Shape::LogNormal => {
                self.differ(
                    "distribution = \"lognormal\": iproute2 has no such table; this one is \
                     `paretonormal`",
                );
                Distribution::ParetoNormal
            }
            Shape::Table(_) => {
                self.differ(
                    "a distribution from a file: netem takes only tables from tc's library \
                     folder, by name; this one is `normal`",
                );
                Distribution::Normal
            }
        }
    }

    /// Checks whether netem's table of that name is valid for this mean.
    fn table(&mut self, distribution: Distribution, jitter_ns: f64, mean_ns: u64) {
        let facts = table_facts(distribution);
        // A uniform jitter as wide as the mean may be wider by a rounding error.
        if facts.lowest * jitter_ns > mean_ns as f64 + 1.0 {
            self.differ(format!(
                "{} delays that end at zero: netem sends at once what would be delayed by less, \
                 which makes the mean higher and the spread smaller",
                distribution.word()
            ));
        }
        if jitter_ns > MOST_JITTER_NS as f64 {
            self.differ("a jitter above 2.147483647 s: this is netem's maximum");
        }
        if facts.sd < 1.0 {
            self.note(format!(
                "netem's table `{}` is cut off at 4 times the jitter: its standard deviation is \
                 {} of the configured one",
                distribution.word(),
                facts.sd
            ));
        }
    }
}
