// SPDX-License-Identifier: MIT OR Apache-2.0
//! `delay TIME [JITTER] [distribution NAME]`.

use toml::{Table, Value};

use super::netem::Options;
use crate::profile::{Nanoseconds, Time};

/// The kernel's sigma is a signed 32-bit number of ns.
const MOST_JITTER_NS: f64 = i32::MAX as f64;

impl Options {
    pub(super) fn delay(&mut self, value: Option<&Value>) {
        match value {
            None => {}
            Some(Value::Table(table)) => self.delay_table(table),
            Some(plain) => {
                self.mean(Some(plain));
                if self.mean_ns > 0 {
                    self.add(format!("delay {}", Time(self.mean_ns)));
                }
            }
        }
    }

    /// Takes the mean delay; a profile that was read has none that cannot be read.
    fn mean(&mut self, value: Option<&Value>) {
        match value.and_then(Value::as_str).map(str::parse) {
            Some(Ok(Time(ns))) => (self.mean_ns, self.delay_ns) = (ns, ns),
            _ => self.cannot("a delay without `mean`"),
        }
    }

    fn delay_table(&mut self, table: &Table) {
        let known = [
            "mean",
            "jitter",
            "sd",
            "distribution",
            "reorder",
            "coherence",
            "correlation",
            "share",
            "samples",
        ];
        self.only("delay", table, &known);
        self.mean(table.get("mean"));
        if table.contains_key("share") {
            self.cannot("`delay.share`: netem delays all packets but those it reorders");
        }
        if table.contains_key("samples") {
            self.cannot("`delay.samples`: netem takes only tables from tc's library folder");
        }
        let text = |key: &str| table.get(key).and_then(Value::as_str);
        let spread = ["jitter", "sd"]
            .iter()
            .find_map(|key| Some((*key, text(key)?.parse::<Nanoseconds>().ok()?.0)));
        let Some((key, written_ns)) = spread.filter(|(_, ns)| *ns > 0.0) else {
            self.add(format!("delay {}", Time(self.mean_ns)));
            return;
        };
        self.order(table);
        let usual = if key == "jitter" { "uniform" } else { "normal" };
        let distribution = match table.get("distribution") {
            None => usual,
            Some(Value::String(word)) => word,
            Some(_) => {
                self.cannot(
                    "a distribution from a file: netem takes only tables from tc's library \
                     folder, by name",
                );
                return;
            }
        };
        let jitter_ns = match (key, distribution) {
            // Of a uniform distribution netem wants the half-width.
            ("sd", "uniform") => written_ns * 3f64.sqrt(),
            _ => written_ns,
        };
        self.shape(distribution, jitter_ns);
        let jitter = Time(jitter_ns.round() as u64);
        let distribution = match distribution {
            "uniform" => String::new(),
            word => format!(" distribution {word}"),
        };
        self.add(format!(
            "delay {} {jitter}{distribution}",
            Time(self.mean_ns)
        ));
    }

    fn order(&mut self, table: &Table) {
        let per_packet = table.get("reorder").and_then(Value::as_str) == Some("jitter");
        match (per_packet, self.rate_bits) {
            (false, None) => self.cannot(
                "jitter that keeps packets in order: netem draws for each packet, so they \
                 overtake (reorder = \"jitter\")",
            ),
            (_, Some(_)) => self.cannot(
                "jitter behind a rate: netem's jitter comes in front of its rate, where a busy \
                 link hides it",
            ),
            (true, None) => {}
        }
        if table.contains_key("correlation") {
            self.cannot(
                "`delay.correlation`: netem folds its correlated numbers by a remainder, which \
                 leaves next to none of the correlation",
            );
        }
    }

    /// Whether netem's table of that name goes with this mean, and what is wrong with it.
    fn shape(&mut self, distribution: &str, jitter_ns: f64) {
        let (lowest, sd) = match distribution {
            "uniform" => (1.0, 1.0),
            "normal" => (4.0, 1.0),
            "pareto" => (0.667, 0.82),
            "paretonormal" => (1.502, 0.834),
            other => {
                self.cannot(format!(
                    "distribution = \"{other}\": iproute2 has no such table"
                ));
                return;
            }
        };
        // A uniform jitter as wide as the mean may come back a rounding wider.
        if lowest * jitter_ns > self.mean_ns as f64 + 1.0 {
            self.cannot(format!(
                "{distribution} delays that end at zero: netem sends at once what would be \
                 delayed by less, which makes the mean higher and the spread smaller"
            ));
        }
        if jitter_ns > MOST_JITTER_NS {
            self.cannot("a jitter above 2.147483647 s: netem's ends there");
        }
        if sd < 1.0 {
            self.note(format!(
                "netem's table `{distribution}` is cut off at 4 times the jitter: its standard \
                 deviation is {sd} of what is asked"
            ));
        }
        self.delay_ns += (4.0 * jitter_ns) as u64;
    }
}
