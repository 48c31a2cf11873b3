// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss, duplication and corruption of a profile to the classifier's figures.

use super::compile::probability;
use crate::abi::{self, mix};
use crate::profile::quantile::normal_quantile;
use crate::profile::{self, ChecksumAfter, LinkState, Loss, LossModel, Pattern, Stage};

/// Fills in what loses, copies and damages packets; the bits of a recorded pattern.
pub(crate) fn compile(
    out: &mut abi::emud_link,
    link: &profile::Link,
) -> Option<Box<abi::emud_pattern>> {
    if link.state == LinkState::Down {
        out.flags |= abi::EMUD_F_DOWN;
    }
    out.duplicate = chance(link.duplicate.probability, link.duplicate.correlation);
    let corrupt = &link.corrupt;
    out.corrupt = chance(corrupt.probability, corrupt.correlation);
    out.corrupt_bits = corrupt.bits;
    out.corrupt_from = corrupt.from;
    out.corrupt_to = corrupt.to.unwrap_or(u32::MAX);
    if corrupt.checksum == ChecksumAfter::Mend {
        out.flags |= abi::EMUD_F_MEND;
    }
    loss(out, &link.loss)
}

fn loss(out: &mut abi::emud_link, loss: &Loss) -> Option<Box<abi::emud_pattern>> {
    // Of the losses of a trace's rows and of ramps, too.
    if loss.stage == Stage::BeforeQueue {
        out.flags |= abi::EMUD_F_LOSS_BEFORE;
    }
    if loss.ecn {
        out.flags |= abi::EMUD_F_LOSS_MARKS;
    }
    if loss.is_none() {
        return None;
    }
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
        LossModel::Pattern { pattern, repeat } => (
            abi::EMUD_LOSS_PATTERN,
            [u64::from(pattern.length()), u64::from(*repeat), 0, 0, 0],
        ),
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
    let pattern = match &loss.model {
        LossModel::Pattern { pattern, .. } => Some(bits(pattern)),
        _ => None,
    };
    out.loss_id = id(out, pattern.as_deref());
    pattern
}

/// So that `emud set` of something else leaves the model where it is, and another
/// model starts anew.
fn id(out: &abi::emud_link, pattern: Option<&abi::emud_pattern>) -> u64 {
    let bits = pattern.map_or(&[][..], |pattern| &pattern.bits);
    let all = out.loss_param.iter().chain(bits);
    let hash = all.fold(u64::from(out.loss_model), |hash, word| {
        mix(hash ^ word).wrapping_add(1)
    });
    hash | 1
}

fn chance(p: f64, correlation: f64) -> abi::emud_chance {
    let one = f64::from(1u32 << abi::EMUD_CORRELATION_SHIFT);
    let z = f64::from(1u32 << abi::EMUD_Z_SHIFT);
    abi::emud_chance {
        probability: probability(p),
        // `as` saturates: at 100 % the quantile is infinite.
        below: (normal_quantile(p) * z) as i64,
        correlation: (correlation * one).round() as u32,
        innovation: ((1.0 - correlation * correlation).sqrt() * one).round() as u32,
    }
}

/// (1 - ber)^8, less 1 of 2^64: from the complement, which f64 has to 16 digits
/// where the power itself would be rounded to 1.
fn byte_survives(ber: f64) -> u64 {
    let lost = -(8.0 * (-ber).ln_1p()).exp_m1();
    !probability(lost)
}

/// The bit-error rate that a link's figure stands for.
pub(crate) fn bit_error_rate(survives: u64) -> f64 {
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
    fn a_correlated_chance_keeps_the_variance() {
        for correlation in [0.01, 0.25, 0.9, 0.999] {
            let chance = chance(0.01, correlation);
            let of = |part: u32| f64::from(part) / f64::from(1u32 << 30);
            let variance = of(chance.correlation).powi(2) + of(chance.innovation).powi(2);
            assert!((variance - 1.0).abs() < 1e-8, "{correlation}: {variance}");
        }
        assert_eq!(chance(1.0, 0.5).below, i64::MAX);
        // Phi^-1(0.5) = 0
        assert_eq!(chance(0.5, 0.5).below, 0);
    }

    #[test]
    fn another_model_has_another_id() {
        let id = |loss: Loss| {
            let mut out = abi::emud_link::default();
            super::loss(&mut out, &loss);
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
