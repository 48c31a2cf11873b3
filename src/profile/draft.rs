// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has been written so far about a link, each value with its place.
//!
//! A table or an assignment is applied to a draft, so a later one overrides an earlier one key by
//! key. Whether the values go together is judged at the end, in `check`.

use std::sync::Arc;

use super::keyed::Keyed;
use super::loss::LinkState;
use super::queueing::QueueDraft;
use super::reordering::ReorderDraft;
use super::slot::SlotDraft;
use super::trace_read::TraceDraft;
use super::wire::WireDraft;
use super::words::ShapeWord;
use super::{Neighbours, Reorder, Shape, alter, file, keys, shared};
use crate::text::{
    At, Entry, Located, Mistake, Nanoseconds, Percent, Reader, Value, duration, quantity, word,
};

/// Takes a value away again.
const NONE: &str = "none";

#[derive(Debug, Clone, Default)]
pub(super) struct LinkDraft {
    pub rate: Option<Located<u64>>,
    pub overhead: Option<Located<i32>>,
    pub wire: WireDraft,
    pub queue: QueueDraft,
    pub delay: DelayDraft,
    pub loss: Keyed,
    pub neighbours: Option<Located<Neighbours>>,
    pub reorder: Option<ReorderDraft>,
    pub duplicate: Keyed,
    pub corrupt: Keyed,
    pub state: Option<Located<LinkState>>,
    pub shared: Option<Located<String>>,
    pub trace: TraceDraft,
    pub slot: SlotDraft,
}

#[derive(Debug, Clone, Default)]
pub(super) struct DelayDraft {
    /// The table, if it was written as one.
    pub table: Option<At>,
    pub mean: Option<Located<u64>>,
    pub spread: Option<Located<Spread>>,
    pub distribution: Option<Located<Shape>>,
    pub reorder: Option<Located<Reorder>>,
    pub coherence: Option<Located<u64>>,
    pub correlation: Option<Located<f64>>,
    pub share: Option<Located<f64>>,
    /// In place of a distribution; with a mean and a standard deviation of its own.
    pub samples: Option<Located<file::Measured>>,
    /// A value could not be read: what goes with it is not judged.
    pub broken: bool,
}

/// The two ways to say how much the delay varies; each replaces the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spread {
    /// Half-width of a uniform distribution, standard deviation of the others; ns.
    Jitter(f64),
    /// Standard deviation in ns.
    Sd(f64),
}

impl Reader {
    /// [`Reader::put`], where `none` empties the slot.
    pub(super) fn put_or_remove<T>(
        &mut self,
        slot: &mut Option<Located<T>>,
        value: &Located<Value>,
        read: impl Fn(&Located<Value>) -> Result<T, Mistake>,
    ) {
        match is_none(value) {
            true => *slot = None,
            false => self.put(slot, value, read),
        }
    }

    /// Applies a link table.
    pub(super) fn link(&mut self, draft: &mut LinkDraft, entries: &[Entry]) {
        for entry in entries {
            self.link_key(draft, entry);
        }
    }

    /// Applies one key of a link.
    pub(super) fn link_key(&mut self, draft: &mut LinkDraft, entry: &Entry) {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "rate" => self.rate(draft, value),
            "overhead" => self.put_or_remove(&mut draft.overhead, value, overhead),
            "queue" => self.queue(&mut draft.queue, value),
            "delay" => self.delay(&mut draft.delay, value),
            "loss" => self.loss(&mut draft.loss, value),
            "neighbours" => self.put(&mut draft.neighbours, value, |v| word(v, "neighbours")),
            "reorder" => self.reorder(&mut draft.reorder, value),
            "duplicate" => self.keyed(&mut draft.duplicate, &alter::DUPLICATE, value),
            "corrupt" => self.keyed(&mut draft.corrupt, &alter::CORRUPT, value),
            "shared" => self.put_or_remove(&mut draft.shared, value, shared::name),
            "state" => self.put(&mut draft.state, value, |v| word(v, "state")),
            "trace" => self.trace(&mut draft.trace, value),
            "slot" => self.slot(&mut draft.slot, value),
            _ => self.mistakes.push(keys::unknown(&entry.key, &keys::LINK)),
        }
    }

    fn delay(&mut self, draft: &mut DelayDraft, value: &Located<Value>) {
        if is_none(value) {
            *draft = DelayDraft::default();
            return;
        }
        if let Value::Table(entries) = &value.value {
            draft.table = Some(value.at.clone());
            let before = self.mistakes.len();
            self.delay_table(draft, entries);
            draft.broken |= self.mistakes.len() > before;
            return;
        }
        let mut plain = DelayDraft::default();
        self.put(&mut plain.mean, value, |v| duration(v, "delay"));
        *draft = plain;
    }

    fn delay_table(&mut self, draft: &mut DelayDraft, entries: &[Entry]) {
        self.samples(draft, entries);
        self.spread(draft, entries);
        for entry in entries {
            let value = &entry.value;
            match entry.key.value.as_str() {
                "jitter" | "sd" | "samples" => {}
                "mean" => self.put(&mut draft.mean, value, |v| duration(v, "mean")),
                "distribution" => self.distribution(draft, entry),
                "reorder" => self.put(&mut draft.reorder, value, |v| word(v, "reorder")),
                "coherence" => {
                    self.put_or_remove(&mut draft.coherence, value, |v| duration(v, "coherence"));
                }
                "correlation" => self.put_or_remove(&mut draft.correlation, value, correlation),
                "share" => self.put_or_remove(&mut draft.share, value, |v| {
                    quantity(v, "share", "\"5%\"").map(|Percent(share)| share)
                }),
                _ => self.mistakes.push(keys::unknown(&entry.key, &keys::DELAY)),
            }
        }
    }

    /// `samples` say all about the delay but what else is written with them.
    fn samples(&mut self, draft: &mut DelayDraft, entries: &[Entry]) {
        let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
        let Some(entry) = find("samples") else { return };
        if let Some(second) = find("distribution") {
            self.mistakes.push(Mistake::new(
                &second.key.at,
                "both `samples` and `distribution` are given",
                "keep one: samples are a distribution",
            ));
        }
        let Value::Table(keys) = &entry.value.value else {
            let title = format!("`samples` cannot be {}", entry.value.value.kind());
            let help = "name the file: samples = { file = \"rtt.csv\", unit = \"ms\" }";
            return self
                .mistakes
                .push(Mistake::new(&entry.value.at, title, help));
        };
        match file::samples(self, &entry.value, keys) {
            Ok(measured) => {
                draft.mean = None;
                draft.spread = None;
                draft.distribution = None;
                draft.samples = Some(Located {
                    value: measured,
                    at: entry.value.at.clone(),
                });
            }
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    fn distribution(&mut self, draft: &mut DelayDraft, entry: &Entry) {
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

    /// `jitter` and `sd`: one slot.
    fn spread(&mut self, draft: &mut DelayDraft, entries: &[Entry]) {
        let mut given = entries
            .iter()
            .filter(|e| matches!(e.key.value.as_str(), "jitter" | "sd"));
        let Some(entry) = given.next() else { return };
        if let Some(second) = given.next() {
            self.mistakes.push(Mistake::new(
                &second.key.at,
                "both `jitter` and `sd` are given",
                "keep one: `jitter` is the half-width of a uniform distribution (mean +- jitter), \
                 `sd` the standard deviation of any",
            ));
        }
        if is_none(&entry.value) {
            // What describes the jitter goes with it.
            *draft = DelayDraft {
                table: draft.table.take(),
                mean: draft.mean.take(),
                share: draft.share.take(),
                ..DelayDraft::default()
            };
            return;
        }
        let key = entry.key.value.as_str();
        self.put(&mut draft.spread, &entry.value, |v| {
            let Nanoseconds(ns) = quantity(v, key, "\"5ms\"")?;
            Ok(if key == "sd" {
                Spread::Sd(ns)
            } else {
                Spread::Jitter(ns)
            })
        });
    }
}

pub(super) fn is_none(value: &Located<Value>) -> bool {
    matches!(&value.value, Value::Text(text) if text == NONE)
}

/// A correlation, which is less than 1: with 1, one packet would decide for all.
pub(super) fn correlation(value: &Located<Value>) -> Result<f64, Mistake> {
    let Percent(share) = quantity(value, "correlation", "\"25%\"")?;
    if share < 1.0 {
        return Ok(share);
    }
    let help = "take less, such as \"99%\"; what never changes is a constant";
    Err(Mistake::new(&value.at, "a correlation of 100 %", help))
}

pub(super) fn overhead(value: &Located<Value>) -> Result<i32, Mistake> {
    const RANGE: std::ops::RangeInclusive<i32> = -64..=4096;
    let (Value::Number(text) | Value::Text(text)) = &value.value else {
        let title = format!("`overhead` cannot be {}", value.value.kind());
        return Err(Mistake::new(
            &value.at,
            title,
            "write bytes a packet, such as overhead = 18",
        ));
    };
    match text.parse::<i32>() {
        Ok(bytes) if RANGE.contains(&bytes) => Ok(bytes),
        Ok(_) => Err(Mistake::new(
            &value.at,
            format!("an overhead of {text} bytes is out of range"),
            "it is from -64 to 4096 bytes a packet",
        )),
        Err(_) => Err(Mistake::new(
            &value.at,
            format!("`{text}` is not a whole number of bytes"),
            "write bytes a packet from -64 to 4096, without a unit, such as overhead = 18",
        )),
    }
}
