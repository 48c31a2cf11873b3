// SPDX-License-Identifier: MIT OR Apache-2.0
//! `reorder` of a link: packets that are sent without delay, to overtake.

use schemars::JsonSchema;
use serde::Serialize;

use super::kinds::{Correlation, Count, Share};
use crate::text::{Kind, Located, Mistake, Percent, Reader, Value, table};

/// Largest distance; a longer one is no use and would not fit the counter.
const GAP_MAX: u32 = 1_000_000;

table! {
    /// Explicit reordering, as tc-netem's: after `gap - 1` delayed packets each is
    /// sent without delay with this probability, until one is. Counted per flow.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    pub struct Reordering {
        /// Probability that a packet is sent without delay.
        #[schemars(range(min = 0, max = 1))]
        probability: f64 = 0.0, "probability" as Undelayed;
        /// Correlation with the previous decision.
        #[schemars(range(min = 0, max = 1))]
        correlation: f64 = 0.0, "correlation" as Correlation;
        /// At least gap - 1 delayed packets are between two of them.
        #[schemars(range(min = 1))]
        gap: u32 = 1, "gap" as Count<1, GAP_MAX>;
    }
    struct ReorderDraft {}
}

impl Reordering {
    /// Returns the share, and what else there is to say: `1% gap 5`.
    pub fn summary(&self) -> String {
        Percent(self.probability).to_string() + &self.plain_text(&["probability"])
    }
}

/// A share, which is often mistaken for the reordering of jitter.
pub(crate) struct Undelayed;

impl Kind for Undelayed {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        if let Value::Text(text) = &value.value
            && matches!(text.as_str(), "jitter" | "never")
        {
            let help = "here it is a share of packets to send without delay; whether jitter \
                        reorders is said inside `delay`: delay = { ..., reorder = \"jitter\" }";
            let title = format!("`reorder` of a link cannot be `{text}`");
            return Err(Mistake::new(&value.at, title, help));
        }
        Share::read(value, key)
    }

    fn text(share: &f64) -> String {
        Share::text(share)
    }
}

impl Reader {
    /// Returns the finished reordering; `None` also where nothing is reordered.
    pub(super) fn finish_reorder(&mut self, draft: &ReorderDraft) -> Option<Reordering> {
        let at = draft.at.as_ref().filter(|_| !draft.broken)?;
        if draft.probability.is_none() {
            let help = "write reorder = { probability = \"1%\" }; every 5th packet is \
                        { probability = \"100%\", gap = 5 }";
            let title = "`reorder` without `probability`";
            self.mistake(at, title, help);
            return None;
        }
        Some(draft.values()).filter(|reordering| reordering.probability > 0.0)
    }
}
