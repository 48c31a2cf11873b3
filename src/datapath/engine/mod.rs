// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a packet waits for its departure time.

pub mod fq;
pub mod hold;
pub mod qdisc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The engine that the user requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineChoice {
    /// fq if this kernel supports it, otherwise hold.
    Auto,
    /// fq, or an error.
    Fq,
    /// hold.
    Hold,
    /// qdisc, or an error.
    Qdisc,
}

/// An engine and the reason for its choice.
#[derive(Debug)]
pub struct Chosen {
    /// The engine.
    pub engine: Engine,
    /// Why this one.
    pub reason: String,
    /// Not of hold: how ingress packets reach the ifb.
    pub to_ifb: fq::ToIfb,
}

/// Takes fq where it can be had, else hold, unless the user says which. `serves`: packets wait in
/// the classes of a bottleneck, which only hold can do.
///
/// # Errors
/// The user wants fq or qdisc and it cannot be had: why.
pub fn choose(wanted: EngineChoice, serves: bool) -> Result<Chosen, String> {
    let hold = |reason| Chosen {
        engine: Engine::Hold,
        reason,
        to_ifb: fq::ToIfb::Redirect,
    };
    if wanted == EngineChoice::Hold {
        return Ok(hold("as requested".to_owned()));
    }
    if serves {
        let by = match wanted {
            EngineChoice::Qdisc => "the qdisc",
            _ => "fq",
        };
        let why = format!(
            "{by} sends a packet at a time that is fixed when it arrives, and a [bottleneck] decides \
             later"
        );
        return match wanted {
            EngineChoice::Fq | EngineChoice::Qdisc => Err(why),
            _ => Ok(hold(why)),
        };
    }
    if wanted == EngineChoice::Qdisc {
        return qdisc::supported().map(|()| Chosen {
            engine: Engine::Qdisc,
            reason: "as requested".to_owned(),
            // Kernels with BPF qdiscs are newer than those whose ifb drops such packets.
            to_ifb: fq::ToIfb::Redirect,
        });
    }
    match fq::probe() {
        Ok(to_ifb) => {
            let asked = if wanted == EngineChoice::Fq {
                "as requested"
            } else {
                "this kernel supports it"
            };
            Ok(Chosen {
                engine: Engine::Fq,
                reason: format!("{asked}; {to_ifb}"),
                to_ifb,
            })
        }
        Err(why) if wanted == EngineChoice::Fq => Err(why),
        Err(why) => Ok(hold(why)),
    }
}
