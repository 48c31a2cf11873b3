// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has been written so far about a link, each value with its place.
//!
//! A table or an assignment is applied to a draft, so a later one overrides an earlier one key by
//! key. Whether the values go together is judged at the end, in `check`.

use super::alter::{CorruptDraft, DuplicateDraft};
use super::delay::DelayDraft;
use super::loss::{LinkState, LossDraft};
use super::queueing::QueueDraft;
use super::reordering::ReorderDraft;
use super::slot::SlotDraft;
use super::trace_read::TraceDraft;
use super::wire::WireDraft;
use super::{Neighbours, keys, shared};
use crate::text::{Draft, Entry, Located, Mistake, Reader, Section, Value, word};

#[derive(Debug, Clone, Default)]
pub(super) struct LinkDraft {
    pub rate: Option<Located<u64>>,
    pub overhead: Option<Located<i32>>,
    pub wire: WireDraft,
    pub queue: QueueDraft,
    pub delay: DelayDraft,
    pub loss: LossDraft,
    pub neighbours: Option<Located<Neighbours>>,
    pub reorder: ReorderDraft,
    pub duplicate: DuplicateDraft,
    pub corrupt: CorruptDraft,
    pub state: Option<Located<LinkState>>,
    pub shared: Option<Located<String>>,
    pub trace: TraceDraft,
    pub slot: SlotDraft,
}

impl Reader {
    /// [`Reader::table`], with what is said of an unknown key.
    fn keys<D: Draft>(
        &mut self,
        draft: &mut D,
        value: &Located<Value>,
        names: (&str, &str),
        section: &Section,
    ) {
        self.table(draft, value, names, |key| keys::unknown(key, section));
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
            "reorder" => self.keys(
                &mut draft.reorder,
                value,
                ("reorder", "probability"),
                &keys::REORDER,
            ),
            "duplicate" => self.keys(
                &mut draft.duplicate,
                value,
                ("duplicate", "probability"),
                &keys::DUPLICATE,
            ),
            "corrupt" => self.keys(
                &mut draft.corrupt,
                value,
                ("corrupt", "probability"),
                &keys::CORRUPT,
            ),
            "shared" => self.put_or_remove(&mut draft.shared, value, shared::name),
            "state" => self.put(&mut draft.state, value, |v| word(v, "state")),
            "trace" => self.trace(&mut draft.trace, value),
            "slot" => self.keys(&mut draft.slot, value, ("slot", "min"), &keys::SLOT),
            _ => self.mistakes.push(keys::unknown(&entry.key, &keys::LINK)),
        }
    }
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
