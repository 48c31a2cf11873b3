// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clean-up, whatever the result of the other phases.

use emud_monitor::log::{Line, LinkEvent, PhaseName};

use super::Run;
use crate::experiment::run::artefacts;
use crate::experiment::run::media::OnAir;
use crate::experiment::run::network::Network;
use crate::experiment::run::programs::Programs;
use crate::host::signals::Signals;

impl Run<'_> {
    /// Ends the remaining programs, then runs the plan's clean-up; a signal ends that, too.
    pub(super) async fn clean_up(
        &mut self,
        network: &Network,
        programs: &Programs,
        signals: &mut Signals,
    ) {
        self.phase(PhaseName::CleanUp);
        programs.end().await;
        let mut failed = vec![];
        let commands = async {
            programs.clean_up(&mut failed).await;
            programs.end().await;
        };
        self.unless_cut_short(commands, signals).await;
        programs.end().await;
        self.notes.extend(failed);
        self.notes.extend(programs.unprinted());
        let mut kept = vec![];
        let keeping = async {
            for node in &programs.common.plan.nodes {
                kept.extend(artefacts::keep(&programs.common, node).await);
            }
        };
        self.unless_cut_short(keeping, signals).await;
        for line in kept {
            if let Some(error) = &line.error {
                let note = format!("{}: {}: {error}", line.node, line.path);
                self.notes.push(note);
            }
            self.experiment.line(Line::Artefact(line));
        }
        self.notes.extend(network.media.iter().map(OnAir::end));
        for (link, _) in &network.links {
            self.link(&link.name, LinkEvent::Detached);
        }
    }

    async fn unless_cut_short(&mut self, work: impl Future<Output = ()>, signals: &mut Signals) {
        tokio::select! {
            biased;
            signal = signals.any() => {
                self.signal.get_or_insert(signal);
                self.notes.push(format!("signal {signal} cut the clean-up short"));
            }
            () = work => {}
        }
    }
}
