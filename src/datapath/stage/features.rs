// SPDX-License-Identifier: MIT OR Apache-2.0
//! What links need of the classifier (enum emud_feature in bpf/abi/state.h). The loader sets it as a
//! constant, and the verifier neither follows nor keeps the code of everything else.

use super::direction::Compiled;
use super::{loss, short};
use crate::abi;

/// A classifier for all links.
pub const ALL: u32 = abi::EMUD_FEATURES;

/// Features for figures that replace the link's, from a pair of addresses or a row.
const OVERLAY: u32 = abi::EMUD_FEATURE_QUEUE
    | abi::EMUD_FEATURE_LOSS
    | abi::EMUD_FEATURE_LOSS_MODELS
    | abi::EMUD_FEATURE_DELAYS;

/// Returns what these links need, indexed by direction and number.
pub fn of(both: [&[Compiled]; 2]) -> u32 {
    let own = both.map(|links| links.first().map(|own| &own.link));
    let short = (short::bits(own) != 0).then_some(abi::EMUD_FEATURE_SHORT);
    let links = both.into_iter().flatten();
    links.fold(short.unwrap_or(0), |all, one| all | of_link(&one.link))
}

fn of_link(link: &abi::emud_link) -> u32 {
    let flag = |flags: u32| link.flags & flags != 0;
    let queueing = &link.queueing;
    let needs = [
        (
            abi::EMUD_FEATURE_MATCH,
            flag(abi::EMUD_F_RULES | abi::EMUD_F_MATRIX),
        ),
        (abi::EMUD_FEATURE_CGROUPS, flag(abi::EMUD_F_CGROUPS)),
        (abi::EMUD_FEATURE_NAMES, flag(abi::EMUD_F_NAMES)),
        (OVERLAY, flag(abi::EMUD_F_MATRIX) || link.timeline.count > 0),
        (abi::EMUD_FEATURE_TIMELINE, link.timeline.count > 0),
        (abi::EMUD_FEATURE_QUEUE, link.rate_mult > 0),
        (
            abi::EMUD_FEATURE_SIGNALS,
            queueing.aqm != abi::EMUD_AQM_NONE || queueing.ecn > 0 || flag(abi::EMUD_F_LOSS_MARKS),
        ),
        (
            abi::EMUD_FEATURE_LOSS,
            link.loss_model != abi::EMUD_LOSS_NONE || link.loss_run_max > 0,
        ),
        (abi::EMUD_FEATURE_LOSS_MODELS, !loss::is_independent(link)),
        (
            abi::EMUD_FEATURE_ALTER,
            link.corrupt.probability > 0 || link.duplicate.probability > 0 || link.reset > 0,
        ),
        (abi::EMUD_FEATURE_JITTER, flag(abi::EMUD_F_JITTER)),
        (
            abi::EMUD_FEATURE_DELAYS,
            flag(abi::EMUD_F_SHARE | abi::EMUD_F_REORDER | abi::EMUD_F_CORRELATED),
        ),
        (abi::EMUD_FEATURE_SLOT, link.tdma.span_ns > 0),
        (abi::EMUD_FEATURE_BACKGROUND, link.background.count > 0),
        // A rule may put packets in a class, too.
        (
            abi::EMUD_FEATURE_CLASSES,
            link.service > 0 || flag(abi::EMUD_F_RULES),
        ),
    ];
    let needed = needs.into_iter().filter(|(_, needed)| *needed);
    let release = (1 << link.release) & !(1 << abi::EMUD_RELEASE_NONE);
    needed.fold(release, |all, (feature, _)| all | feature)
}
