// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a link for which `emud verify` has no theory.

use super::check::What::{
    self, DelayDistribution, DelayMean, DelaySd, Duplicates, Loss, Overtaken, Rate,
};
use crate::abi;
use crate::profile::{self, LinkState, LossModel, Reorder};

/// A part of a link without a theory here, and the checks that it makes invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unjudged {
    pub why: &'static str,
    pub what: &'static [What],
    /// Whether packets may wait for a rate in it.
    pub limits: bool,
}

/// Why the losses of a link are not judged.
pub const DEPENDENT_LOSS: &str = "losses that are not independent";

pub(super) const AQM: &str = "an AQM";

/// Why a link with a class is not judged, unless `Asked::with_class` finds the class.
pub(super) const IN_CLASS: &str = "a class of a bottleneck";

pub(super) fn left_out(link: &profile::Link, figures: &abi::emud_link) -> Vec<Unjudged> {
    let flag = |flag| figures.flags & flag != 0;
    let jitter = link.delay.jitter.as_ref();
    let per_packet = jitter.is_some_and(|jitter| jitter.reorder == Reorder::Jitter);
    let all_but_order: &[What] = &[DelayMean, DelaySd, DelayDistribution, Loss, Rate];
    let delay_and_order: &[What] = &[DelayMean, DelaySd, DelayDistribution, Overtaken];
    let delay_and_rate: &[What] = &[DelayMean, DelaySd, DelayDistribution, Rate];
    // Without `..`, and with the keys that are known: a new one makes a check doubtful.
    let profile::Link {
        rate: _,
        overhead: _,
        neighbours: _,
        shared: _,
        state,
        wire,
        queue,
        delay,
        loss,
        reorder,
        duplicate,
        corrupt,
        // Probes are UDP.
        reset: _,
        trace: _,
        slot,
        background: _,
        class: _,
    } = link;
    let others = [
        (DEPENDENT_LOSS, &[Loss, Rate][..], !is_independent(loss)),
        (
            "duplicates",
            &[Duplicates, Rate],
            duplicate.probability > 0.0,
        ),
        ("corruption", &What::ALL, corrupt.probability > 0.0),
        ("`state = \"down\"`", &What::ALL, *state == LinkState::Down),
        (
            "a delay in order of only a share of the packets",
            delay_and_order,
            delay.share.is_some() && jitter.is_some() && !per_packet,
        ),
        ("`reorder`", delay_and_order, reorder.is_some()),
        (
            "correlated delays",
            delay_and_order,
            flag(abi::EMUD_F_CORRELATED),
        ),
        (
            "a key of `delay`",
            delay_and_order,
            !delay.beyond(&["mean", "share", "max"]).is_empty(),
        ),
        ("a burst", delay_and_rate, wire.burst.is_some()),
        (
            "framing (`mpu`, `cell`)",
            delay_and_rate,
            !wire.beyond(&["burst"]).is_empty(),
        ),
        (AQM, &[Rate], queue.aqm.is_some()),
        ("`slot`", delay_and_rate, slot.is_some()),
        ("a background", all_but_order, figures.background.count != 0),
    ];
    let limiting = [
        (IN_CLASS, all_but_order, figures.service != 0),
        (
            "a trace or phases",
            all_but_order,
            figures.timeline.count != 0,
        ),
        ("rules", &What::ALL, flag(abi::EMUD_F_RULES)),
        ("a matrix", &What::ALL, flag(abi::EMUD_F_MATRIX)),
    ];
    let all = others.map(|part| (part, false)).into_iter();
    all.chain(limiting.map(|part| (part, true)))
        .filter(|((.., there), _)| *there)
        .map(|((why, what, _), limits)| Unjudged { why, what, limits })
        .collect()
}

/// Returns whether each packet is lost with the same probability, independent of the others; a key
/// unknown to this function makes it false.
fn is_independent(loss: &profile::Loss) -> bool {
    let plain =
        matches!(loss.model, LossModel::Bernoulli { correlation, .. } if correlation == 0.0);
    plain && loss.beyond(&["stage", "ecn"]).is_empty()
}
