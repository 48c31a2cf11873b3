// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a packet waits for its departure time.

pub mod fq;
pub mod hold;

use crate::link::LinkError;
use crate::link::attach::EngineChoice;
use crate::link::saved::Engine;

/// An engine and why it was taken.
#[derive(Debug)]
pub struct Chosen {
    pub engine: Engine,
    pub reason: String,
    /// fq only: how ingress gets to the ifb.
    pub to_ifb: fq::ToIfb,
}

/// Takes fq where it can be had, else hold, unless the user says which.
///
/// # Errors
/// The user wants fq and this kernel has none.
pub fn choose(wanted: EngineChoice) -> Result<Chosen, LinkError> {
    let hold = |reason| Chosen {
        engine: Engine::Hold,
        reason,
        to_ifb: fq::ToIfb::Redirect,
    };
    if wanted == EngineChoice::Hold {
        return Ok(hold("as asked".to_owned()));
    }
    match fq::probe() {
        Ok(to_ifb) => {
            let asked = if wanted == EngineChoice::Fq {
                "as asked"
            } else {
                "this kernel has it"
            };
            Ok(Chosen {
                engine: Engine::Fq,
                reason: format!("{asked}; {to_ifb}"),
                to_ifb,
            })
        }
        Err(why) if wanted == EngineChoice::Fq => Err(LinkError::NoFq(why)),
        Err(why) => Ok(hold(why)),
    }
}
