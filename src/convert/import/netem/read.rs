// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a netem command (tc/q_netem.c of iproute2 6.9 and later).

use super::values::{chance, four_states, gilbert_elliott, no_digit, one_for_all, rate, slot};
use super::{Chance, LossOption, Netem, Under};
use crate::convert::import::shell::{Word, Words};
use crate::convert::import::tc_made::{Made, begins};
use crate::convert::import::tc_shaper::Shaper;
use crate::convert::import::tc_units::{is_bare, percent, size, time_ns, whole};
use crate::text::{At, Located, Mistake, clipped};

/// In the order in which tc compares: an abbreviation stands for the first match.
const OPTIONS: [&str; 14] = [
    "limit",
    "latency",
    "delay",
    "loss",
    "drop",
    "seed",
    "ecn",
    "reorder",
    "corrupt",
    "gap",
    "duplicate",
    "distribution",
    "rate",
    "slot",
];

impl Netem {
    /// Reads the options of a netem in `text`.
    pub(in crate::convert::import) fn parse(
        text: &str,
        made: &mut Made,
        under: Under,
        shaper: Option<Shaper>,
    ) -> Result<Self, Mistake> {
        let words = &mut made.options;
        words.check()?;
        let start = made.kind.at.span.start;
        let mut netem = Self {
            at: At {
                source: 0,
                span: start..start,
            },
            device: made.device.map(str::to_owned),
            under,
            shaper,
            shown: made.shown,
            kept: made.kept.clone(),
            ..Self::default()
        };
        while let Some(word) = words.next() {
            let option = netem.option(&word, words)?;
            let span = word.at.span.start..words.read_up_to();
            netem.spans.push((option, At { source: 0, span }));
        }
        let whole = made.kind.at.span.start..words.read_up_to().max(made.kind.at.span.end);
        let all = text[whole].split_whitespace().filter(|word| *word != "\\");
        netem.text = all.collect::<Vec<_>>().join(" ");
        if netem.shown {
            // The kernel's seed, which was random.
            netem.seed = None;
        }
        netem.check()?;
        netem.check_correlation()?;
        Ok(netem)
    }

    /// Returns the position of the last of these options, or the start of the netem.
    pub(in crate::convert::import) fn place_of(&self, options: &[&str]) -> At {
        let mut spans = self.spans.iter().rev();
        let found = spans.find(|(option, _)| options.contains(option));
        found.map_or_else(|| self.at.clone(), |(_, at)| at.clone())
    }

    /// Returns whether it probably emulates what another device receives.
    pub(in crate::convert::import) fn is_on_ifb(&self) -> bool {
        let device = self.device.as_deref();
        device.is_some_and(|device| device.starts_with("ifb"))
    }

    /// Returns the position of the last option with this name, if it is given.
    pub(in crate::convert::import) fn given(&self, option: &str) -> Option<&At> {
        let found = self.spans.iter().rev().find(|(name, _)| *name == option);
        found.map(|(_, at)| at)
    }

    /// Returns whether its loss model loses packets.
    pub(in crate::convert::import) fn loses(&self) -> bool {
        match self.loss {
            Some(LossOption::Random(chance)) => chance.probability > 0.0,
            other => other.is_some(),
        }
    }

    /// Returns the position of its first option.
    pub(in crate::convert::import) fn start(&self) -> At {
        let first = self.spans.first();
        first.map_or_else(|| self.at.clone(), |(_, at)| at.clone())
    }

    fn option(&mut self, word: &Word, words: &mut Words) -> Result<&'static str, Mistake> {
        let Some(option) = OPTIONS.iter().find(|option| begins(word.value, option)) else {
            return Err(unknown(word));
        };
        match *option {
            "limit" => {
                let value = words.argument("limit", "1000")?;
                let (value, at) = (size(&value)?, value.at);
                self.limit = Some(Located { value, at });
            }
            "latency" | "delay" => self.delay(word, words)?,
            "loss" | "drop" => self.loss(word, words)?,
            "seed" => {
                let value = words.argument("seed", "42")?;
                self.seed = Some(value.value.parse().map_err(|_| {
                    let title = format!("`{}` is not a seed", value.value);
                    Mistake::new(&value.at, title, "write a whole number, such as seed 42")
                })?);
            }
            "ecn" => self.ecn = true,
            "reorder" => self.reorder = Some(chance(words, "reorder", "25% 50%")?),
            "corrupt" => self.corrupt = Some(chance(words, "corrupt", "0.1%")?),
            "duplicate" => self.duplicate = Some(chance(words, "duplicate", "1%")?),
            "gap" => {
                let value = words.argument("gap", "5")?;
                let gap = whole(&value, 0..=u32::MAX.into())?;
                let (value, at) = (gap as u32, value.at);
                self.gap = Some(Located { value, at });
            }
            "distribution" => {
                let name = words.argument("distribution", "normal")?;
                let (value, at) = (name.value.to_owned(), name.at);
                self.distribution = Some(Located { value, at });
            }
            "rate" => self.rate = Some(rate(words)?),
            _ => self.slot = Some(slot(word, words)?),
        }
        Ok(option)
    }

    /// Reads `delay TIME [JITTER [CORRELATION]]`.
    fn delay(&mut self, word: &Word, words: &mut Words) -> Result<(), Mistake> {
        let latency = words.argument(word.value, "100ms")?;
        self.delay_at = Some(latency.at.clone());
        self.bare_time |= is_bare(&latency);
        self.latency_ns = time_ns(&latency)?;
        // If this option has no jitter, an earlier option's jitter stays, as in tc.
        let Some(jitter) = words.number() else {
            return Ok(());
        };
        self.bare_time |= is_bare(&jitter);
        self.jitter_ns = time_ns(&jitter)?;
        if let Some(correlation) = words.number() {
            self.delay_correlation = percent(&correlation)?;
            self.delay_correlation_at = Some(correlation.at);
        }
        Ok(())
    }

    fn loss(&mut self, word: &Word, words: &mut Words) -> Result<(), Mistake> {
        let no_loss = Chance {
            probability: 0.0,
            correlation: 0.0,
        };
        let before = self.loss.take();
        if before.is_some_and(
            |loss| !matches!(loss, LossOption::Random(c) if c.probability == no_loss.probability),
        ) {
            let help = "keep one of them: netem has one loss model";
            return Err(Mistake::new(&word.at, "`loss` is given twice", help));
        }
        let model = match words.peek() {
            // The name of the model is optional.
            Some(next) if next.starts_with(|c: char| c.is_ascii_digit()) => None,
            _ => Some(words.argument(word.value, "1% or loss gemodel 1% 10%")?),
        };
        self.loss = Some(match model.as_ref().map(|model| model.value) {
            None | Some("random") => LossOption::Random(chance(words, "loss random", "1%")?),
            Some("state") => four_states(words)?,
            Some("gemodel") => gilbert_elliott(words)?,
            Some(other) if other.starts_with('.') => {
                let at = model.map_or_else(|| word.at.clone(), |model| model.at);
                return Err(no_digit(&at, other));
            }
            Some(other) => {
                let at = model.map_or_else(|| word.at.clone(), |model| model.at);
                let help = "the models are random, state and gemodel: loss random 1%, \
                            loss state 1% 10%, loss gemodel 1% 10%";
                let title = format!("`{other}` is not a loss model");
                return Err(Mistake::new(&at, title, help));
            }
        });
        Ok(())
    }

    /// Rejects a correlation without jitter, which has no effect.
    fn check_correlation(&self) -> Result<(), Mistake> {
        match &self.delay_correlation_at {
            Some(at) if self.delay_correlation == 1.0 && self.jitter_ns > 0 => Err(one_for_all(at)),
            _ => Ok(()),
        }
    }

    /// Rejects what tc rejects at the end of the line.
    fn check(&self) -> Result<(), Mistake> {
        let delay_at = self.delay_at.as_ref().unwrap_or(&self.at);
        let reorders = self
            .reorder
            .is_some_and(|reorder| reorder.probability > 0.0);
        if reorders && self.latency_ns == 0 {
            let help = "packets that are not reordered need a delay: add delay 10ms";
            return Err(Mistake::new(delay_at, "`reorder` without `delay`", help));
        }
        if let (Some(gap), false) = (&self.gap, reorders)
            && gap.value > 0
        {
            let help = "tc also rejects this, although its manual shows it: for every n-th packet \
                        write reorder 100% gap n";
            return Err(Mistake::new(&gap.at, "`gap` without `reorder`", help));
        }
        if self.ecn && !self.loses() {
            let help = "netem marks packets instead of losing them: add loss 1%, or leave ecn out";
            return Err(Mistake::new(&self.at, "`ecn` without `loss`", help));
        }
        if let (Some(name), true) = (
            &self.distribution,
            self.latency_ns == 0 || self.jitter_ns == 0,
        ) {
            let help = "it applies to the jitter: write delay 100ms 10ms distribution normal";
            let title = "`distribution` without a delay and a jitter";
            return Err(Mistake::new(&name.at, title, help));
        }
        Ok(())
    }
}

fn unknown(word: &Word) -> Mistake {
    if word.value.starts_with('.') {
        return no_digit(&word.at, word.value);
    }
    let near = crate::text::closest(word.value, OPTIONS)
        .map(|near| format!("did you mean `{near}`? "))
        .unwrap_or_default();
    let help = format!("{near}netem's options are {}", OPTIONS.join(", "));
    let title = format!("netem has no option `{}`", clipped(word.value));
    Mistake::new(&word.at, title, help)
}
