// SPDX-License-Identifier: MIT OR Apache-2.0
//! `delay` of a link as it is written.

use std::sync::Arc;

use super::delay::{DelayDraft, JitterDraft, Spread};
use super::distance::{DistanceDraft, LIGHT_M_S, instead_of_a_delay};
use super::words::ShapeWord;
use super::{Shape, file, keys};
use crate::text::{
    Draft, Entry, Located, Nanoseconds, Reader, Time, Value, is_none, quantity, word,
};

impl Reader {
    /// Reads the value of `delay`: a table, or a duration for a constant delay.
    pub(super) fn delay(&mut self, draft: &mut DelayDraft, value: &Located<Value>) {
        let Value::Table(entries) = &value.value else {
            if let Some(mistake) = instead_of_a_delay(value) {
                self.mistakes.push(mistake);
                draft.broken = true;
                return;
            }
            self.table(draft, value, ("delay", "mean"), |key| {
                keys::unknown(key, &keys::DELAY)
            });
            // No table, which would need a mean.
            draft.at = None;
            return;
        };
        draft.at = Some(value.at.clone());
        let before = self.mistakes.len();
        self.samples(draft, entries);
        self.distance(draft, entries);
        self.spread(draft, entries);
        for entry in entries {
            let key = entry.key.value.as_str();
            if key == "mean"
                && let Some(mistake) = instead_of_a_delay(&entry.value)
            {
                self.mistakes.push(mistake);
                continue;
            }
            match key {
                "distance" | "jitter" | "sd" | "samples" => {}
                "distribution" => self.distribution(&mut draft.jitter, entry),
                _ if draft.key(self, entry) || draft.jitter.key(self, entry) => {}
                _ => self.mistakes.push(keys::unknown(&entry.key, &keys::DELAY)),
            }
        }
        draft.broken |= self.mistakes.len() > before;
    }

    /// Reads `samples`, which determine all of the delay except keys that are written beside them.
    fn samples(&mut self, draft: &mut DelayDraft, entries: &[Entry]) {
        let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
        let Some(entry) = find("samples") else { return };
        if let Some(second) = find("distribution") {
            self.mistake(
                &second.key.at,
                "both `samples` and `distribution` are given",
                "keep one: samples are a distribution",
            );
        }
        let Value::Table(keys) = &entry.value.value else {
            let help = "name the file: samples = { file = \"rtt.csv\", unit = \"ms\" }";
            return self.wrong_kind(&entry.value, "samples", help);
        };
        match file::samples(self, &entry.value, keys) {
            Ok(measured) => {
                draft.mean_ns = None;
                draft.jitter.spread = None;
                draft.jitter.distribution = None;
                draft.jitter.samples = Some(Located {
                    value: measured,
                    at: entry.value.at.clone(),
                });
            }
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    fn distribution(&mut self, draft: &mut JitterDraft, entry: &Entry) {
        let value = &entry.value;
        let read = match &value.value {
            Value::Table(keys) => {
                file::distribution(self, value, keys).map(|table| Shape::Table(Arc::new(table)))
            }
            _ => word::<ShapeWord>(value, "distribution").map(Shape::from),
        };
        match read {
            Ok(shape) => {
                draft.samples = None;
                draft.distribution = Some(Located {
                    value: shape,
                    at: value.at.clone(),
                });
            }
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    /// Reads `jitter` and `sd`, which are one slot.
    fn spread(&mut self, draft: &mut DelayDraft, entries: &[Entry]) {
        let mut given = entries
            .iter()
            .filter(|e| matches!(e.key.value.as_str(), "jitter" | "sd"));
        let Some(entry) = given.next() else { return };
        if let Some(second) = given.next() {
            self.mistake(
                &second.key.at,
                "both `jitter` and `sd` are given",
                "keep one: `jitter` is the half-width of a uniform distribution (mean +- jitter), \
                 `sd` the standard deviation of any",
            );
        }
        if is_none(&entry.value) {
            // What describes the jitter goes with it.
            draft.jitter = JitterDraft::default();
            return;
        }
        let key = entry.key.value.as_str();
        self.put(&mut draft.jitter.spread, &entry.value, |v| {
            let Nanoseconds(ns) = quantity(v, key, "\"5ms\"")?;
            Ok(if key == "sd" {
                Spread::Sd(ns)
            } else {
                Spread::Jitter(ns)
            })
        });
    }

    /// Reads `distance`. It and `mean` are one slot: each replaces the other.
    fn distance(&mut self, draft: &mut DelayDraft, entries: &[Entry]) {
        let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
        let Some(entry) = find("distance") else {
            return;
        };
        if is_none(&entry.value) {
            draft.mean_ns = None;
            return;
        }
        let before = self.mistakes.len();
        if find("mean").is_some() {
            let help = "keep one: the propagation delay of `distance` is the mean; to add other \
                        delays, write their sum as `mean`";
            let title = "both `mean` and `distance` are given";
            self.mistake(&entry.key.at, title, help);
        }
        let mut read = DistanceDraft::default();
        self.table(&mut read, &entry.value, ("distance", "length"), |key| {
            keys::unknown(key, &keys::DISTANCE)
        });
        if self.mistakes.len() > before {
            return;
        }
        let at = &entry.value.at;
        let Some(length) = &read.length_m else {
            let help = "write distance = { length = \"300km\" } or distance = \"300km\"";
            return self.mistake(at, "a distance without `length`", help);
        };
        let distance = read.values();
        let ns = distance.propagation_ns();
        if ns > Time::MAX.0 as f64 {
            let limit_km = (distance.velocity_factor * LIGHT_M_S * 3.6).floor();
            let help = format!(
                "the limit is a delay of an hour, \"{limit_km}km\" at this propagation speed"
            );
            return self.mistake(&length.at, "a distance of more than an hour", help);
        }
        draft.mean_ns = Some(Located {
            value: ns.round() as u64,
            at: at.clone(),
        });
    }
}
