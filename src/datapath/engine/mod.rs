// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a packet waits for its departure time.

mod choice;
pub mod fq;
pub mod hold;
pub mod qdisc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use choice::{Chosen, EngineChoice, Host, Kernel, Known, Needs, choose};

/// Where packets wait for their departure time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// sch_fq on the device, and on an ifb for ingress.
    Fq,
    /// A holder in user space behind a TAP.
    Hold,
    /// A BPF qdisc on the device, and on an ifb for ingress.
    Qdisc,
}

impl Engine {
    /// Returns whether packets wait in a qdisc until the time in their stamp.
    pub const fn is_stamped(self) -> bool {
        matches!(self, Self::Fq | Self::Qdisc)
    }
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fq => "fq",
            Self::Hold => "hold",
            Self::Qdisc => "qdisc",
        })
    }
}
