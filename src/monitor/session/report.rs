// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first and the last line of a run, and their figures.

use std::io;

use emud_monitor::MonitorError;
use emud_monitor::criteria::table::ns;
use emud_monitor::event::{Dropped, Hook, Resource, Watched};
use emud_monitor::log::{
    Clock, CostLine, End, Host, Judgement, Line, OnAlarm, Overhead, PerResource, SCHEMA, Start,
    Thresholds, Verdict, why_unknown,
};

use super::at_end::Asked;
use super::ended::{Ended, Stop};
use super::judge::{Evidence, judge};
use super::observation::Observation;
use super::tally::{Origin, Tally};
use super::{Source, Witness};

/// The result of a run.
#[derive(Debug)]
pub struct Finished {
    /// The verdict of each resource.
    pub verdicts: PerResource<Verdict>,
    /// Why the run ended.
    pub stop: Stop,
    /// The results of writing the last lines to the output, and to the file beside it.
    pub written: [io::Result<()>; 2],
}

impl Finished {
    /// Returns whether any contention was detected.
    pub fn contended(&self) -> bool {
        self.verdicts.values().any(|v| *v == Verdict::Contended)
    }
}

impl<S: Source> Observation<S> {
    /// Returns one sentence for each resource that is configured and cannot be watched.
    pub fn unknown(&self) -> Vec<String> {
        why_unknown(&self.watched(), &self.hooks())
    }

    fn hooks(&self) -> Vec<Hook> {
        let psi = (self.setup.psi.iter()).flat_map(|(_, hooks)| hooks);
        self.source.hooks().iter().chain(psi).cloned().collect()
    }

    /// Writes the start line, unless it is already written.
    pub(crate) fn start(&mut self) -> Result<(), Stop> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let start = Start {
            mono_ns: self.source.started_mono_ns(),
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            host: Host::now(),
            clock: *self.setup.log.clock(),
            config: Thresholds::from(&self.setup.config),
            hooks: self.hooks(),
            watched: self.watched(),
            group_by: self.setup.config.alarms.group_by,
            limit: self.setup.config.alarms.limit,
            tick_ns: ns(self.source.tick()),
            socket: self.setup.socket.clone(),
            notes: self.setup.notes.clone(),
        };
        self.write(&Line::Start(Box::new(start))).map(drop)
    }

    /// Closes the channels for requests and commands: waiting ones are the last.
    pub fn close(&mut self) {
        self.setup.commands = None;
        self.setup.requests.close();
        // Requesters get the answer that the monitor is ending.
        while self.setup.requests.try_recv().is_ok() {}
    }

    /// Returns the judgement of an experiment, without its exit code.
    pub(crate) fn judge(&mut self, ended: &Ended, asked: &Asked) -> Judgement {
        let mut blind = self.unknown();
        blind.extend(ended.error());
        blind.extend(self.disks_unknown(&ended.dropped));
        let skipped = Tally::skipped(&ended.dropped);
        blind.extend(skipped.into_iter().filter(|(_, n)| *n > 0).map(|(of, n)| {
            format!(
                "the kernel did not run a program of the criterion {} for {n} of its events",
                of.name()
            )
        }));
        blind.extend(self.shares_so_far().err().map(|e| e.to_string()));
        let episodes = self.setup.witness.as_ref().map(Witness::episodes);
        judge(&Evidence {
            episodes: episodes.as_ref().map_or(&[], |episodes| &episodes.0),
            measured: asked.measured.until(ended.mono_ns),
            ended_mono_ns: ended.mono_ns,
            suppressed: &self.tally.suppressed(&ended.dropped),
            suppressed_since: &self.tally.suppressed_since(&ended.dropped),
            ring_full: ended.dropped.ring_full,
            // Reports of programs do not show the state of the host.
            watched: (self.watched().into_iter())
                .any(|(of, watched)| of != Resource::Application && watched != Watched::No),
            blind,
            own: asked.own.as_ref(),
            facts: &asked.facts,
        })
    }

    /// Gives the witness the shares of the episodes that have not ended.
    fn shares_so_far(&mut self) -> Result<(), MonitorError> {
        let Some(witness) = &mut self.setup.witness else {
            return Ok(());
        };
        for (episode, shares) in self.source.shares_so_far()? {
            if let Some(number) = self.tally.number(Origin::Kernel, episode) {
                witness.shares(number, &shares);
            }
        }
        Ok(())
    }

    /// Writes the end line and the rest of other lines; `ran`: the results of the commands,
    /// `judgement`: of an experiment.
    pub fn finish(
        mut self,
        ended: Ended,
        ran: Option<OnAlarm>,
        judgement: Option<Judgement>,
    ) -> Finished {
        let end = End {
            judgement,
            ..self.end(&ended, ran)
        };
        let verdicts = end.resources.clone();
        // A file beside the output gets the line even if the output has no reader.
        let last = self.write(&Line::End(Box::new(end)));
        let [out, beside] = self.setup.log.finish(self.setup.patience);
        let out = match last {
            Err(Stop::Output(e)) => Err(e),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(_) => out,
        };
        Finished {
            verdicts,
            stop: ended.stop,
            written: [out, beside],
        }
    }

    /// Returns why the disks are unknown, if requests were beyond what can be watched.
    pub(crate) fn disks_unknown(&self, dropped: &Dropped) -> Option<String> {
        let requests = dropped.disks_unknown;
        (requests > 0 && self.source.watched(Resource::Disk) == Watched::Yes).then(|| {
            format!(
                "{requests} requests were beyond the {} block devices and {} pending requests that are watched at a time",
                emud_monitor::DISKS,
                emud_monitor::PENDING
            )
        })
    }

    fn end(&self, ended: &Ended, ran: Option<OnAlarm>) -> End {
        let duration_ns = ended.mono_ns.saturating_sub(self.source.started_mono_ns());
        let costs: Vec<CostLine> = ended.costs.iter().cloned().map(CostLine::from).collect();
        let empty_probe_ns = self.source.empty_probe_ns();
        End {
            mono_ns: ended.mono_ns,
            reason: ended.reason(),
            error: ended.error(),
            duration_ns,
            clock: Clock::now(),
            resources: self.verdicts(ended),
            alarms: self.tally.alarms().clone(),
            suppressed: self.tally.suppressed(&ended.dropped),
            ring_full: ended.dropped.ring_full,
            skipped: Tally::skipped(&ended.dropped),
            lines_lost: self.setup.log.lost(),
            overhead: Overhead::of(&costs, duration_ns, empty_probe_ns, ended.process_ns),
            costs,
            on_alarm: ran.map(|ran| OnAlarm {
                overflowed: self.overflowed,
                ..ran
            }),
            judgement: None,
        }
    }

    fn verdicts(&self, ended: &Ended) -> PerResource<Verdict> {
        let watched = self.watched();
        let of = |resource| watched.get(&resource).copied().unwrap_or(Watched::Unknown);
        let mut verdicts = self.tally.verdicts(&ended.dropped, of);
        if matches!(ended.stop, Stop::Monitor(_)) {
            // The monitor stopped working some time before this was detected.
            let clean = verdicts.values_mut().filter(|v| **v == Verdict::Clean);
            clean.for_each(|verdict| *verdict = Verdict::Unknown);
        }
        verdicts
    }
}
