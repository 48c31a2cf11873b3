// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use emud_monitor::log::Judgement;

use super::line::End;

/// How an experiment ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub mono_ns: u64,
    /// "duration", "signal", "stop-after", "output-closed", "error".
    pub reason: String,
    /// What went wrong with the monitor.
    pub error: Option<String>,
    /// What the monitor says of each resource.
    pub resources: BTreeMap<String, String>,
    pub lines_lost: u64,
    pub judgement: Judgement,
}

impl Ending {
    pub(crate) fn new(end: End, judgement: Judgement) -> Self {
        Self {
            mono_ns: end.mono_ns,
            reason: end.reason,
            error: end.error,
            resources: end.resources,
            lines_lost: end.lines_lost,
            judgement,
        }
    }

    /// Resources of the host, and the emulator, that were watched, or, if not `wanted`, were not.
    pub fn watched(&self, wanted: bool) -> Vec<&str> {
        let of_host = (self.resources.iter()).filter(|(of, _)| *of != "application");
        of_host
            .filter(|(_, said)| (*said != "not watched") == wanted)
            .map(|(of, _)| of.as_str())
            .collect()
    }

    /// Resources that were to be watched and could not be.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let unknown = self.resources.iter().filter(|(_, said)| *said == "unknown");
        unknown.map(|(resource, _)| resource.as_str())
    }
}
