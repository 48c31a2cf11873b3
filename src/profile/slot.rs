// SPDX-License-Identifier: MIT OR Apache-2.0
//! `slot`: departures in slots, as on a link whose time is divided.

use std::fmt::Write;

use super::check::value;
use super::draft::is_none;
use super::keys;
use super::queue::{self, Bytes, Packets, some_bytes};
use crate::text::{At, Entry, Located, Mistake, Reader, Time, Value, duration, quantity};

/// Slots follow one another at distances uniform between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// 1 ns ..= `max_ns`.
    pub min_ns: u64,
    /// At most an hour.
    pub max_ns: u64,
    /// Of a slot; `None`: any.
    pub packets: Option<u32>,
    pub bytes: Option<u32>,
}

impl Slot {
    /// As the value of the key.
    pub(super) fn text(&self) -> String {
        let mut out = format!("{{ min = \"{}\"", Time(self.min_ns));
        // Else it goes along with `min`, as where it was not given.
        if self.max_ns != self.min_ns {
            let _ = write!(out, ", max = \"{}\"", Time(self.max_ns));
        }
        if let Some(packets) = self.packets {
            let _ = write!(out, ", packets = {packets}");
        }
        if let Some(bytes) = self.bytes {
            let _ = write!(out, ", bytes = \"{}\"", Bytes(bytes.into()));
        }
        out + " }"
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct SlotDraft {
    at: Option<At>,
    min: Option<Located<u64>>,
    max: Option<Located<u64>>,
    packets: Option<Located<u32>>,
    bytes: Option<Located<u32>>,
    /// A value could not be read: what goes with it is not judged.
    broken: bool,
}

impl Reader {
    /// A plain duration is a constant distance.
    pub(super) fn slot(&mut self, draft: &mut SlotDraft, value: &Located<Value>) {
        if is_none(value) {
            *draft = SlotDraft::default();
            return;
        }
        draft.at = Some(value.at.clone());
        let before = self.mistakes.len();
        match &value.value {
            Value::Table(entries) => self.slot_table(draft, entries),
            _ => {
                self.put(&mut draft.min, value, |v| duration(v, "slot"));
                draft.max = None;
            }
        }
        draft.broken |= self.mistakes.len() > before;
    }

    fn slot_table(&mut self, draft: &mut SlotDraft, entries: &[Entry]) {
        for entry in entries {
            let value = &entry.value;
            match entry.key.value.as_str() {
                "min" => self.put(&mut draft.min, value, |v| duration(v, "min")),
                "max" => self.put_or_remove(&mut draft.max, value, |v| duration(v, "max")),
                "packets" => self.put_or_remove(&mut draft.packets, value, packets),
                "bytes" => self.put_or_remove(&mut draft.bytes, value, |v| {
                    some_bytes(v, "bytes", "\"64kB\"").map(|bytes| bytes as u32)
                }),
                _ => self.mistakes.push(keys::unknown(&entry.key, &keys::SLOT)),
            }
        }
    }

    /// The finished slots; meaningless if that adds a mistake.
    pub(super) fn finish_slot(&mut self, draft: &SlotDraft) -> Option<Slot> {
        let at = draft.at.as_ref().filter(|_| !draft.broken)?;
        let Some(min) = &draft.min else {
            let help = "say how far apart slots are: slot = { min = \"10ms\", max = \"20ms\" }";
            self.mistakes
                .push(Mistake::new(at, "slots without `min`", help));
            return None;
        };
        let max = value(&draft.max).unwrap_or(min.value);
        let wrong = match (min.value, draft.max.as_ref()) {
            (0, _) => Some((&min.at, "slots no time apart")),
            (min, Some(max)) if max.value < min => Some((&max.at, "`max` is below `min`")),
            _ => None,
        };
        if let Some((at, title)) = wrong {
            let help = "distances are from `min` to `max`, both above 0";
            self.mistakes.push(Mistake::new(at, title, help));
        }
        Some(Slot {
            min_ns: min.value,
            max_ns: max,
            packets: value(&draft.packets),
            bytes: value(&draft.bytes),
        })
    }
}

/// Bare, or with its unit.
fn packets(value: &Located<Value>) -> Result<u32, Mistake> {
    if let Value::Number(text) = &value.value {
        let with_unit = Located {
            value: Value::Text(format!("{text}p")),
            at: value.at.clone(),
        };
        return packets(&with_unit);
    }
    if let Value::Text(text) = &value.value
        && queue::is_nothing(text)
    {
        let help = "leave it out for slots of any number, or write packets = 1";
        return Err(Mistake::new(&value.at, "slots of no packet", help));
    }
    quantity(value, "packets", "32").map(|Packets(packets)| packets)
}
