// SPDX-License-Identifier: GPL-2.0-only
//! A profile as canonical text, which reads back to an equal profile.

use std::fmt::Write;

use super::{Delay, Distribution, Jitter, Link, Neighbours, Offload, Profile, Queue};
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
        if self.up == self.down {
            section(&mut out, "link", &self.up);
        } else {
            section(&mut out, "up", &self.up);
            section(&mut out, "down", &self.down);
        }
        out
    }
}

fn line(out: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{key} = {value}");
}

fn quoted(value: impl std::fmt::Display) -> String {
    format!("\"{value}\"")
}

fn section(out: &mut String, header: &str, link: &Link) {
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
    if link.loss != 0.0 {
        line(out, "loss", quoted(Percent(link.loss)));
    }
    if link.neighbours != Neighbours::default() {
        line(out, "neighbours", quoted(link.neighbours.word()));
    }
}

fn delay(delay: &Delay) -> String {
    let mean = quoted(Time(delay.mean_ns));
    let Some(jitter) = &delay.jitter else {
        return mean;
    };
    let coherence = jitter
        .coherence_ns
        .map(|ns| format!(", coherence = \"{}\"", Time(ns)))
        .unwrap_or_default();
    format!(
        "{{ mean = {mean}, {}, distribution = \"{}\", reorder = \"{}\"{coherence} }}",
        spread(jitter),
        jitter.distribution.word(),
        jitter.reorder.word(),
    )
}

/// The half-width that a uniform distribution was written with, if it was; else `sd`.
fn spread(jitter: &Jitter) -> String {
    let half = (jitter.sd_ns * 3f64.sqrt()).round();
    if jitter.distribution == Distribution::Uniform && half / 3f64.sqrt() == jitter.sd_ns {
        return format!("jitter = \"{}\"", Nanoseconds(half));
    }
    format!("sd = \"{}\"", Nanoseconds(jitter.sd_ns))
}
