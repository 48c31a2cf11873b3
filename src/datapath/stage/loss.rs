// SPDX-License-Identifier: MIT OR Apache-2.0
//! `loss`: from the profile to the figures of bpf/loss.h, and back.

use super::fixed::{chance, decimal, of_chance, of_probability, probability};
use crate::abi::{self, mix};
use crate::profile::{Loss, LossModel, Pattern, Stage};

/// Fills in what loses packets; the bits of a recorded pattern.
pub(crate) fn encode(out: &mut abi::emud_link, loss: &Loss) -> Option<Box<abi::emud_pattern>> {
    // Of the losses of a trace's rows and of ramps, too.
    if loss.stage == Stage::BeforeQueue {
        out.flags |= abi::EMUD_F_LOSS_BEFORE;
    }
    if loss.ecn {
        out.flags |= abi::EMUD_F_LOSS_MARKS;
    }
    out.loss_run_max = loss.max_run.unwrap_or(0);
    if loss.is_none() {
        return None;
    }
    let mut recorded = None;
    let (model, param) = match &loss.model {
        LossModel::Bernoulli {
            probability,
            correlation,
        } => {
            out.loss = chance(*probability, *correlation);
            (abi::EMUD_LOSS_BERNOULLI, [0; 5])
        }
        LossModel::GilbertElliott { p, r, bad, good } => (
            abi::EMUD_LOSS_GILBERT_ELLIOTT,
            [*p, *r, *bad, *good, 0.0].map(probability),
        ),
        LossModel::FourState {
            p13,
            p31,
            p32,
            p23,
            p14,
        } => (
            abi::EMUD_LOSS_FOUR_STATE,
            [*p13, *p31, *p32, *p23, *p14].map(probability),
        ),
        LossModel::BitError { ber } => {
            (abi::EMUD_LOSS_BIT_ERROR, [byte_survives(*ber), 0, 0, 0, 0])
        }
        LossModel::Every { n, offset } => (
            abi::EMUD_LOSS_EVERY,
            [u64::from(*n), u64::from(*offset), 0, 0, 0],
        ),
        LossModel::Pattern { pattern, repeat } => {
            recorded = Some(bits(pattern));
            (
                abi::EMUD_LOSS_PATTERN,
                [u64::from(pattern.length()), u64::from(*repeat), 0, 0, 0],
            )
        }
        LossModel::Burst {
            probability: p,
            length,
        } => (
            abi::EMUD_LOSS_BURST,
            [probability(*p), u64::from(*length), 0, 0, 0],
        ),
    };
    out.loss_model = model;
    out.loss_param = param;
    out.loss_id = id(out, recorded.as_deref());
    recorded
}

/// Returns whether the link loses none, or each independently of all others.
pub(super) fn is_independent(link: &abi::emud_link) -> bool {
    matches!(
        link.loss_model,
        abi::EMUD_LOSS_NONE | abi::EMUD_LOSS_BERNOULLI
    ) && link.loss.correlation == 0
        && link.loss_run_max == 0
}

/// Returns the loss of a link; `recorded` has the bits of a pattern, which the figures do not contain.
pub(crate) fn decode(link: &abi::emud_link, recorded: Option<&abi::emud_pattern>) -> Loss {
    let param = link.loss_param;
    let [a, b, c, d, e] = param.map(of_probability);
    let model = match link.loss_model {
        abi::EMUD_LOSS_BERNOULLI => {
            let (probability, correlation) = of_chance(&link.loss);
            LossModel::Bernoulli {
                probability,
                correlation,
            }
        }
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
        abi::EMUD_LOSS_BIT_ERROR => LossModel::BitError {
            ber: decimal(bit_error_rate(param[0]), 6),
        },
        abi::EMUD_LOSS_EVERY => LossModel::Every {
            n: param[0] as u32,
            offset: param[1] as u32,
        },
        abi::EMUD_LOSS_PATTERN => LossModel::Pattern {
            pattern: Pattern::of_words(
                recorded.map_or(&[][..], |recorded| &recorded.bits),
                param[0] as u32,
            ),
            repeat: param[1] != 0,
        },
        abi::EMUD_LOSS_BURST => LossModel::Burst {
            probability: a,
            length: param[1] as u32,
        },
        _ => LossModel::default(),
    };
    Loss {
        model,
        stage: match link.flags & abi::EMUD_F_LOSS_BEFORE {
            0 => Stage::AfterQueue,
            _ => Stage::BeforeQueue,
        },
        ecn: link.flags & abi::EMUD_F_LOSS_MARKS != 0,
        max_run: (link.loss_run_max > 0).then_some(link.loss_run_max),
    }
}

/// Returns the identity of a model: `emud set` of another key leaves the state of a model
/// unchanged, and a different model starts from its first state.
fn id(out: &abi::emud_link, pattern: Option<&abi::emud_pattern>) -> u64 {
    let bits = pattern.map_or(&[][..], |pattern| &pattern.bits);
    let all = out.loss_param.iter().chain(bits);
    let hash = all.fold(u64::from(out.loss_model), |hash, word| {
        mix(hash ^ word).wrapping_add(1)
    });
    hash | 1
}

/// Returns (1 - ber)^8, less 1 of 2^64: from the complement, which f64 has to 16 digits
/// where the power itself would be rounded to 1.
fn byte_survives(ber: f64) -> u64 {
    let lost = -(8.0 * (-ber).ln_1p()).exp_m1();
    !probability(lost)
}

/// Returns the inverse of [`byte_survives`].
fn bit_error_rate(survives: u64) -> f64 {
    let lost = !survives as f64 / 2f64.powi(64);
    -((-lost).ln_1p() / 8.0).exp_m1()
}

fn bits(pattern: &Pattern) -> Box<abi::emud_pattern> {
    let mut bits = Box::<abi::emud_pattern>::new(abi::emud_pattern {
        bits: [0; abi::EMUD_PATTERN_LEN as usize / 64],
    });
    for i in pattern.lost() {
        bits.bits[*i as usize / 64] |= 1 << (i % 64);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_error_rate_is_exact_from_one_in_a_million_million_on() {
        for ber in [1e-12f64, 1e-9, 1e-6, 1e-3, 0.1, 1.0] {
            let read = bit_error_rate(byte_survives(ber));
            assert!((read / ber - 1.0).abs() < 1e-6, "{ber}: {read}");
        }
        assert_eq!(byte_survives(0.0), u64::MAX);
    }

    #[test]
    fn another_model_has_another_id() {
        let id = |loss: Loss| {
            let mut out = abi::emud_link::default();
            encode(&mut out, &loss);
            out.loss_id
        };
        let pattern = |bits: &str| Loss {
            model: LossModel::Pattern {
                pattern: Pattern::from_bits(bits).expect("a pattern"),
                repeat: true,
            },
            ..Loss::default()
        };
        let every = |n| Loss {
            model: LossModel::Every { n, offset: 0 },
            ..Loss::default()
        };
        assert_eq!(id(every(7)), id(every(7)));
        assert_ne!(id(every(7)), id(every(8)));
        assert_ne!(id(pattern("0010")), id(pattern("0100")));
        assert_ne!(id(every(7)), 0);
    }
}
