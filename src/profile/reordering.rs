// SPDX-License-Identifier: MIT OR Apache-2.0
//! `reorder` of a link: packets that are sent without delay, to overtake.

use super::draft::{correlation, is_none};
use super::{Reordering, keys};
use crate::text::{At, Entry, Located, Mistake, Percent, Reader, Value, quantity};

/// Largest distance; a longer one is no use and would not fit the counter.
const GAP_MAX: u32 = 1_000_000;

#[derive(Debug, Clone)]
pub(super) struct ReorderDraft {
    pub at: At,
    pub probability: Option<f64>,
    pub correlation: Option<f64>,
    pub gap: Option<u32>,
}

impl Reader {
    /// `reorder` as text is a probability; a table is merged key by key.
    pub(super) fn reorder(&mut self, slot: &mut Option<ReorderDraft>, value: &Located<Value>) {
        if is_none(value) {
            *slot = None;
            return;
        }
        let empty = || ReorderDraft {
            at: value.at.clone(),
            probability: None,
            correlation: None,
            gap: None,
        };
        let Value::Table(entries) = &value.value else {
            let probability = self.read(value, probability).map(|p| p.value);
            *slot = Some(ReorderDraft {
                probability,
                ..empty()
            });
            return;
        };
        let draft = slot.get_or_insert_with(empty);
        draft.at = value.at.clone();
        for entry in entries {
            self.reorder_key(draft, entry);
        }
    }

    fn reorder_key(&mut self, draft: &mut ReorderDraft, entry: &Entry) {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "probability" => draft.probability = self.read(value, probability).map(|p| p.value),
            "correlation" if is_none(value) => draft.correlation = None,
            "correlation" => draft.correlation = self.read(value, correlation).map(|c| c.value),
            "gap" if is_none(value) => draft.gap = None,
            "gap" => draft.gap = self.read(value, gap).map(|gap| gap.value),
            _ => self
                .mistakes
                .push(keys::unknown(&entry.key, &keys::REORDER)),
        }
    }

    /// The finished reordering; `None` also where nothing is reordered.
    pub(super) fn finish_reorder(&mut self, draft: Option<&ReorderDraft>) -> Option<Reordering> {
        let draft = draft?;
        let Some(probability) = draft.probability else {
            let help = "write reorder = { probability = \"1%\" }; every 5th packet is \
                        { probability = \"100%\", gap = 5 }";
            let title = "`reorder` without `probability`";
            self.mistakes.push(Mistake::new(&draft.at, title, help));
            return None;
        };
        (probability > 0.0).then(|| Reordering {
            probability,
            correlation: draft.correlation.unwrap_or_default(),
            gap: draft.gap.unwrap_or(1),
        })
    }
}

fn probability(value: &Located<Value>) -> Result<f64, Mistake> {
    if let Value::Text(text) = &value.value
        && matches!(text.as_str(), "jitter" | "never")
    {
        let help = "here it is a share of packets to send without delay; whether jitter reorders is \
                    said inside `delay`: delay = { ..., reorder = \"jitter\" }";
        let title = format!("`reorder` of a link cannot be `{text}`");
        return Err(Mistake::new(&value.at, title, help));
    }
    quantity(value, "reorder", "\"1%\"").map(|Percent(probability)| probability)
}

fn gap(value: &Located<Value>) -> Result<u32, Mistake> {
    let gap = match &value.value {
        Value::Number(text) | Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    gap.filter(|gap| (1..=GAP_MAX).contains(gap))
        .ok_or_else(|| {
            let help = format!(
                "write a whole number from 1 to {GAP_MAX}: with gap = 5, at most every 5th"
            );
            Mistake::new(&value.at, "this is not a gap", help)
        })
}
