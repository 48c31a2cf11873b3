// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a loss, and whether they go together.

use super::keyed::{Field, Keyed, Kind, Table};
use super::keys;
use super::loss::{Loss, LossModel, Model, Stage};
use super::pattern::{self, Pattern, PatternError};
use crate::text::{At, Entry, Located, Mistake, Percent, Reader, Value, Word};

const TABLE: Table = Table {
    section: &keys::LOSS,
    kinds: &[
        Kind::Model,
        Kind::Stage,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Share,
        Kind::Number,
        Kind::Count,
        Kind::Count,
        Kind::Count,
        Kind::Text,
        Kind::Text,
        Kind::List,
        Kind::Flag,
        Kind::Flag,
    ],
    name: "loss",
    plain: "probability",
    example: "\"0.5%\"",
};

/// Three ways to give a pattern, one slot.
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

fn model_of(draft: &Keyed) -> Model {
    match draft.get("model").map(|field| &field.value) {
        Some(Field::Model(model)) => *model,
        _ => Model::Bernoulli,
    }
}

impl Reader {
    /// Applies `loss`: another model starts from nothing, the same one is merged key by key.
    pub(super) fn loss(&mut self, draft: &mut Keyed, value: &Located<Value>) {
        if let Value::Table(entries) = &value.value {
            let before = model_of(draft);
            if let Some(model) = entries.iter().find(|e| e.key.value == "model") {
                let same =
                    matches!(&model.value.value, Value::Text(word) if *word == before.word());
                if !same {
                    *draft = Keyed::default();
                }
            }
            if entries.iter().any(is_pattern) {
                PATTERNS.iter().for_each(|key| draft.remove(key));
                draft.remove("length");
            }
        }
        self.keyed(draft, &TABLE, value);
    }

    /// The finished loss; meaningless if that adds a mistake.
    pub(super) fn finish_loss(&mut self, draft: &Keyed) -> Loss {
        let Some(at) = draft.at.as_ref().filter(|_| !draft.broken) else {
            return Loss::default();
        };
        let model = model_of(draft);
        for (key, field) in &draft.fields {
            if !["model", "stage", "ecn"].contains(key) && !model.keys().contains(key) {
                let keys = model.keys().join("`, `");
                self.mistakes.push(Mistake::new(
                    &field.at,
                    format!("`{key}` is not a key of model \"{}\"", model.word()),
                    format!("its keys are `{keys}`, as in loss = {}", model.example()),
                ));
            }
        }
        let stage = match draft.get("stage").map(|field| &field.value) {
            Some(Field::Stage(stage)) => *stage,
            _ => Stage::default(),
        };
        let before = self.mistakes.len();
        let model = self.finish_model(draft, model, at);
        debug_assert!(model.is_some() || self.mistakes.len() > before);
        Loss {
            model: model.unwrap_or_default(),
            stage,
            ecn: matches!(
                draft.get("ecn").map(|field| &field.value),
                Some(Field::Flag(true))
            ),
        }
    }

    fn finish_model(&mut self, draft: &Keyed, model: Model, at: &At) -> Option<LossModel> {
        let share = |key: &str| draft.share(key);
        let mut need = |key: &str, value: Option<f64>| {
            if value.is_none() {
                self.mistakes.push(missing(at, model, key));
            }
            value
        };
        Some(match model {
            Model::Bernoulli => LossModel::Bernoulli {
                probability: need("probability", share("probability"))?,
                correlation: self.correlation(draft),
            },
            Model::GilbertElliott => {
                let p = need("p", share("p"))?;
                LossModel::GilbertElliott {
                    p,
                    r: share("r").unwrap_or(1.0 - p),
                    bad: share("bad").unwrap_or(1.0),
                    good: share("good").unwrap_or(0.0),
                }
            }
            Model::FourState => {
                let p13 = need("p13", share("p13"))?;
                return self.four_state(draft, p13);
            }
            Model::BitError => return self.bit_error(draft, at),
            Model::Every => return self.every(draft, at),
            Model::Pattern => return self.pattern(draft, at),
            Model::Burst => {
                let probability = need("probability", share("probability"))?;
                LossModel::Burst {
                    probability,
                    length: self.at_least_one(draft, Model::Burst, "length", at)?,
                }
            }
        })
    }

    fn four_state(&mut self, draft: &Keyed, p13: f64) -> Option<LossModel> {
        let or = |key: &str, usual: f64| draft.share(key).unwrap_or(usual);
        // As tc-netem's defaults.
        let (p31, p32) = (or("p31", 1.0 - p13), or("p32", 0.0));
        let (p23, p14) = (or("p23", 1.0), or("p14", 0.0));
        for (first, second, sum) in [("p13", "p14", p13 + p14), ("p31", "p32", p31 + p32)] {
            // Room for a sum of two rounded numbers.
            if sum <= 1.0 + 1e-12 {
                continue;
            }
            let field = draft.get(second).or_else(|| draft.get(first))?;
            self.mistakes.push(Mistake::new(
                &field.at,
                format!("`{first}` and `{second}` are {} together", Percent(sum)),
                "they lead out of the same state: at most 100% together",
            ));
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

    fn bit_error(&mut self, draft: &Keyed, at: &At) -> Option<LossModel> {
        let Some(field) = draft.get("ber") else {
            self.mistakes.push(missing(at, Model::BitError, "ber"));
            return None;
        };
        match field.value {
            Field::Number(ber) if ber <= 1.0 => Some(LossModel::BitError { ber }),
            _ => {
                let help = "it is the share of wrong bits, from 0 to 1, such as ber = 1e-6";
                let title = "a bit-error rate of more than 1";
                self.mistakes.push(Mistake::new(&field.at, title, help));
                None
            }
        }
    }

    fn every(&mut self, draft: &Keyed, at: &At) -> Option<LossModel> {
        let n = self.at_least_one(draft, Model::Every, "n", at)?;
        let offset = draft.count("offset").unwrap_or(0) as u32;
        if let (true, Some(field)) = (offset >= n, draft.get("offset")) {
            self.mistakes.push(Mistake::new(
                &field.at,
                format!("an `offset` of {offset} is not below `n`, {n}"),
                "it is how many packets the count is ahead at the start",
            ));
            return None;
        }
        Some(LossModel::Every { n, offset })
    }

    fn at_least_one(&mut self, draft: &Keyed, model: Model, key: &str, at: &At) -> Option<u32> {
        let Some(field) = draft.get(key) else {
            self.mistakes.push(missing(at, model, key));
            return None;
        };
        match draft.count(key) {
            Some(count @ 1..) => Some(count as u32),
            _ => {
                let help = format!("the least is 1, as in loss = {}", model.example());
                let title = format!("`{key}` cannot be 0");
                self.mistakes.push(Mistake::new(&field.at, title, help));
                None
            }
        }
    }

    fn pattern(&mut self, draft: &Keyed, at: &At) -> Option<LossModel> {
        let mut given = PATTERNS
            .iter()
            .filter_map(|key| Some((*key, draft.get(key)?)));
        let Some((key, field)) = given.next() else {
            self.mistakes.push(missing(at, Model::Pattern, "pattern"));
            return None;
        };
        if let Some((second, field)) = given.next() {
            let title = format!("both `{key}` and `{second}` are given");
            let help = "keep one: each says which packets are lost";
            self.mistakes.push(Mistake::new(&field.at, title, help));
            return None;
        }
        let read = self.read_pattern(draft, key, field)?;
        if let ("pattern", Some(length)) = (key, draft.get("length")) {
            let help = "`pattern` has a length of its own; `length` goes with `lost`, or a `file` \
                        of packet numbers";
            let mistake = Mistake::new(&length.at, "`length` with `pattern`", help);
            self.mistakes.push(mistake);
        }
        let repeat = !matches!(
            draft.get("loop").map(|f| &f.value),
            Some(Field::Flag(false))
        );
        match read {
            Ok(pattern) => Some(LossModel::Pattern { pattern, repeat }),
            Err(error) => {
                self.mistakes.push(error.at(&field.at));
                None
            }
        }
    }

    /// `None`: a mistake was added.
    fn read_pattern(
        &mut self,
        draft: &Keyed,
        key: &str,
        field: &Located<Field>,
    ) -> Option<Result<Pattern, PatternError>> {
        let length = draft.count("length");
        Some(match (&field.value, length) {
            (Field::List(_), None) => {
                let help = "say after how many packets it ends: lost = [3, 7], length = 100";
                let mistake = Mistake::new(&field.at, "`lost` without `length`", help);
                self.mistakes.push(mistake);
                return None;
            }
            (Field::List(lost), Some(length)) => Pattern::from_lost(lost, length),
            (Field::Text(name), _) if key == "file" => {
                pattern::from_file(&self.folder, name, length)
            }
            (Field::Text(bits), _) => Pattern::from_bits(bits),
            _ => return None,
        })
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
