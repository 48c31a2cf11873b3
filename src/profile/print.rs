// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile as canonical text, which reads back to an equal profile.

use std::fmt::Write;

use super::model::DEFAULT_INSTANCES;
use super::{
    Delay, Distribution, Jitter, Link, LinkState, Loss, Neighbours, Offload, Profile, Queue,
    Reordering, Shape, alter, loss, shared,
};
use crate::abi;
use crate::text::{Nanoseconds, Percent, Rate, Time, Word};

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
    if link.overhead != 0 {
        line(out, "overhead", link.overhead);
    }
    if link.queue != Queue::default() {
        line(out, "queue", link.queue);
    }
    if link.delay != Delay::default() {
        line(out, "delay", delay(&link.delay));
    }
    if link.loss != Loss::default() {
        line(out, "loss", loss::text(&link.loss));
    }
    if link.neighbours != Neighbours::default() {
        line(out, "neighbours", quoted(link.neighbours.word()));
    }
    if let Some(reordering) = &link.reorder {
        line(out, "reorder", reorder(reordering));
    }
    if link.duplicate.probability != 0.0 {
        line(out, "duplicate", alter::duplicate_text(&link.duplicate));
    }
    if link.corrupt.probability != 0.0 {
        line(out, "corrupt", alter::corrupt_text(&link.corrupt));
    }
    if let Some(name) = &link.shared {
        line(out, "shared", quoted(name));
    }
    if link.state != LinkState::default() {
        line(out, "state", quoted(link.state.word()));
    }
    if let Some(trace) = &link.trace {
        line(out, "trace", trace.text());
    }
    if let Some(slot) = &link.slot {
        line(out, "slot", slot.text());
    }
}

fn delay(delay: &Delay) -> String {
    let mean = quoted(Time(delay.mean_ns));
    let share = delay
        .share
        .map(|share| format!(", share = \"{}\"", Percent(share)))
        .unwrap_or_default();
    let Some(jitter) = &delay.jitter else {
        return match share.is_empty() {
            true => mean,
            false => format!("{{ mean = {mean}{share} }}"),
        };
    };
    let coherence = jitter
        .coherence_ns
        .map(|ns| format!(", coherence = \"{}\"", Time(ns)))
        .unwrap_or_default();
    let correlation = match jitter.correlation {
        0.0 => String::new(),
        r => format!(", correlation = \"{}\"", Percent(r)),
    };
    format!(
        "{{ mean = {mean}, {}, distribution = {}, reorder = \"{}\"{coherence}{correlation}{share} }}",
        spread(jitter),
        shape(&jitter.distribution),
        jitter.reorder.word(),
    )
}

/// A table is written out: its file may be gone when this is read.
fn shape(shape: &Shape) -> String {
    match shape {
        Shape::Table(table) => format!("{{ table = \"{}\" }}", table.to_text()),
        named => quoted(named.word()),
    }
}

fn reorder(reordering: &Reordering) -> String {
    let mut keys = format!("probability = \"{}\"", Percent(reordering.probability));
    if reordering.correlation != 0.0 {
        let _ = write!(
            keys,
            ", correlation = \"{}\"",
            Percent(reordering.correlation)
        );
    }
    if reordering.gap != 1 {
        let _ = write!(keys, ", gap = {}", reordering.gap);
    }
    format!("{{ {keys} }}")
}

/// The half-width that a uniform distribution was written with, if it was; else `sd`.
fn spread(jitter: &Jitter) -> String {
    let half = (jitter.sd_ns * 3f64.sqrt()).round();
    let uniform = jitter.distribution == Distribution::Uniform.into();
    if uniform && half / 3f64.sqrt() == jitter.sd_ns {
        return format!("jitter = \"{}\"", Nanoseconds(half));
    }
    format!("sd = \"{}\"", Nanoseconds(jitter.sd_ns))
}
