// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a loss, and whether they go together.

use super::keys;
use super::loss::{Figures, FiguresDraft, Loss, LossDraft, LossModel, Model};
use super::pattern::{self, Pattern, PatternError};
use crate::text::{At, Draft, Entry, Located, Mistake, Percent, Reader, Value, Word, is_none};

/// Three keys for a pattern; each replaces the others.
const PATTERNS: [&str; 3] = ["pattern", "file", "lost"];

impl Model {
    /// Its keys, beside `model` and `stage`.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Bernoulli => &["probability", "correlation"],
            Self::GilbertElliott => &["p", "r", "bad", "good"],
            Self::FourState => &["p13", "p31", "p32", "p23", "p14"],
            Self::BitError => &["ber"],
            Self::Every => &["n", "offset"],
            Self::Pattern => &["pattern", "file", "lost", "length", "loop"],
            Self::Burst => &["probability", "length"],
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Bernoulli => "{ model = \"bernoulli\", probability = \"1%\" }",
            Self::GilbertElliott => "{ model = \"gilbert-elliott\", p = \"1%\", r = \"10%\" }",
            Self::FourState => "{ model = \"four-state\", p13 = \"1%\", p31 = \"10%\" }",
            Self::BitError => "{ model = \"bit-error\", ber = 1e-6 }",
            Self::Every => "{ model = \"every\", n = 100 }",
            Self::Pattern => "{ model = \"pattern\", pattern = \"0001000\" }",
            Self::Burst => "{ model = \"burst\", probability = \"0.1%\", length = 5 }",
        }
    }
}

fn model_of(draft: &LossDraft) -> Model {
    let model = draft.figures.model.as_ref();
    model.map_or(Model::Bernoulli, |model| model.value)
}

impl Reader {
    /// Applies `loss`: another model starts from nothing, the same one is merged key by key.
    pub(super) fn loss(&mut self, draft: &mut LossDraft, value: &Located<Value>) {
        if is_none(value) {
            *draft = LossDraft::default();
            return;
        }
        let before = self.mistakes.len();
        match &value.value {
            Value::Table(entries) => self.loss_table(draft, entries),
            _ => {
                *draft = LossDraft::default();
                draft.figures.apply(self, "probability", value, "loss");
            }
        }
        draft.at = Some(value.at.clone());
        draft.broken |= self.mistakes.len() > before;
    }

    fn loss_table(&mut self, draft: &mut LossDraft, entries: &[Entry]) {
        if let Some(model) = entries.iter().find(|e| e.key.value == "model") {
            let before = model_of(draft).word();
            let same = matches!(&model.value.value, Value::Text(word) if *word == before);
            if !same {
                *draft = LossDraft::default();
            }
        }
        if entries.iter().any(is_pattern) {
            let figures = &mut draft.figures;
            (figures.pattern, figures.file, figures.lost) = (None, None, None);
            figures.length = None;
        }
        if entries.iter().any(|entry| entry.key.value == "file") {
            draft.figures.folder.clone_from(&self.folder);
        }
        for entry in entries {
            if !(draft.key(self, entry) || draft.figures.key(self, entry)) {
                (self.mistakes).push(keys::unknown(&entry.key, &keys::LOSS));
            }
        }
    }

    /// Returns the finished loss; meaningless if that adds a mistake.
    pub(super) fn finish_loss(&mut self, draft: &LossDraft) -> Loss {
        let Some(at) = draft.at.as_ref().filter(|_| !draft.broken) else {
            return Loss::default();
        };
        let model = model_of(draft);
        for (key, at) in draft.figures.places() {
            if key != "model" && !model.keys().contains(&key) {
                let keys = model.keys().join("`, `");
                self.mistake(
                    at,
                    format!("`{key}` is not a key of model \"{}\"", model.word()),
                    format!("its keys are `{keys}`, as in loss = {}", model.example()),
                );
            }
        }
        let before = self.mistakes.len();
        let finished = self.finish_model(&draft.figures, model, at);
        debug_assert!(finished.is_some() || self.mistakes.len() > before);
        Loss {
            model: finished.unwrap_or_default(),
            ..draft.values()
        }
    }

    fn finish_model(&mut self, draft: &FiguresDraft, model: Model, at: &At) -> Option<LossModel> {
        let written = draft.values();
        let mut need = |key: &str, value: Option<f64>| {
            if value.is_none() {
                self.mistakes.push(missing(at, model, key));
            }
            value
        };
        Some(match model {
            Model::Bernoulli => LossModel::Bernoulli {
                probability: need("probability", written.probability)?,
                correlation: written.correlation.unwrap_or_default(),
            },
            Model::GilbertElliott => {
                let p = need("p", written.p)?;
                LossModel::GilbertElliott {
                    p,
                    r: written.r.unwrap_or(1.0 - p),
                    bad: written.bad.unwrap_or(1.0),
                    good: written.good.unwrap_or(0.0),
                }
            }
            Model::FourState => {
                let p13 = need("p13", written.p13)?;
                return self.four_state(draft, &written, p13);
            }
            Model::BitError => LossModel::BitError {
                ber: need("ber", written.ber)?,
            },
            Model::Every => return self.every(draft, at),
            Model::Pattern => return self.pattern(draft, at),
            Model::Burst => {
                let probability = need("probability", written.probability)?;
                LossModel::Burst {
                    probability,
                    length: self.at_least_one(&draft.length, Model::Burst, "length", at)?,
                }
            }
        })
    }

    fn four_state(
        &mut self,
        draft: &FiguresDraft,
        written: &Figures,
        p13: f64,
    ) -> Option<LossModel> {
        // As tc-netem's defaults.
        let (p31, p32) = (written.p31.unwrap_or(1.0 - p13), written.p32.unwrap_or(0.0));
        let (p23, p14) = (written.p23.unwrap_or(1.0), written.p14.unwrap_or(0.0));
        for (first, second, sum, places) in [
            ("p13", "p14", p13 + p14, [&draft.p14, &draft.p13]),
            ("p31", "p32", p31 + p32, [&draft.p32, &draft.p31]),
        ] {
            // Room for a sum of two rounded numbers.
            if sum <= 1.0 + 1e-12 {
                continue;
            }
            let field = places.into_iter().flatten().next()?;
            self.mistake(
                &field.at,
                format!("`{first}` and `{second}` are {} together", Percent(sum)),
                "they lead out of the same state: at most 100% together",
            );
            return None;
        }
        Some(LossModel::FourState {
            p13,
            p31,
            p32,
            p23,
            p14,
        })
    }

    fn every(&mut self, draft: &FiguresDraft, at: &At) -> Option<LossModel> {
        let n = self.at_least_one(&draft.n, Model::Every, "n", at)?;
        let offset = draft.offset.as_ref().map_or(0, |offset| offset.value);
        if let (true, Some(field)) = (offset >= n, &draft.offset) {
            self.mistake(
                &field.at,
                format!("an `offset` of {offset} is not below `n`, {n}"),
                "it is how many packets the count is ahead at the start",
            );
            return None;
        }
        Some(LossModel::Every { n, offset })
    }

    fn at_least_one(
        &mut self,
        count: &Option<Located<u32>>,
        model: Model,
        key: &str,
        at: &At,
    ) -> Option<u32> {
        let Some(count) = count else {
            self.mistakes.push(missing(at, model, key));
            return None;
        };
        if count.value == 0 {
            let help = format!("the least is 1, as in loss = {}", model.example());
            let title = format!("`{key}` cannot be 0");
            self.mistake(&count.at, title, help);
            return None;
        }
        Some(count.value)
    }

    fn pattern(&mut self, draft: &FiguresDraft, at: &At) -> Option<LossModel> {
        let mut given = draft.places().filter(|(key, _)| PATTERNS.contains(key));
        let Some((key, at)) = given.next() else {
            self.mistakes.push(missing(at, Model::Pattern, "pattern"));
            return None;
        };
        if let Some((second, at)) = given.next() {
            let title = format!("both `{key}` and `{second}` are given");
            let help = "keep one: each determines which packets are lost";
            self.mistake(at, title, help);
            return None;
        }
        let read = self.read_pattern(draft, at)?;
        if let (Some(_), Some(length)) = (&draft.pattern, &draft.length) {
            let help = "`pattern` already has a length; `length` goes with `lost`, or a `file` \
                        of packet numbers";
            let mistake = Mistake::new(&length.at, "`length` with `pattern`", help);
            self.mistakes.push(mistake);
        }
        let repeat = draft.repeat.as_ref().is_none_or(|repeat| repeat.value);
        match read {
            Ok(pattern) => Some(LossModel::Pattern { pattern, repeat }),
            Err(error) => {
                self.mistakes.push(error.at(at));
                None
            }
        }
    }

    /// Reads a pattern; `None`: a mistake was added.
    fn read_pattern(
        &mut self,
        draft: &FiguresDraft,
        at: &At,
    ) -> Option<Result<Pattern, PatternError>> {
        let length = draft.length.as_ref().map(|length| length.value.into());
        if let Some(lost) = &draft.lost {
            let Some(length) = length else {
                let help = "give the length of the pattern in packets: lost = [3, 7], length = 100";
                let mistake = Mistake::new(at, "`lost` without `length`", help);
                self.mistakes.push(mistake);
                return None;
            };
            return Some(Pattern::from_lost(&lost.value, length));
        }
        if let Some(name) = &draft.file {
            return Some(pattern::from_file(&draft.folder, &name.value, length));
        }
        let bits = draft.pattern.as_ref()?;
        Some(Pattern::from_bits(&bits.value))
    }
}

fn is_pattern(entry: &Entry) -> bool {
    PATTERNS.contains(&entry.key.value.as_str())
}

fn missing(at: &At, model: Model, key: &str) -> Mistake {
    Mistake::new(
        at,
        format!("model \"{}\" without `{key}`", model.word()),
        format!("write loss = {}", model.example()),
    )
}
