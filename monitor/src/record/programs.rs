// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the recording programs that this kernel supports.

use aya::{Btf, Ebpf};

use super::RecordError;
use super::header::WatchedKinds;
use crate::criteria::{Attempt, Basis, CRITERIA};
use crate::event::{Hook, Watched};
use crate::hooks::Hooks;

/// The hooks that were tried, and what is recorded through them.
pub struct Attached {
    pub hooks: Vec<Hook>,
    pub watched: WatchedKinds,
}

/// Attaches the programs.
///
/// # Errors
/// The kernel supports none of them.
pub fn attach(bpf: &mut Ebpf, btf: Btf, basis: Basis) -> Result<Attached, RecordError> {
    let mut hooks = Hooks::new(btf, vec![]);
    let mut watched = WatchedKinds::new();
    let mut beside = vec![];
    let all = CRITERIA.iter().flat_map(|criterion| {
        let of_it = criterion.recorded.iter();
        of_it.map(|recorded| (Some(criterion.resource), recorded))
    });
    for (resource, recorded) in all {
        let attempt = Attempt::of(recorded.label, (recorded.candidates)(basis));
        let state = match hooks.attach_first(bpf, resource, &attempt) {
            true => Watched::Yes,
            false => Watched::Unknown,
        };
        watched.insert(recorded.key.into(), state);
        if state == Watched::Yes {
            let of = |beside: fn() -> _| (resource, Attempt::of(recorded.label, [beside()]));
            beside.extend(recorded.beside.map(of));
        }
    }
    if hooks.attached.is_empty() {
        let refused = hooks.tried.into_iter().next().and_then(|h| h.refused);
        return Err(RecordError::NoHook(refused.unwrap_or_default()));
    }
    for (resource, attempt) in beside {
        hooks.attach_first(bpf, resource, &attempt);
    }
    Ok(Attached {
        hooks: hooks.tried,
        watched,
    })
}
