// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts reordering, duplication and corruption: a probability, with a correlation.

use super::{Chance, LossOption, NARROW, Netem, trimmed};
use crate::convert::import::writer::{Writer, quoted, table};
use crate::profile::Percent;
use crate::text::Mistake;

/// emud's maximum of `gap` of `reorder`.
const MOST_GAP: u32 = 1_000_000;

/// Returns the value of `correlation`, after a note on it.
pub(super) fn correlation(out: &mut Writer, chance: &Chance) -> Option<String> {
    if chance.correlation == 0.0 {
        return None;
    }
    out.note(NARROW);
    Some(quoted(Percent(chance.correlation)))
}

fn chance_key(out: &mut Writer, key: &str, chance: &Chance) {
    let probability = quoted(Percent(chance.probability));
    let value = match correlation(out, chance) {
        None => probability,
        correlation => table(&[
            ("probability", Some(probability)),
            ("correlation", correlation),
        ]),
    };
    out.key(key, value);
}

pub(super) fn reorder(out: &mut Writer, netem: &Netem, has_rate: bool) -> Result<(), Mistake> {
    let Some(chance) = netem.reorder.filter(|chance| chance.probability > 0.0) else {
        return Ok(());
    };
    if let Some(gap) = netem.gap.as_ref().filter(|gap| gap.value > MOST_GAP) {
        let title = format!("gap \"{}\" is above the maximum of {MOST_GAP}", gap.value);
        let help = format!("write {MOST_GAP}, or leave reorder and gap out");
        return Err(Mistake::new(&gap.at, title, help));
    }
    let gap = netem.gap.as_ref().map_or(1, |gap| gap.value.max(1));
    if gap > 1 {
        let one_in = f64::from(gap - 1) + 1.0 / chance.probability;
        out.note(&format!(
            "{} packets are delayed, then each is sent at once with this probability until one \
             is, and so on: one packet in {} overtakes.",
            gap - 1,
            trimmed(one_in)
        ));
    }
    let correlation = correlation(out, &chance);
    if has_rate {
        out.note("Packets that netem sends at once also bypass its rate.");
    }
    out.key(
        "reorder",
        table(&[
            ("probability", Some(quoted(Percent(chance.probability)))),
            ("correlation", correlation),
            ("gap", (gap > 1).then(|| gap.to_string())),
        ]),
    );
    Ok(())
}

/// Writes duplication and corruption.
pub(super) fn alter(out: &mut Writer, netem: &Netem, has_rate: bool) {
    let some = |chance: Option<Chance>| chance.filter(|chance| chance.probability > 0.0);
    if let Some(chance) = some(netem.duplicate) {
        out.from(&netem.place_of(&["duplicate"]));
        if netem.loss.is_some() {
            out.note(
                "netem's loss removes one of two copies if it decides to do both, and copies pass \
                 the loss again; emud duplicates packets that are not lost, and loses no copy.",
            );
        }
        if has_rate {
            out.note(
                "netem's copy is queued before the rate again and takes its time there like any \
                 packet; emud's takes no bandwidth.",
            );
        }
        let is_kept = netem.kept.contains(&"correlation of duplicate");
        if chance.correlation > 0.0 && !is_kept && !netem.sends_correlations() {
            out.note("tc forgets to send this correlation if no other option has one.");
        }
        chance_key(out, "duplicate", &chance);
    }
    if let Some(chance) = some(netem.corrupt) {
        out.from(&netem.place_of(&["corrupt"]));
        out.note(
            "netem flips one bit of the packet's first buffer, which includes the link-layer header \
             and, for transmitted data, often nothing else; emud flips one from the IP header's start on.",
        );
        chance_key(out, "corrupt", &chance);
    }
}

impl Netem {
    /// Returns whether tc sends the attribute with duplication's correlation, which it only does
    /// for another option's.
    fn sends_correlations(&self) -> bool {
        let given = |chance: Option<Chance>| chance.is_some_and(|chance| chance.correlation > 0.0);
        let loss = match self.loss {
            Some(LossOption::Random(chance)) => chance.correlation > 0.0,
            _ => false,
        };
        self.delay_correlation > 0.0 || loss || given(self.reorder) || given(self.corrupt)
    }
}
