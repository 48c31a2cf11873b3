// SPDX-License-Identifier: MIT OR Apache-2.0
//! What loses packets: the models and their canonical text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::kinds::{BitErrorRate, Correlation, Count, Flag, Numbers, OneOf, Share, Text};
use super::loss_runs;
use super::pattern::Pattern;
use crate::text::{Percent, Word, braced, table, words};

table! {
    /// How packets are lost.
    #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
    pub struct Loss {
        /// Whether packets are lost before or after the queue.
        stage: Stage = Stage::AfterQueue, "stage" as OneOf<Stage>;
        /// What understands ECN is marked instead of lost.
        ecn: bool = false, "ecn" as Flag;
        /// Packets lost in a row, at most; the next one passes, and the model goes on as if it had
        /// been lost. null: any number.
        #[schemars(range(min = 1))]
        max_run: Option<u32> = None, "max-run" as Count<1, { u32::MAX }>;
    }
    beside {
        #[serde(flatten, serialize_with = "with_parameters")]
        #[schemars(with = "ModelKeys")]
        model: LossModel = LossModel::default();
    }
    struct LossDraft {
        figures: FiguresDraft;
    }
}

table! {
    /// A model as it is written; each model has some of the figures.
    #[derive(Debug, Clone, PartialEq, Serialize)]
    pub struct Figures {
        model: Option<Model> = None, "model" as OneOf<Model>;
        probability: Option<f64> = None, "probability" as Share;
        correlation: Option<f64> = None, "correlation" as Correlation;
        p: Option<f64> = None, "p" as Share;
        r: Option<f64> = None, "r" as Share;
        bad: Option<f64> = None, "bad" as Share;
        good: Option<f64> = None, "good" as Share;
        p13: Option<f64> = None, "p13" as Share;
        p31: Option<f64> = None, "p31" as Share;
        p32: Option<f64> = None, "p32" as Share;
        p23: Option<f64> = None, "p23" as Share;
        p14: Option<f64> = None, "p14" as Share;
        ber: Option<f64> = None, "ber" as BitErrorRate;
        n: Option<u32> = None, "n" as Count<0, { u32::MAX }>;
        offset: Option<u32> = None, "offset" as Count<0, { u32::MAX }>;
        length: Option<u32> = None, "length" as Count<0, { u32::MAX }>;
        pattern: Option<String> = None, "pattern" as Text;
        file: Option<String> = None, "file" as Text;
        lost: Option<Vec<u64>> = None, "lost" as Numbers;
        #[serde(rename = "loop")]
        repeat: Option<bool> = None, "loop" as Flag;
    }
    struct FiguresDraft {
        // Where a relative path of `file` begins.
        folder: PathBuf;
    }
}

/// A model in JSON.
#[derive(Serialize, JsonSchema)]
struct ModelKeys {
    /// Name in a profile.
    model: Model,
    /// Parameters by their key in a profile; probabilities and `loop` are from 0 to 1.
    parameters: BTreeMap<String, f64>,
}

fn with_parameters<S: Serializer>(model: &LossModel, to: S) -> Result<S::Ok, S::Error> {
    let keys = ModelKeys {
        model: model.name(),
        parameters: model.parameters().map_err(serde::ser::Error::custom)?,
    };
    keys.serialize(to)
}

/// A loss model; probabilities are 0.0..=1.0.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    missing_docs,
    reason = "the sentences of the variants have their fields"
)]
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

words! {
    /// Where packets are lost.
    #[derive(Default)]
    pub enum Stage {
        /// On the wire: a lost packet has taken its time there.
        #[default]
        AfterQueue = "after-queue",
        BeforeQueue = "before-queue",
    }
}

words! {
    /// Whether the link is there at all.
    #[derive(Default)]
    pub enum LinkState {
        #[default]
        Up = "up",
        /// Every packet is lost, and counted as such.
        Down = "down",
    }
}

words! {
    /// The name of a [`LossModel`].
    pub enum Model {
        Bernoulli = "bernoulli",
        GilbertElliott = "gilbert-elliott",
        FourState = "four-state",
        BitError = "bit-error",
        Every = "every",
        Pattern = "pattern",
        Burst = "burst",
    }
}

impl Default for LossModel {
    fn default() -> Self {
        Self::Bernoulli {
            probability: 0.0,
            correlation: 0.0,
        }
    }
}

impl LossModel {
    /// Returns the value of the key `model`.
    pub fn name(&self) -> Model {
        match self {
            Self::Bernoulli { .. } => Model::Bernoulli,
            Self::GilbertElliott { .. } => Model::GilbertElliott,
            Self::FourState { .. } => Model::FourState,
            Self::BitError { .. } => Model::BitError,
            Self::Every { .. } => Model::Every,
            Self::Pattern { .. } => Model::Pattern,
            Self::Burst { .. } => Model::Burst,
        }
    }

    /// Returns the figures as numbers, by their keys; a flag is 0 or 1, a pattern its length.
    fn parameters(&self) -> serde_json::Result<BTreeMap<String, f64>> {
        let mut figures = self.figures();
        match self {
            Self::Bernoulli { correlation, .. } => figures.correlation = Some(*correlation),
            Self::Pattern { pattern, .. } => figures.length = Some(pattern.length()),
            _ => {}
        }
        let figures: BTreeMap<String, serde_json::Value> =
            serde_json::from_value(serde_json::to_value(figures)?)?;
        let number = |value: &serde_json::Value| match value {
            serde_json::Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
            other => other.as_f64(),
        };
        let numbers = figures.into_iter();
        Ok(numbers
            .filter_map(|(key, value)| Some((key, number(&value)?)))
            .collect())
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
            ..Self::default()
        }
    }
}

impl Loss {
    /// Returns whether no packet is ever lost.
    pub fn is_none(&self) -> bool {
        matches!(self.model, LossModel::Bernoulli { probability, .. } if probability == 0.0)
    }

    /// Returns the probability of independent losses, which a ramp changes; 0 for the other models.
    pub(crate) fn probability(&self) -> f64 {
        match self.model {
            LossModel::Bernoulli { probability, .. } => probability,
            _ => 0.0,
        }
    }

    /// Returns the share of packets lost in the long run, of frames of `frame_bytes`.
    pub fn share_of(&self, frame_bytes: u32) -> f64 {
        self.of_model(frame_bytes) * (1.0 - loss_runs::let_through(self, frame_bytes))
    }

    /// Returns the share of packets lost in the long run; `None` where it depends on their length.
    pub fn share(&self) -> Option<f64> {
        let share = self.of_model_of_any_length()?;
        Some(share * (1.0 - loss_runs::let_through(self, 0)))
    }

    /// Returns the share that the model loses of frames of `frame_bytes`, without a limit of runs.
    pub(super) fn of_model(&self, frame_bytes: u32) -> f64 {
        match &self.model {
            LossModel::BitError { ber } => {
                -(8.0 * f64::from(frame_bytes) * (-ber).ln_1p()).exp_m1()
            }
            _ => self.of_model_of_any_length().unwrap_or(0.0),
        }
    }

    fn of_model_of_any_length(&self) -> Option<f64> {
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

/// Returns the share lost, from the balance of the states' probabilities, as multiples of state 1's.
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

impl LossModel {
    /// Returns the figures with which it is written; a pattern writes its own.
    fn figures(&self) -> Figures {
        let none = Figures::default();
        match *self {
            Self::Bernoulli {
                probability,
                correlation,
            } => Figures {
                probability: Some(probability),
                correlation: Some(correlation).filter(|correlation| *correlation != 0.0),
                ..none
            },
            Self::GilbertElliott { p, r, bad, good } => Figures {
                p: Some(p),
                r: Some(r),
                bad: Some(bad),
                good: Some(good),
                ..none
            },
            Self::FourState {
                p13,
                p31,
                p32,
                p23,
                p14,
            } => Figures {
                p13: Some(p13),
                p31: Some(p31),
                p32: Some(p32),
                p23: Some(p23),
                p14: Some(p14),
                ..none
            },
            Self::BitError { ber } => Figures {
                ber: Some(ber),
                ..none
            },
            Self::Every { n, offset } => Figures {
                n: Some(n),
                offset: Some(offset),
                ..none
            },
            Self::Pattern { repeat, .. } => Figures {
                repeat: Some(repeat),
                ..none
            },
            Self::Burst {
                probability,
                length,
            } => Figures {
                probability: Some(probability),
                length: Some(length),
                ..none
            },
        }
    }
}

impl Loss {
    /// Returns the share in the long run, and how it comes about: `1% (burst: probability 0.2% length 5)`.
    pub fn summary(&self) -> String {
        let share = (self.share()).map_or("by length".to_owned(), |share| {
            Percent(share).rounded().to_string()
        });
        let own = self.plain_text(&[]);
        let figures = match &self.model {
            LossModel::Bernoulli { correlation, .. }
                if *correlation == 0.0 && self.beyond(&["stage", "ecn"]).is_empty() =>
            {
                return share + &own;
            }
            LossModel::Pattern { pattern, .. } => Figures {
                length: Some(pattern.length()),
                ..self.model.figures()
            },
            other => other.figures(),
        };
        let (name, figures) = (self.model.name().word(), figures.plain_text(&[]));
        format!("{share} ({name}:{figures}){own}")
    }

    /// As the value of the key: the short form where it says all.
    pub(super) fn text(&self) -> String {
        let own = self.keys_text();
        let mut keys = self.model.figures().keys_text();
        if let LossModel::Pattern { pattern, .. } = &self.model {
            keys.insert(0, pattern.keys());
        }
        let plain = matches!(&keys[..], [one] if one.starts_with("probability = "));
        if !plain || !own.is_empty() || self.model.name() != Model::Bernoulli {
            keys.insert(0, format!("model = \"{}\"", self.model.name().word()));
            keys.extend(own);
        }
        braced(&keys, "probability")
    }
}
