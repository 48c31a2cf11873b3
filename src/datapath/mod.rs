// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel runs: compiles a profile, attaches it, reads it back, changes it, removes it.

mod ahead;
pub mod attach;
pub mod attachment;
pub mod change;
pub mod compiled;
pub mod detach;
mod devices;
pub mod doctor;
pub mod emulated;
pub mod ending;
pub mod engine;
mod error;
mod filters;
mod held;
pub mod host_wide;
mod listen;
pub mod maps;
pub mod matrix;
mod moved;
mod notes;
pub mod pieces;
mod plan;
pub(crate) mod programs;
pub mod radio;
pub mod reports;
mod restore;
pub mod saved;
mod segmenter;
mod segments;
pub mod serve;
mod served;
pub mod show;
pub mod space;
pub mod stage;
pub mod survey;
pub mod sweep;
mod undo;
pub(crate) mod watch;

pub use error::LinkError;

use crate::abi;
use crate::netlink::Hook;

/// Handle of emud's filters.
const FILTER_HANDLE: u32 = 0xe3d;

/// Handle of [`maps::Program::Orphan`], which may share a pref with the classifier.
const ORPHAN_HANDLE: u32 = 0xe3e;

/// The chain of the filters on emud's devices that keep the classifier loaded; no packet passes it.
const KEEPER_CHAIN: u32 = 1;

/// The name of those filters.
const KEEPER_NAME: &str = "emud_keeper";

/// Returns the hook of a direction.
const fn hook(direction: u32) -> Hook {
    if direction == abi::EMUD_UP {
        Hook::Egress
    } else {
        Hook::Ingress
    }
}

/// Returns the name of a direction's filter, by which it is found again.
const fn filter_name(direction: u32) -> &'static str {
    if direction == abi::EMUD_UP {
        "emud_egress"
    } else {
        "emud_ingress"
    }
}

/// Returns the classid by which the classifier identifies the hook.
const fn filter_classid(direction: u32) -> u32 {
    if direction == abi::EMUD_UP {
        0
    } else {
        abi::EMUD_CLASSID_DOWN
    }
}
