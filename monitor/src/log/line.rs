// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines. docs/log.schema.json describes exactly these.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::experiment::{
    ArtefactLine, ExitLine, Judgement, LinkLine, Lost, OutputLine, PhaseLine, Run, Sample,
    judgement_or_nulls,
};
use super::{Clock, Thresholds};
use crate::config::GroupBy;
use crate::event::{Alarm, Clear, Cost, Hook, Resource, Watched};

/// The number goes up when a key goes away or changes its meaning.
pub const SCHEMA: &str = "emud-log/1";

pub type PerResource<T> = BTreeMap<Resource, T>;

/// One line. From [`Line::Run`] to [`Line::Lost`] they are in an experiment's log alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Start(Box<Start>),
    Hooks(HooksLine),
    Alarm(Alarm),
    Clear(ClearLine),
    Drops(Drops),
    Run(Box<Run>),
    Phase(PhaseLine),
    Link(LinkLine),
    Output(OutputLine),
    Sample(Box<Sample>),
    Exit(ExitLine),
    Artefact(ArtefactLine),
    Lost(Lost),
    End(Box<End>),
}

/// What is watched, how, and since when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Start {
    pub mono_ns: u64,
    pub schema: &'static str,
    pub version: &'static str,
    pub pid: u32,
    pub host: Host,
    pub clock: Clock,
    pub config: Thresholds,
    /// Every hook that was tried, taken or refused.
    pub hooks: Vec<Hook>,
    pub watched: PerResource<Watched>,
    pub group_by: GroupBy,
    /// Alarms of one resource before the rest is only counted.
    pub limit: u32,
    /// Between two ticks of the monitor's own timer.
    pub tick_ns: u64,
    /// Where programs report; none: nowhere.
    pub socket: Option<String>,
    /// Sentences for people: what was refused, and what that means.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
    pub hostname: String,
}

impl Host {
    /// This one.
    pub fn now() -> Self {
        let uname = rustix::system::uname();
        // SAFETY: no memory is passed.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        Self {
            kernel: uname.release().to_string_lossy().into_owned(),
            cpus: u32::try_from(cpus).unwrap_or(0),
            hostname: uname.nodename().to_string_lossy().into_owned(),
        }
    }
}

/// Hooks that were tried after the start: those for emulated links come with the first one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HooksLine {
    pub mono_ns: u64,
    /// The new ones alone.
    pub hooks: Vec<Hook>,
    /// From now on.
    pub watched: PerResource<Watched>,
}

/// The end of an episode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClearLine {
    #[serde(flatten)]
    pub clear: Clear,
    /// `until_mono_ns` less `since_mono_ns`.
    pub duration_ns: u64,
}

/// What did not become a line, since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drops {
    pub mono_ns: u64,
    /// Records that found the ring buffer full.
    pub ring_full: u64,
    /// Alarms beyond the limit.
    pub suppressed: PerResource<u64>,
}

/// What can be said of a resource after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    #[serde(rename = "clean")]
    Clean,
    #[serde(rename = "contended")]
    Contended,
    /// Asked for, but it could not be watched, or not all the time.
    #[serde(rename = "unknown")]
    Unknown,
    #[serde(rename = "not watched")]
    NotWatched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    Duration,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    StopAfter,
    /// Nobody reads the output any more.
    OutputClosed,
    /// The experiment is over.
    Done,
    /// The monitor went blind.
    Error,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    pub mono_ns: u64,
    pub reason: EndReason,
    /// What went wrong; with reason "error" only.
    pub error: Option<String>,
    /// How long was watched.
    pub duration_ns: u64,
    /// Read again: another `realtime_minus_mono_ns` than at the start says that the clock was set.
    pub clock: Clock,
    pub resources: PerResource<Verdict>,
    /// Alarm lines.
    pub alarms: PerResource<u64>,
    pub suppressed: PerResource<u64>,
    pub ring_full: u64,
    /// Lines that the output could not take, because its reader was too slow.
    pub lines_lost: u64,
    pub costs: Vec<CostLine>,
    pub overhead: Overhead,
    /// What became of the commands; none: none was asked for.
    pub on_alarm: Option<OnAlarm>,
    /// Of an experiment; its keys are the line's own, all null without it.
    #[serde(flatten, serialize_with = "judgement_or_nulls")]
    pub judgement: Option<Judgement>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostLine {
    #[serde(flatten)]
    pub cost: Cost,
    /// Mean; none: no run was timed.
    pub ns_per_event: Option<f64>,
}

impl From<Cost> for CostLine {
    fn from(cost: Cost) -> Self {
        let mean = cost.run_time_ns as f64 / cost.events as f64;
        Self {
            ns_per_event: (cost.events > 0 && cost.timed > 0).then_some(mean),
            cost,
        }
    }
}

/// What the whole monitor took from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overhead {
    /// All programs in the kernel, by the runs that were timed.
    pub run_time_ns: u64,
    /// `run_time_ns` by the duration.
    pub share_of_one_cpu: f64,
    /// What the mere call of a program costs here.
    pub empty_probe_ns: f64,
    /// The same share without that: what the programs themselves do.
    pub above_empty_share: f64,
    /// CPU time of the process that writes this line, beside the programs in the kernel.
    pub process_ns: u64,
}

impl Overhead {
    /// Of all programs together in `duration_ns`.
    pub fn of(costs: &[CostLine], duration_ns: u64, empty_probe_ns: f64, process_ns: u64) -> Self {
        let run_time_ns = costs.iter().map(|line| line.cost.run_time_ns).sum();
        let events: u64 = costs.iter().map(|line| line.cost.events).sum();
        let above = (run_time_ns as f64 - events as f64 * empty_probe_ns).max(0.0);
        let share = |ns: f64| ns / duration_ns.max(1) as f64;
        Self {
            run_time_ns,
            share_of_one_cpu: share(run_time_ns as f64),
            empty_probe_ns,
            above_empty_share: share(above),
            process_ns,
        }
    }
}

/// Commands that ran because of an alarm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OnAlarm {
    /// Ended with exit code 0.
    pub succeeded: u64,
    /// Could not be started, or ended otherwise.
    pub failed: u64,
    /// Still ran, or waited, when the time to end was over.
    pub killed: u64,
    /// Alarms that found the queue full: no command was run for them.
    pub overflowed: u64,
}

impl Line {
    pub fn mono_ns(&self) -> u64 {
        match self {
            Self::Start(start) => start.mono_ns,
            Self::Hooks(line) => line.mono_ns,
            Self::Alarm(alarm) => alarm.mono_ns,
            Self::Clear(line) => line.clear.mono_ns,
            Self::Drops(drops) => drops.mono_ns,
            Self::Run(run) => run.mono_ns,
            Self::Phase(line) => line.mono_ns,
            Self::Link(line) => line.mono_ns,
            Self::Output(line) => line.mono_ns,
            Self::Sample(sample) => sample.mono_ns,
            Self::Exit(line) => line.mono_ns,
            Self::Artefact(line) => line.mono_ns,
            Self::Lost(lost) => lost.mono_ns,
            Self::End(end) => end.mono_ns,
        }
    }

    /// The line as JSON, with its line feed.
    ///
    /// # Errors
    /// None that is known; a value that JSON does not have.
    pub fn json(&self, clock: &Clock) -> serde_json::Result<String> {
        let mut text = match self {
            Self::Start(start) => self.stamped("start", clock, start),
            Self::Hooks(hooks) => self.stamped("hooks", clock, hooks),
            Self::Alarm(alarm) => self.stamped("alarm", clock, alarm),
            Self::Clear(clear) => self.stamped("clear", clock, clear),
            Self::Drops(drops) => self.stamped("drops", clock, drops),
            Self::Run(run) => self.stamped("run", clock, run),
            Self::Phase(phase) => self.stamped("phase", clock, phase),
            Self::Link(link) => self.stamped("link", clock, link),
            Self::Output(output) => self.stamped("output", clock, output),
            Self::Sample(sample) => self.stamped("sample", clock, sample),
            Self::Exit(exit) => self.stamped("exit", clock, exit),
            Self::Artefact(artefact) => self.stamped("artefact", clock, artefact),
            Self::Lost(lost) => self.stamped("lost", clock, lost),
            Self::End(end) => self.stamped("end", clock, end),
        }?;
        text.push('\n');
        Ok(text)
    }

    fn stamped<T: Serialize>(
        &self,
        name: &'static str,
        clock: &Clock,
        body: &T,
    ) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Stamped<'a, T> {
            r#type: &'static str,
            time: String,
            #[serde(flatten)]
            body: &'a T,
        }
        serde_json::to_string(&Stamped {
            r#type: name,
            time: clock.time(self.mono_ns()),
            body,
        })
    }
}

impl From<Clear> for ClearLine {
    fn from(clear: Clear) -> Self {
        Self {
            duration_ns: clear.until_mono_ns.saturating_sub(clear.since_mono_ns),
            clear,
        }
    }
}
