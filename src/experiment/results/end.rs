// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use emud_monitor::log::Judgement;
use serde::Deserialize;

/// How an experiment ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Ending {
    /// Error of the monitor.
    pub error: Option<String>,
    /// State of each resource: "clean", "contended", "unknown", "not watched".
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
    /// Lines that the log lacks.
    #[serde(default)]
    pub lines_lost: u64,
    /// Judgement of the experiment.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl Ending {
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
