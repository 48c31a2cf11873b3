// SPDX-License-Identifier: GPL-2.0-only
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
}

/// Takes fq where it can be had, else hold, unless the user says which.
///
/// # Errors
/// The user wants fq and this kernel has none.
pub fn choose(wanted: EngineChoice) -> Result<Chosen, LinkError> {
    let chosen = |engine, reason: String| Ok(Chosen { engine, reason });
    if wanted == EngineChoice::Hold {
        return chosen(Engine::Hold, "as asked".to_owned());
    }
    match (fq::probe(), wanted) {
        (Ok(()), EngineChoice::Fq) => chosen(Engine::Fq, "as asked".to_owned()),
        (Ok(()), _) => chosen(Engine::Fq, "this kernel has sch_fq and ifb".to_owned()),
        (Err(why), EngineChoice::Fq) => Err(LinkError::NoFq(why)),
        (Err(why), _) => chosen(Engine::Hold, format!("no engine fq: {why}")),
    }
}
