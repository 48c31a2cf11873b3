// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has been written so far about a link, each value with its position.
//!
//! A table or an assignment is applied to a draft, so a later one overrides an earlier one key by
//! key. Whether the values go together is judged at the end, in `check`.

use super::keys;
use crate::text::{Draft, Entry, Located, Reader, Section, Value};

pub(super) use super::model::LinkDraft;

/// The keys of a link that are tables, so that a key of one may be set.
pub(super) const TABLES: &[&str] = &[
    "rate",
    "delay",
    "queue",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "trace",
    "slot",
    "background",
];

impl Reader {
    /// Does [`Reader::table`], with the mistake of an unknown key.
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
        self.one_overhead(entries);
        for entry in entries {
            self.link_key(draft, entry);
        }
    }

    /// Checks that the keys of a link have `overhead` once.
    pub(super) fn one_overhead(&mut self, entries: &[Entry]) {
        fn find<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Entry> {
            entries.iter().find(|entry| entry.key.value == key)
        }
        if let (Some(_), Some(rate)) = (find(entries, "overhead"), find(entries, "rate"))
            && let Value::Table(keys) = &rate.value.value
            && let Some(second) = find(keys, "overhead")
        {
            let help = "keep one: `overhead` of the rate is the link's";
            self.mistake(&second.key.at, "`overhead` is given twice", help);
        }
    }

    /// Applies one key of a link.
    pub(super) fn link_key(&mut self, draft: &mut LinkDraft, entry: &Entry) {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "rate" => self.rate(draft, value),
            "queue" => self.queue(&mut draft.queue, value),
            "delay" => self.delay(&mut draft.delay, value),
            "loss" => self.loss(&mut draft.loss, value),
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
            "trace" => self.trace(&mut draft.trace, value),
            "background" => self.keys(
                &mut draft.background,
                value,
                ("background", "load"),
                &keys::BACKGROUND,
            ),
            "slot" => self.keys(&mut draft.slot, value, ("slot", "min"), &keys::SLOT),
            _ if draft.key(self, entry) => {}
            _ => self.mistakes.push(keys::unknown(&entry.key, &keys::LINK)),
        }
    }
}
