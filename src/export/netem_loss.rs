// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss, duplication, corruption, reordering.

use toml::{Table, Value};

use super::netem::Options;
use crate::profile::Percent;

const CORRELATION: &str = "netem's correlation squeezes its random numbers towards one half, which \
    changes the probability";

impl Options {
    pub(super) fn loss(&mut self, value: Option<&Value>) {
        let table = match value {
            None => return,
            Some(Value::Table(table)) => table,
            Some(plain) => {
                let share = plain.as_str().unwrap_or("0%").to_owned();
                self.loss_stage(None);
                self.add(format!("loss random {share}"));
                return;
            }
        };
        self.loss_stage(table.get("stage").and_then(Value::as_str));
        let text = |key: &str| table.get(key).and_then(Value::as_str);
        match text("model") {
            Some("bernoulli") | None => {
                self.only(
                    "loss",
                    table,
                    &["model", "stage", "ecn", "probability", "correlation"],
                );
                if table.contains_key("correlation") {
                    self.cannot(format!("`loss.correlation`: {CORRELATION}"));
                }
                self.add(format!(
                    "loss random {}",
                    text("probability").unwrap_or("0%")
                ));
            }
            Some("gilbert-elliott") => {
                self.only(
                    "loss",
                    table,
                    &["model", "stage", "ecn", "p", "r", "bad", "good"],
                );
                let p = text("p").unwrap_or("0%");
                let words = [p, &rest_of(p), "100%", "0%"];
                self.model("gemodel", table, &["p", "r", "bad", "good"], words);
            }
            Some("four-state") => {
                let keys = ["p13", "p31", "p32", "p23", "p14"];
                let known = ["model", "stage", "ecn", "p13", "p31", "p32", "p23", "p14"];
                self.only("loss", table, &known);
                let p = text("p13").unwrap_or("0%");
                self.model("state", table, &keys, [p, &rest_of(p), "0%", "100%", "0%"]);
            }
            Some(other) => self.cannot(format!("loss model \"{other}\": netem has no such model")),
        }
        self.ecn(table);
    }

    fn ecn(&mut self, loss: &Table) {
        let marks = loss.get("ecn").and_then(Value::as_bool) == Some(true);
        // tc refuses it where nothing is lost, and there it says nothing.
        if marks && loss.get("probability").and_then(Value::as_str) != Some("0%") {
            self.add("ecn");
        }
    }

    /// netem loses a packet before it takes up any of the rate.
    fn loss_stage(&mut self, stage: Option<&str>) {
        if self.rate_bits.is_some() && stage != Some("before-queue") {
            self.cannot(
                "loss behind a rate: what netem loses takes nothing of the rate (stage = \
                 \"before-queue\")",
            );
        }
    }

    /// `loss NAME` and the values of `keys`, or their defaults.
    fn model<const N: usize>(
        &mut self,
        name: &str,
        table: &Table,
        keys: &[&str; N],
        defaults: [&str; N],
    ) {
        let mut words = format!("loss {name}");
        for (key, default) in keys.iter().zip(defaults) {
            let value = table.get(*key).and_then(Value::as_str).unwrap_or(default);
            words += &format!(" {value}");
        }
        self.add(words);
    }

    /// Duplication, corruption, reordering.
    pub(super) fn alter(&mut self, link: &Table) {
        self.duplicate(link);
        if let Some(share) = self.chance("corrupt", link, &["bits", "from", "checksum"]) {
            let table = link.get("corrupt").and_then(Value::as_table);
            let get = |key: &str| table.and_then(|table| table.get(key));
            let number = |key: &str| get(key).and_then(Value::as_integer);
            if number("bits").is_some_and(|bits| bits != 1) {
                self.cannot("`corrupt.bits`: netem turns one bit");
            }
            if number("from").is_some_and(|from| from != 0) {
                self.cannot("`corrupt.from`: netem turns any bit of the packet's first buffer");
            }
            if get("checksum").and_then(Value::as_str) == Some("mend") {
                self.cannot("`corrupt.checksum`: netem never mends one");
            }
            self.note(
                "netem turns bits of the link's header too, and of data that is sent often \
                 nothing but headers",
            );
            self.add(format!("corrupt {share}"));
        }
        if let Some(share) = self.chance("reorder", link, &["gap"]) {
            if self.mean_ns == 0 {
                self.cannot("`reorder` without a delay: tc refuses it");
            }
            if self.rate_bits.is_some() {
                self.cannot("`reorder` with a rate: what netem sends at once goes past its rate");
            }
            let gap = link
                .get("reorder")
                .and_then(|table| table.get("gap")?.as_integer())
                .filter(|gap| *gap > 1)
                .map(|gap| format!(" gap {gap}"))
                .unwrap_or_default();
            self.add(format!("reorder {share}{gap}"));
        }
    }

    fn duplicate(&mut self, link: &Table) {
        let Some(share) = self.chance("duplicate", link, &[]) else {
            return;
        };
        if self.rate_bits.is_some() {
            self.note(
                "netem's copy takes its turn at the rate and room in the queue as any packet \
                     does, emud's takes neither",
            );
        }
        if link.contains_key("loss") {
            self.note(
                "netem sends a packet that is to be lost and doubled once, and loses copies \
                     too; emud copies only what is not lost",
            );
        }
        self.add(format!("duplicate {share}"));
    }

    /// The probability under `key`; a correlation is what netem cannot do.
    fn chance(&mut self, key: &str, link: &Table, others: &[&str]) -> Option<String> {
        let value = link.get(key)?;
        if let Some(table) = value.as_table() {
            let mut known = vec!["probability", "correlation"];
            known.extend(others);
            self.only(key, table, &known);
            if table.contains_key("correlation") {
                self.cannot(format!("`{key}.correlation`: {CORRELATION}"));
            }
        }
        let text = value
            .as_str()
            .or_else(|| value.get("probability")?.as_str());
        if text.is_none() {
            self.cannot(format!("{key} = {value}: this is not a probability"));
        }
        text.map(str::to_owned)
    }
}

/// 100 % less `share`.
fn rest_of(share: &str) -> String {
    let Percent(p) = share.parse().unwrap_or(Percent(0.0));
    Percent(1.0 - p).to_string()
}
