// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tick detects what has no event: a task that never yields, a stuck device, the end of an
//! episode.

use super::Attempt;
use crate::abi;
use crate::candidates::Point::{Timer, Tracepoint};
use crate::candidates::{Candidate, part};

pub(crate) fn hooks() -> Attempt {
    let stat = Tracepoint("sched_stat_runtime");
    let candidates = [
        Candidate::of([part("emud_tick", Timer, abi::EMUD_HOOK_TICK)]),
        Candidate::of([part("emud_tick_stat", stat, abi::EMUD_HOOK_TICK)])
            .but("runs on busy CPUs only: a stuck device, or an end, may be detected late"),
    ];
    Attempt::of("tick", candidates)
}
