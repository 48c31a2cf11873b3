// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a netem that is changed keeps of its options: the kernel sets those of the command and leaves some of the
//! others (netem_change() of sch_netem.c).

use super::netem::{LossOption, Netem, Under};
use super::shell::Word;
use super::tc_made::Made;

/// The options whose correlations tc sends together (TCA_NETEM_CORR), with the name of each in a warning.
const CORRELATED: [(&[&str], &str); 3] = [
    (&["latency", "delay"], "correlation of delay"),
    (&["loss", "drop"], "correlation of loss"),
    (&["duplicate"], "correlation of duplicate"),
];

/// Adds the options that a changed netem keeps.
pub(super) fn keep<'a>(text: &str, made: &mut Made<'a>, before: &Made<'a>) {
    let read = |made: &Made| Netem::parse(text, &mut made.clone(), Under::Nothing, None);
    let (Ok(new), Ok(old)) = (read(made), read(before)) else {
        // The mistake is shown by the reader of the last command.
        return;
    };
    // tc does not send that of a duplication alone.
    let sends = [CORRELATED[0].0, CORRELATED[1].0, &["reorder"], &["corrupt"]];
    let is_sent =
        |names: &&[&str]| Chance::of(made, &new, names).is_some_and(|c| c.correlation.is_some());
    if !sends.iter().any(is_sent) {
        for (names, kept) in CORRELATED {
            let Some(Chance {
                correlation: None,
                last,
            }) = Chance::of(made, &new, names)
            else {
                continue;
            };
            let before = Chance::of(before, &old, names).and_then(|chance| chance.correlation);
            if let Some(Word { value, .. }) = before {
                // At the end of the option, where a mistake of it is shown.
                let mut at = last.at.clone();
                at.span.start = at.span.end;
                made.options.insert_behind(&last, Word { value, at });
                made.kept.push(kept);
            }
        }
    }
    for name in ["rate", "corrupt", "slot", "distribution", "ecn"] {
        let has_effect = match name {
            "distribution" => new.latency_ns > 0 && new.jitter_ns > 0,
            "ecn" => new.loses(),
            _ => true,
        };
        if let (Some(at), None, true) = (old.given(name), new.given(name), has_effect) {
            made.options.keep(&before.options, &at.span);
            made.kept.push(name);
        }
    }
}

/// An option that has, or may have, a correlation.
struct Chance<'a> {
    correlation: Option<Word<'a>>,
    last: Word<'a>,
}

impl<'a> Chance<'a> {
    fn of(made: &Made<'a>, netem: &Netem, names: &[&str]) -> Option<Self> {
        let at = names.iter().find_map(|name| netem.given(name))?;
        let words = made.options.at(&at.span);
        let random = words.get(1).is_some_and(|word| word.value == "random");
        let place = match names[0] {
            "latency" => 3,
            "loss" if !matches!(netem.loss, Some(LossOption::Random(_))) => return None,
            _ => 2 + usize::from(random),
        };
        let last = words.last()?.clone();
        let correlation = words.get(place).cloned();
        (words.len() >= place).then_some(Self { correlation, last })
    }
}
