// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel runs: compile a profile, attach it, read it back, change it,
//! take it away.

pub mod attach;
pub mod attachment;
mod batch;
pub mod change;
pub mod compile;
pub mod datapath;
pub mod detach;
mod devices;
pub mod emulated;
mod error;
mod held;
mod loss;
pub mod loss_runs;
pub mod matrix;
pub mod over_time;
pub mod overlap;
pub mod pieces;
mod plan;
pub mod quantile;
pub mod queueing;
mod record;
pub mod report;
pub mod report_link;
pub mod report_loss;
pub mod report_match;
pub mod report_time;
mod rows;
pub mod rules;
pub mod saved;
mod segmenter;
mod segments;
pub mod shapes;
pub mod sizes;
pub mod sweep;
pub mod timeline;
pub mod watch;

pub use error::LinkError;

use crate::abi;
use crate::netlink::Hook;

/// Both directions, `EMUD_UP` and `EMUD_DOWN`.
pub const DIRECTIONS: [u32; 2] = [abi::EMUD_UP, abi::EMUD_DOWN];

/// Handle of emud's filters.
const FILTER_HANDLE: u32 = 0xe3d;

/// Handle of [`datapath::Program::Orphan`], which may share a pref with the classifier.
const ORPHAN_HANDLE: u32 = 0xe3e;

/// The chain of the filters on emud's own devices that keep the classifier loaded; no packet
/// meets it.
const KEEPER_CHAIN: u32 = 1;

/// What those filters are called.
const KEEPER_NAME: &str = "emud_keeper";

/// Where a direction's packets pass.
const fn hook(direction: u32) -> Hook {
    if direction == abi::EMUD_UP {
        Hook::Egress
    } else {
        Hook::Ingress
    }
}

/// What the filter of a direction is called, by which it is found again.
const fn filter_name(direction: u32) -> &'static str {
    if direction == abi::EMUD_UP {
        "emud_egress"
    } else {
        "emud_ingress"
    }
}

/// By which the classifier knows the hook.
const fn filter_classid(direction: u32) -> u32 {
    if direction == abi::EMUD_UP {
        0
    } else {
        abi::EMUD_CLASSID_DOWN
    }
}

/// How the user calls a direction.
pub const fn direction_name(direction: u32) -> &'static str {
    if direction == abi::EMUD_UP {
        "up"
    } else {
        "down"
    }
}

/// Now on CLOCK_MONOTONIC, the clock of every departure time.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
