// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the hooks of the configured criteria.

use aya::Ebpf;

use super::MonitorError;
use crate::candidates::Attempt;
use crate::criteria::{CRITERIA, Config, tick};
use crate::event::{Resource, Watched};
use crate::hooks::Hooks;

/// Attaches the hooks of each configured criterion.
///
/// # Errors
/// [`MonitorError::Blind`]: none of the criteria that are judged in the kernel found a hook.
pub(super) fn attach(
    bpf: &mut Ebpf,
    hooks: &mut Hooks,
    config: &Config,
) -> Result<[Watched; Resource::ALL.len()], MonitorError> {
    let mut watched = [Watched::No; Resource::ALL.len()];
    let mut in_kernel = vec![];
    for criterion in &CRITERIA {
        let Some(attempts) = (criterion.hooks)(config) else {
            continue;
        };
        let index = criterion.resource as usize;
        watched[index] = match attach_all(bpf, hooks, criterion.resource, &attempts) {
            true => Watched::Yes,
            false => Watched::Unknown,
        };
        if !attempts.is_empty() {
            in_kernel.push(index);
        }
    }
    // Last: the tick would judge a CPU as busy before the hooks that detect its idle time are
    // attached.
    if !hooks.attach_first(bpf, None, &tick::hooks()) {
        let blind = (CRITERIA.iter().zip(&mut watched)).filter(|(of, _)| of.ticks);
        let asked_for = blind.filter(|(_, state)| **state == Watched::Yes);
        asked_for.for_each(|(_, state)| *state = Watched::Unknown);
    }
    if in_kernel.is_empty() || in_kernel.iter().any(|i| watched[*i] == Watched::Yes) {
        return Ok(watched);
    }
    let refused = hooks.tried.iter().filter_map(|hook| {
        let why = hook.refused.as_ref()?;
        Some(format!(
            "  {}: {} rejected: {why}",
            hook.criterion, hook.hook
        ))
    });
    Err(MonitorError::Blind(refused.collect::<Vec<_>>().join("\n")))
}

/// Tries all of them, so that the log lists every one; returns true if each works.
pub(super) fn attach_all(
    bpf: &mut Ebpf,
    hooks: &mut Hooks,
    resource: Resource,
    attempts: &[Attempt],
) -> bool {
    let mut holds = true;
    for attempt in attempts {
        holds &= hooks.attach_first(bpf, Some(resource), attempt);
    }
    holds
}
