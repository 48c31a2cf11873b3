// SPDX-License-Identifier: MIT OR Apache-2.0
//! What loses packets: the models and their canonical text.

use super::pattern::Pattern;
use crate::text::{Percent, Word};

/// How packets are lost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loss {
    pub model: LossModel,
    pub stage: Stage,
    /// What understands ECN is marked instead of lost.
    pub ecn: bool,
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

impl LossModel {
    /// What `model` calls it.
    pub fn word(&self) -> &'static str {
        let model = match self {
            Self::Bernoulli { .. } => Model::Bernoulli,
            Self::GilbertElliott { .. } => Model::GilbertElliott,
            Self::FourState { .. } => Model::FourState,
            Self::BitError { .. } => Model::BitError,
            Self::Every { .. } => Model::Every,
            Self::Pattern { .. } => Model::Pattern,
            Self::Burst { .. } => Model::Burst,
        };
        model.word()
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
            ecn: false,
        }
    }
}

impl Loss {
    /// Nothing is ever lost.
    pub fn is_none(&self) -> bool {
        matches!(self.model, LossModel::Bernoulli { probability, .. } if probability == 0.0)
    }

    /// The share of packets lost in the long run, of frames of so many bytes.
    pub fn share_of(&self, frame_bytes: u32) -> f64 {
        match &self.model {
            LossModel::BitError { ber } => {
                -(8.0 * f64::from(frame_bytes) * (-ber).ln_1p()).exp_m1()
            }
            _ => self.share().unwrap_or(0.0),
        }
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

/// The value of `loss` as text that reads back to it.
pub(super) fn text(loss: &Loss) -> String {
    let percent = |share: f64| format!("\"{}\"", Percent(share));
    let correlated = |correlation: f64| match correlation {
        0.0 => String::new(),
        _ => format!(", correlation = {}", percent(correlation)),
    };
    let keys = match &loss.model {
        LossModel::Bernoulli {
            probability,
            correlation: 0.0,
        } if loss.stage == Stage::default() && !loss.ecn => return percent(*probability),
        LossModel::Bernoulli {
            probability,
            correlation,
        } => format!(
            "probability = {}{}",
            percent(*probability),
            correlated(*correlation)
        ),
        LossModel::GilbertElliott { p, r, bad, good } => {
            shares(&[("p", *p), ("r", *r), ("bad", *bad), ("good", *good)])
        }
        LossModel::FourState {
            p13,
            p31,
            p32,
            p23,
            p14,
        } => {
            let all = [("p13", *p13), ("p31", *p31), ("p32", *p32)];
            let rest = [("p23", *p23), ("p14", *p14)];
            format!("{}, {}", shares(&all), shares(&rest))
        }
        LossModel::BitError { ber } => format!("ber = {ber:e}"),
        LossModel::Every { n, offset } => format!("n = {n}, offset = {offset}"),
        LossModel::Pattern { pattern, repeat } => format!("{}, loop = {repeat}", pattern.keys()),
        LossModel::Burst {
            probability,
            length,
        } => format!("probability = {}, length = {length}", percent(*probability)),
    };
    let stage = match loss.stage == Stage::default() {
        true => String::new(),
        false => format!(", stage = \"{}\"", loss.stage.word()),
    };
    let ecn = if loss.ecn { ", ecn = true" } else { "" };
    format!(
        "{{ model = \"{}\", {keys}{stage}{ecn} }}",
        loss.model.word()
    )
}

fn shares(shares: &[(&str, f64)]) -> String {
    let each: Vec<_> = shares
        .iter()
        .map(|(key, share)| format!("{key} = \"{}\"", Percent(*share)))
        .collect();
    each.join(", ")
}
