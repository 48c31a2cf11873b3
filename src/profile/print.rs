// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile as canonical text, which reads back to an equal profile.

use std::fmt::Write;

use super::model::DEFAULT_INSTANCES;
use super::{Delay, Link, Loss, Offload, Profile, Queue, Wire, background, shared};
use crate::abi;
use crate::text::{Rate, Word, braced};

impl Profile {
    /// Returns TOML that parses to this profile, without keys at their defaults.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        for (key, text) in [
            ("name", &self.name),
            ("description", &self.description),
            ("source", &self.source),
        ] {
            if !text.is_empty() {
                line(&mut out, key, toml::Value::String(text.clone()));
            }
        }
        if let Some(seed) = self.seed {
            line(&mut out, "seed", seed);
        }
        if self.offload != Offload::default() {
            line(&mut out, "offload", quoted(self.offload.word()));
        }
        if self.instances != DEFAULT_INSTANCES {
            line(&mut out, "instances", self.instances);
        }
        self.phases.top(&mut out);
        if self.up == self.down {
            section(&mut out, "link", &self.up);
        } else {
            section(&mut out, "up", &self.up);
            section(&mut out, "down", &self.down);
        }
        for (number, named) in (1..).zip(&self.links) {
            let header = format!("links.{}", named.name);
            let takes =
                [abi::EMUD_UP, abi::EMUD_DOWN].map(|d| self.bottleneck(d, number) != number);
            let [up, down] =
                [(&named.up, takes[0]), (&named.down, takes[1])].map(|(link, takes)| {
                    match takes {
                        // Written where the queue is, so that `emud set` changes it once.
                        true => shared::without_queue(link),
                        false => link.clone(),
                    }
                });
            if up == down {
                section(&mut out, &header, &up);
            } else {
                section(&mut out, &format!("{header}.up"), &up);
                section(&mut out, &format!("{header}.down"), &down);
            }
        }
        for bottleneck in &self.bottlenecks {
            out.push_str(&bottleneck.to_toml());
        }
        for rule in &self.rules {
            out.push_str(&rule.to_toml());
        }
        if let Some(matrix) = &self.matrix {
            out.push_str(&matrix.to_toml());
        }
        self.phases.tables(&mut out);
        out
    }
}

impl Profile {
    /// Returns the figures of the link on one line, as assignments; those of other links, rules and
    /// phases are only counted.
    pub fn one_line(&self) -> String {
        let of = |link: &Link| {
            let mut text = String::new();
            section(&mut text, "", link);
            let keys: Vec<&str> = text.lines().skip(2).collect();
            match keys.is_empty() {
                true => "no delay, no limit".to_owned(),
                false => keys.join(", "),
            }
        };
        let mut parts = match self.up == self.down {
            true => vec![of(&self.up)],
            false => vec![
                format!("up: {}", of(&self.up)),
                format!("down: {}", of(&self.down)),
            ],
        };
        let counts = [
            (self.links.len(), "named link"),
            (self.bottlenecks.len(), "bottleneck"),
            (self.rules.len(), "rule"),
            (self.phases.list.len(), "phase"),
        ];
        let counts = counts.into_iter().filter(|(n, _)| *n > 0);
        parts
            .extend(counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" })));
        parts.extend(self.matrix.is_some().then(|| "a matrix".to_owned()));
        parts.join("; ")
    }
}

pub(super) fn line(out: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{key} = {value}");
}

fn quoted(value: impl std::fmt::Display) -> String {
    format!("\"{value}\"")
}

pub(super) fn section(out: &mut String, header: &str, link: &Link) {
    let _ = writeln!(out, "\n[{header}]");
    if link.rate.is_some() || link.wire != Wire::default() {
        line(out, "rate", link.wire.with_rate(link.rate.map(Rate)));
    }
    // Not as if it had been written: without the background it is another.
    let usual = link.background.is_some() && link.queue == background::usual_queue();
    if link.queue != Queue::default() && !usual {
        line(out, "queue", link.queue);
    }
    if link.delay != Delay::default() {
        line(out, "delay", link.delay.text());
    }
    if link.loss != Loss::default() {
        line(out, "loss", link.loss.text());
    }
    if let Some(reordering) = &link.reorder {
        line(
            out,
            "reorder",
            braced(&reordering.keys_text(), "probability"),
        );
    }
    if link.duplicate.probability != 0.0 {
        line(
            out,
            "duplicate",
            braced(&link.duplicate.keys_text(), "probability"),
        );
    }
    if link.corrupt.probability != 0.0 {
        line(
            out,
            "corrupt",
            braced(&link.corrupt.keys_text(), "probability"),
        );
    }
    for key in link.keys_text() {
        // With its wire, above.
        if !key.starts_with("rate = ") {
            let _ = writeln!(out, "{key}");
        }
    }
    if let Some(trace) = &link.trace {
        line(out, "trace", trace.text());
    }
    if let Some(slot) = &link.slot {
        line(out, "slot", slot.text());
    }
    if let Some(background) = &link.background {
        line(out, "background", braced(&background.keys_text(), "load"));
    }
}
