// SPDX-License-Identifier: GPL-2.0-only
//! What loses packets: models, their keys, whether they go together, and their canonical text.

use super::keyed::{Field, Keyed, Kind, Table};
use super::keys;
use super::pattern::{self, Pattern};
use crate::text::{At, Entry, Located, Mistake, Percent, Reader, Value, Word};

/// How packets are lost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loss {
    pub model: LossModel,
    pub stage: Stage,
}

/// A loss model; probabilities are 0.0..=1.0.
#[derive(Debug, Clone, PartialEq)]
pub enum LossModel {
    /// Each packet with this probability. `correlation` (below 1) is that of an AR(1) process of
    /// normal values; a packet is lost where it is below the probability's quantile, so the share
    /// lost stays the same.
    Bernoulli { probability: f64, correlation: f64 },
    /// Two states with a loss probability each (1-h and 1-k of tc-netem's gemodel); `p` leads from
    /// good to bad, `r` back.
    GilbertElliott { p: f64, r: f64, bad: f64, good: f64 },
    /// tc-netem's state model (Salsano et al.): 1 sent, 2 sent within a burst, 3 lost within a
    /// burst, 4 lost alone.
    FourState {
        p13: f64,
        p31: f64,
        p32: f64,
        p23: f64,
        p14: f64,
    },
    /// 1 - (1 - ber)^bits of the frame.
    BitError { ber: f64 },
    /// Each `n`-th packet, as if `offset` packets (below `n`) had been there before.
    Every { n: u32, offset: u32 },
    /// As recorded, over and over or once.
    Pattern { pattern: Pattern, repeat: bool },
    /// A burst of `length` packets begins with this probability.
    Burst { probability: f64, length: u32 },
}

/// Where packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// On the wire: a lost packet has taken its time there.
    #[default]
    AfterQueue,
    BeforeQueue,
}

/// Whether the link is there at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkState {
    #[default]
    Up,
    /// Every packet is lost, and counted as such.
    Down,
}

/// [`LossModel`] without its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    Bernoulli,
    GilbertElliott,
    FourState,
    BitError,
    Every,
    Pattern,
    Burst,
}

impl Word for Model {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("bernoulli", Self::Bernoulli),
        ("gilbert-elliott", Self::GilbertElliott),
        ("four-state", Self::FourState),
        ("bit-error", Self::BitError),
        ("every", Self::Every),
        ("pattern", Self::Pattern),
        ("burst", Self::Burst),
    ];
}

impl Word for Stage {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("after-queue", Self::AfterQueue),
        ("before-queue", Self::BeforeQueue),
    ];
}

impl Word for LinkState {
    const WORDS: &'static [(&'static str, Self)] = &[("up", Self::Up), ("down", Self::Down)];
}

impl Default for LossModel {
    fn default() -> Self {
        Self::Bernoulli {
            probability: 0.0,
            correlation: 0.0,
        }
    }
}

/// Independent losses.
impl From<f64> for Loss {
    fn from(probability: f64) -> Self {
        let model = LossModel::Bernoulli {
            probability,
            correlation: 0.0,
        };
        Self {
            model,
            stage: Stage::default(),
        }
    }
}

impl Loss {
    /// Nothing is ever lost.
    pub fn is_none(&self) -> bool {
        matches!(self.model, LossModel::Bernoulli { probability, .. } if probability == 0.0)
    }

    /// The share of packets lost in the long run; `None` where it depends on their length.
    pub fn share(&self) -> Option<f64> {
        Some(match &self.model {
            LossModel::Bernoulli { probability, .. } => *probability,
            LossModel::GilbertElliott { p, r, bad, good } => {
                // A chain that never moves stays in the good state, where it begins.
                let in_bad = if *p > 0.0 { p / (p + r) } else { 0.0 };
                in_bad * bad + (1.0 - in_bad) * good
            }
            LossModel::FourState {
                p13,
                p31,
                p32,
                p23,
                p14,
            } => four_state_share(*p13, *p31, *p32, *p23, *p14),
            LossModel::BitError { .. } => return None,
            LossModel::Every { n, .. } => 1.0 / f64::from(*n),
            LossModel::Pattern { repeat: false, .. } => 0.0,
            LossModel::Pattern { pattern, .. } => {
                pattern.lost().len() as f64 / f64::from(pattern.length())
            }
            LossModel::Burst {
                probability,
                length,
            } => {
                let lost = probability * f64::from(*length);
                lost / (lost + 1.0 - probability)
            }
        })
    }
}

/// From the balance of the states' probabilities, as multiples of state 1's.
fn four_state_share(p13: f64, p31: f64, p32: f64, p23: f64, p14: f64) -> f64 {
    let alone = p14;
    if p13 == 0.0 {
        return alone / (1.0 + alone);
    }
    if p31 == 0.0 {
        // Never out of the burst: 2 and 3 alone count.
        return match (p32, p23) {
            (0.0, _) => 1.0,
            (_, 0.0) => 0.0,
            _ => p23 / (p23 + p32),
        };
    }
    if p32 > 0.0 && p23 == 0.0 {
        return 0.0;
    }
    let in_burst = p13 / p31;
    let sent_in_burst = if p32 > 0.0 { in_burst * p32 / p23 } else { 0.0 };
    (in_burst + alone) / (1.0 + in_burst + sent_in_burst + alone)
}

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
            if *key != "model" && *key != "stage" && !model.keys().contains(key) {
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
        let length = draft.count("length");
        let read = match (&field.value, length) {
            (Field::List(_), None) => {
                let help = "say after how many packets it ends: lost = [3, 7], length = 100";
                let mistake = Mistake::new(&field.at, "`lost` without `length`", help);
                self.mistakes.push(mistake);
                return None;
            }
            (Field::List(lost), Some(length)) => Pattern::from_lost(lost, length),
            (Field::Text(name), _) if key == "file" => {
                pattern::from_file(self.folder.as_deref(), name, length)
            }
            (Field::Text(bits), _) => Pattern::from_bits(bits),
            _ => return None,
        };
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

/// The value of `loss` as text that reads back to it.
pub(super) fn text(loss: &Loss) -> String {
    let percent = |share: f64| format!("\"{}\"", Percent(share));
    let correlated = |correlation: f64| match correlation {
        0.0 => String::new(),
        _ => format!(", correlation = {}", percent(correlation)),
    };
    let (model, keys) = match &loss.model {
        LossModel::Bernoulli {
            probability,
            correlation: 0.0,
        } if loss.stage == Stage::default() => return percent(*probability),
        LossModel::Bernoulli {
            probability,
            correlation,
        } => (
            Model::Bernoulli,
            format!(
                "probability = {}{}",
                percent(*probability),
                correlated(*correlation)
            ),
        ),
        LossModel::GilbertElliott { p, r, bad, good } => (
            Model::GilbertElliott,
            shares(&[("p", *p), ("r", *r), ("bad", *bad), ("good", *good)]),
        ),
        LossModel::FourState {
            p13,
            p31,
            p32,
            p23,
            p14,
        } => {
            let all = [("p13", *p13), ("p31", *p31), ("p32", *p32)];
            let rest = [("p23", *p23), ("p14", *p14)];
            (
                Model::FourState,
                format!("{}, {}", shares(&all), shares(&rest)),
            )
        }
        LossModel::BitError { ber } => (Model::BitError, format!("ber = {ber:e}")),
        LossModel::Every { n, offset } => (Model::Every, format!("n = {n}, offset = {offset}")),
        LossModel::Pattern { pattern, repeat } => (
            Model::Pattern,
            format!("{}, loop = {repeat}", pattern.keys()),
        ),
        LossModel::Burst {
            probability,
            length,
        } => (
            Model::Burst,
            format!("probability = {}, length = {length}", percent(*probability)),
        ),
    };
    let stage = match loss.stage == Stage::default() {
        true => String::new(),
        false => format!(", stage = \"{}\"", loss.stage.word()),
    };
    format!("{{ model = \"{}\", {keys}{stage} }}", model.word())
}

fn shares(shares: &[(&str, f64)]) -> String {
    let each: Vec<_> = shares
        .iter()
        .map(|(key, share)| format!("{key} = \"{}\"", Percent(*share)))
        .collect();
    each.join(", ")
}
