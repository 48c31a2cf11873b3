// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile as canonical text, which reads back to an equal profile.

use std::fmt::Write;

use super::model::DEFAULT_INSTANCES;
use super::{Delay, Link, Loss, Offload, Profile, Queue, shared};
use crate::abi;
use crate::text::{Rate, Word};

impl Profile {
    /// TOML that parses to this profile; keys at their defaults are left out.
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
                        // Written where the queue is, so that `emud set` changes it in one place.
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

pub(super) fn line(out: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{key} = {value}");
}

fn quoted(value: impl std::fmt::Display) -> String {
    format!("\"{value}\"")
}

pub(super) fn section(out: &mut String, header: &str, link: &Link) {
    let _ = writeln!(out, "\n[{header}]");
    if let Some(bits) = link.rate {
        line(out, "rate", link.wire.with_rate(Rate(bits)));
    }
    if link.queue != Queue::default() {
        line(out, "queue", link.queue);
    }
    if link.delay != Delay::default() {
        line(out, "delay", link.delay.text());
    }
    if link.loss != Loss::default() {
        line(out, "loss", link.loss.text());
    }
    if let Some(reordering) = &link.reorder {
        line(out, "reorder", table(reordering.keys_text()));
    }
    if link.duplicate.probability != 0.0 {
        line(out, "duplicate", table(link.duplicate.keys_text()));
    }
    if link.corrupt.probability != 0.0 {
        line(out, "corrupt", table(link.corrupt.keys_text()));
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
}

/// A table of keys; of `probability` alone, its value.
fn table(keys: Vec<String>) -> String {
    match &keys[..] {
        [one] if let Some(plain) = one.strip_prefix("probability = ") => plain.to_owned(),
        _ => format!("{{ {} }}", keys.join(", ")),
    }
}
