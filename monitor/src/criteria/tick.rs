// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has no event of its own: a task that never yields, a stuck device, an end.

use super::Attempt;
use crate::abi;
use crate::hooks::Point::{Timer, Tracepoint};
use crate::hooks::{Candidate, part};

pub(crate) fn hooks() -> Attempt {
    Attempt {
        label: "tick",
        candidates: vec![
            Candidate::of([part("emud_tick", Timer, abi::EMUD_HOOK_TICK)]),
            Candidate::of([part(
                "emud_tick_stat",
                Tracepoint("sched_stat_runtime"),
                abi::EMUD_HOOK_TICK,
            )])
            .but("comes on busy CPUs only: a stuck device, or an end, may be seen late"),
        ],
    }
}
