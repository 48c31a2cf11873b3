// SPDX-License-Identifier: MIT OR Apache-2.0
//! What loses, copies and damages packets, read back from the classifier's figures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::abi;
use crate::datapath::stage::loss::bit_error_rate;
use crate::profile::{ChecksumAfter, Link, LinkState, Loss, LossModel, Percent, Stage, Word};

/// The loss model in force.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LossReport {
    /// Name in a profile.
    #[schemars(extend("enum" = ["bernoulli", "gilbert-elliott", "four-state", "bit-error", "every", "pattern", "burst"]))]
    pub model: &'static str,
    /// Whether packets are lost before or after the queue.
    #[schemars(extend("enum" = ["after-queue", "before-queue"]))]
    pub stage: &'static str,
    /// Packets of senders that understand ECN are marked instead.
    pub ecn: bool,
    /// Parameters by their key in a profile; probabilities and `loop` are from 0 to 1.
    pub parameters: BTreeMap<&'static str, f64>,
}

/// Packets that come twice.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DuplicateReport {
    /// Probability that a packet is copied.
    #[schemars(range(min = 0, max = 1))]
    pub probability: f64,
    /// Correlation with the previous packet.
    #[schemars(range(min = 0, max = 1))]
    pub correlation: f64,
}

/// Packets that come damaged.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CorruptReport {
    /// Probability that a packet is damaged.
    #[schemars(range(min = 0, max = 1))]
    pub probability: f64,
    /// Correlation with the previous packet.
    #[schemars(range(min = 0, max = 1))]
    pub correlation: f64,
    /// Number of bits that are inverted in a packet.
    #[schemars(range(min = 1, max = 32))]
    pub bits: u32,
    /// First byte that can be damaged, from the start of the IP header.
    pub from_bytes: u32,
    /// Byte after the last one that can be damaged; null: the end of the packet.
    pub to_bytes: Option<u32>,
    /// "mend": the checksum is corrected.
    #[schemars(extend("enum" = ["keep", "mend"]))]
    pub checksum: &'static str,
}

/// A random u64's bound as a probability.
fn share(bound: u64) -> f64 {
    bound as f64 / 2f64.powi(64)
}

fn correlation(chance: &abi::emud_chance) -> f64 {
    f64::from(chance.correlation) / f64::from(1u32 << abi::EMUD_CORRELATION_SHIFT)
}

/// `up` or `down`.
pub(crate) fn state(link: &abi::emud_link) -> &'static str {
    match link.flags & abi::EMUD_F_DOWN {
        0 => LinkState::Up.word(),
        _ => LinkState::Down.word(),
    }
}

/// The share lost in the long run, where the packets' length does not matter. A
/// recorded pattern's is in the profile only.
pub(crate) fn expected(link: &abi::emud_link, wanted: Option<&Link>) -> Option<f64> {
    let param = link.loss_param.map(share);
    let [a, b, c, d, e] = param;
    let model = match link.loss_model {
        abi::EMUD_LOSS_NONE => return Some(0.0),
        abi::EMUD_LOSS_BERNOULLI => return Some(share(link.loss.probability)),
        abi::EMUD_LOSS_GILBERT_ELLIOTT => LossModel::GilbertElliott {
            p: a,
            r: b,
            bad: c,
            good: d,
        },
        abi::EMUD_LOSS_FOUR_STATE => LossModel::FourState {
            p13: a,
            p31: b,
            p32: c,
            p23: d,
            p14: e,
        },
        abi::EMUD_LOSS_EVERY => LossModel::Every {
            n: link.loss_param[0] as u32,
            offset: 0,
        },
        abi::EMUD_LOSS_BURST => LossModel::Burst {
            probability: a,
            length: link.loss_param[1] as u32,
        },
        abi::EMUD_LOSS_PATTERN => return wanted.and_then(|link| link.loss.share()),
        _ => return None,
    };
    let stage = Stage::default();
    Loss {
        model,
        stage,
        ecn: false,
    }
    .share()
}

pub(crate) fn loss(link: &abi::emud_link) -> Option<LossReport> {
    let param = link.loss_param;
    let shares = |keys: &[&'static str]| {
        let each = keys
            .iter()
            .zip(param)
            .map(|(key, bound)| (*key, share(bound)));
        each.collect::<BTreeMap<_, _>>()
    };
    let (model, parameters) = match link.loss_model {
        abi::EMUD_LOSS_BERNOULLI => {
            let probability = ("probability", share(link.loss.probability));
            let correlation = ("correlation", correlation(&link.loss));
            ("bernoulli", BTreeMap::from([probability, correlation]))
        }
        abi::EMUD_LOSS_GILBERT_ELLIOTT => ("gilbert-elliott", shares(&["p", "r", "bad", "good"])),
        abi::EMUD_LOSS_FOUR_STATE => ("four-state", shares(&["p13", "p31", "p32", "p23", "p14"])),
        abi::EMUD_LOSS_BIT_ERROR => (
            "bit-error",
            BTreeMap::from([("ber", bit_error_rate(param[0]))]),
        ),
        abi::EMUD_LOSS_EVERY => {
            let (n, offset) = (param[0] as f64, param[1] as f64);
            ("every", BTreeMap::from([("n", n), ("offset", offset)]))
        }
        abi::EMUD_LOSS_PATTERN => {
            let (length, repeat) = (param[0] as f64, param[1] as f64);
            (
                "pattern",
                BTreeMap::from([("length", length), ("loop", repeat)]),
            )
        }
        abi::EMUD_LOSS_BURST => {
            let (p, length) = (share(param[0]), param[1] as f64);
            (
                "burst",
                BTreeMap::from([("probability", p), ("length", length)]),
            )
        }
        _ => return None,
    };
    let stage = match link.flags & abi::EMUD_F_LOSS_BEFORE {
        0 => Stage::AfterQueue,
        _ => Stage::BeforeQueue,
    };
    Some(LossReport {
        model,
        stage: stage.word(),
        ecn: link.flags & abi::EMUD_F_LOSS_MARKS != 0,
        parameters,
    })
}

pub(crate) fn duplicate(link: &abi::emud_link) -> Option<DuplicateReport> {
    (link.duplicate.probability != 0).then(|| DuplicateReport {
        probability: share(link.duplicate.probability),
        correlation: correlation(&link.duplicate),
    })
}

pub(crate) fn corrupt(link: &abi::emud_link) -> Option<CorruptReport> {
    let checksum = match link.flags & abi::EMUD_F_MEND {
        0 => ChecksumAfter::Keep,
        _ => ChecksumAfter::Mend,
    };
    (link.corrupt.probability != 0).then(|| CorruptReport {
        probability: share(link.corrupt.probability),
        correlation: correlation(&link.corrupt),
        bits: link.corrupt_bits,
        from_bytes: link.corrupt_from,
        to_bytes: (link.corrupt_to != u32::MAX).then_some(link.corrupt_to),
        checksum: checksum.word(),
    })
}

/// A probability as a reader wants to see it.
fn percent(share: f64) -> String {
    Percent((share * 1e8).round() / 1e8).to_string()
}

/// Parts of a line that says what a direction does.
pub fn text(
    expected: Option<f64>,
    loss: Option<&LossReport>,
    duplicate: Option<&DuplicateReport>,
    corrupt: Option<&CorruptReport>,
) -> Vec<String> {
    let mut parts = vec![loss_text(expected, loss)];
    parts.extend(duplicate.map(|d| {
        let share = percent(d.probability);
        format!("duplicate {share}{}", correlated(d.correlation))
    }));
    parts.extend(corrupt.map(|c| {
        let to = c.to_bytes.map_or("the end".into(), |to| to.to_string());
        format!(
            "corrupt {}{} ({} bits from byte {} to {to}, checksum {})",
            percent(c.probability),
            correlated(c.correlation),
            c.bits,
            c.from_bytes,
            c.checksum
        )
    }));
    parts
}

fn correlated(correlation: f64) -> String {
    match correlation {
        0.0 => String::new(),
        _ => format!(" correlation {}", percent(correlation)),
    }
}

fn loss_text(expected: Option<f64>, loss: Option<&LossReport>) -> String {
    let share = expected.map_or("by length".into(), percent);
    let Some(loss) = loss else {
        return format!("loss {share}");
    };
    let figures = loss.parameters.iter().map(|(key, value)| match *key {
        "ber" => format!("{key} {value:.4e}"),
        "n" | "offset" | "length" | "loop" => format!("{key} {value}"),
        _ => format!("{key} {}", percent(*value)),
    });
    let figures: Vec<_> = figures.collect();
    let mut how = match loss.stage == Stage::default().word() {
        true => String::new(),
        false => " before the queue".to_owned(),
    };
    if loss.ecn {
        how += " ecn";
    }
    match (loss.model, loss.parameters.get("correlation")) {
        ("bernoulli", Some(0.0)) => format!("loss {share}{how}"),
        ("bernoulli", Some(value)) => format!("loss {share}{}{how}", correlated(*value)),
        (model, _) => format!("loss {share} ({model}: {}){how}", figures.join(" ")),
    }
}
