// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the recording programs that this kernel supports.

use aya::{Btf, Ebpf};

use super::RecordError;
use super::event::Kind;
use super::header::WatchedKinds;
use crate::candidates::Attempt;
use crate::criteria::{Basis, CRITERIA};
use crate::event::{Hook, Watched};
use crate::hooks::Hooks;

/// The hooks that were tried, and what is recorded through them.
pub struct Attached {
    pub hooks: Vec<Hook>,
    pub watched: WatchedKinds,
    /// The attached programs, with the kind of their records.
    pub programs: Vec<(&'static str, Kind)>,
}

/// Returns the kind of record that the programs of [`Recorded`](crate::criteria::Recorded) write.
fn kind(key: &str) -> Kind {
    match key {
        "cpu" => Kind::CpuBusy,
        "network" => Kind::Packet,
        "page-ins" => Kind::PageIn,
        "page-outs" => Kind::PageOut,
        _ => Kind::DiskBusy,
    }
}

/// Attaches the programs.
///
/// # Errors
/// The kernel supports none of them.
pub fn attach(bpf: &mut Ebpf, btf: Btf, basis: Basis) -> Result<Attached, RecordError> {
    let mut hooks = Hooks::new(btf, vec![]);
    let mut watched = WatchedKinds::new();
    let mut beside = vec![];
    let mut programs = vec![];
    for recorded in CRITERIA.iter().flat_map(|criterion| criterion.recorded) {
        let attempt = Attempt::of(recorded.label, (recorded.candidates)(basis));
        let state = match hooks.attach_first(bpf, None, &attempt) {
            true => Watched::Yes,
            false => Watched::Unknown,
        };
        let new = hooks.attached[programs.len()..].iter();
        programs.extend(new.map(|held| (held.program, kind(recorded.key))));
        watched.insert(recorded.key.into(), state);
        if state == Watched::Yes {
            let kind = kind(recorded.key);
            let of = |beside: fn() -> _| (kind, Attempt::of(recorded.label, [beside()]));
            beside.extend(recorded.beside.map(of));
        }
    }
    if hooks.attached.is_empty() {
        let refused = hooks.tried.into_iter().next().and_then(|h| h.refused);
        return Err(RecordError::NoHook(refused.unwrap_or_default()));
    }
    for (kind, attempt) in beside {
        hooks.attach_first(bpf, None, &attempt);
        let new = hooks.attached[programs.len()..].iter();
        programs.extend(new.map(|held| (held.program, kind)));
    }
    Ok(Attached {
        hooks: hooks.tried,
        watched,
        programs,
    })
}
