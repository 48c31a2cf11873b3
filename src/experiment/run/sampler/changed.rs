// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a link, and its removal.

use emud_monitor::log::{Line, LinkEvent, LinkLine};

use super::Work;
use crate::datapath::show::report::Report;
use crate::experiment::scenario::Link;
use crate::host::now_ns;

/// State of a link that may change while it is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    toml: String,
    phase: Option<String>,
    gone: bool,
}

impl Work {
    /// Writes a line if the link has changed.
    pub(super) fn changed(&mut self, link: &Link, report: &Report, toml: String) {
        let now = State {
            toml,
            phase: phase(report),
            gone: false,
        };
        let before = self.state.insert(link.name.clone(), now.clone());
        let before = before.or_else(|| {
            let toml = self.parts.network.first.get(&link.name)?.toml.clone()?;
            // The phase at the start is no change.
            let phase = now.phase.clone();
            Some(State {
                toml,
                phase,
                gone: false,
            })
        });
        let Some(before) = before.filter(|before| *before != now) else {
            return;
        };
        self.parts.log.line(Line::Link(LinkLine {
            mono_ns: now_ns(),
            link: link.name.clone(),
            event: LinkEvent::Changed,
            what: vec![],
            toml: (before.toml != now.toml).then_some(now.toml),
            phase: now.phase.filter(|now| before.phase.as_ref() != Some(now)),
        }));
    }

    pub(super) fn gone(&mut self, link: &Link, why: &str) {
        let state = self.state.entry(link.name.clone()).or_insert(State {
            toml: String::new(),
            phase: None,
            gone: false,
        });
        if !std::mem::replace(&mut state.gone, true) {
            self.found.gone.push(why.to_owned());
        }
    }
}

/// Describes the phase of a profile with phases.
fn phase(report: &Report) -> Option<String> {
    let timeline = (report.up.iter().chain(&report.down)).find_map(|d| d.link.timeline.as_ref())?;
    let phase = timeline.phase.as_ref()?;
    Some(match &phase.name {
        Some(name) => format!("{} {name}", phase.number),
        None => phase.number.to_string(),
    })
}
