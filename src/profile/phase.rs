// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[phase]]`: one link after another; `[[state]]`, where chance says which, is read here, too.

use std::fmt::Write;

use super::Link;
use super::print::{line, section as print_section};
use super::states::Chain;
use crate::text::Time;

/// Links by time; without phases the profile's own is there all the time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Phases {
    /// In the order of time.
    pub list: Vec<Phase>,
    /// They are states, which follow each other at random, over and over.
    pub chain: Option<Chain>,
    /// Over and over; else the last one lasts for ever.
    pub repeat: bool,
    /// Where in them it begins, ns.
    pub offset_ns: u64,
}

/// A link for a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Phase {
    /// Above 0; only the last one, of phases that do not repeat, may be for ever. The mean of a
    /// state.
    pub for_ns: Option<u64>,
    /// Rate, delay and loss go linearly from those of the phase before to this one's.
    pub ramp: bool,
    /// Name in the output of `show`; by default that of its link.
    pub name: Option<String>,
    /// Egress.
    pub up: Link,
    /// Ingress.
    pub down: Link,
}

impl Phase {
    /// Returns the link of a direction (`EMUD_UP`, `EMUD_DOWN`).
    pub fn direction(&self, direction: u32) -> &Link {
        if direction == crate::abi::EMUD_UP {
            &self.up
        } else {
            &self.down
        }
    }
}

impl Phases {
    pub(super) fn reversed(self) -> Self {
        let turn = |phase: Phase| Phase {
            up: phase.down,
            down: phase.up,
            ..phase
        };
        Self {
            list: self.list.into_iter().map(turn).collect(),
            ..self
        }
    }

    /// Writes the key at the top.
    pub(super) fn top(&self, out: &mut String) {
        if self.chain.is_some() || !self.repeat && self.offset_ns == 0 {
            return;
        }
        let mut text = format!("{{ loop = {}", self.repeat);
        if self.offset_ns > 0 {
            let _ = write!(text, ", offset = \"{}\"", Time(self.offset_ns));
        }
        line(out, "phases", text + " }");
    }

    /// Writes a table for each phase, with all keys of its links.
    pub(super) fn tables(&self, out: &mut String) {
        let (kind, duration) = match self.chain {
            None => ("phase", "for"),
            Some(_) => ("state", "dwell"),
        };
        for (i, phase) in self.list.iter().enumerate() {
            let _ = writeln!(out, "\n[[{kind}]]");
            if let Some(ns) = phase.for_ns {
                line(out, duration, format!("\"{}\"", Time(ns)));
            }
            if let Some(next) = self.next_text(i) {
                line(out, "next", next);
            }
            if phase.ramp {
                line(out, "ramp", true);
            }
            line(out, "whole", true);
            if let Some(name) = &phase.name {
                line(out, "name", toml::Value::String(name.clone()));
            }
            print_section(out, &format!("{kind}.up"), &phase.up);
            print_section(out, &format!("{kind}.down"), &phase.down);
        }
    }
}
