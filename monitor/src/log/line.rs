// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines. docs/log.schema.json is derived from these types.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value::Null;
use serde_json::json;

use super::action::{ArtefactLine, ExitLine, LinkLine, Lost, MetricLine, OutputLine, PhaseLine};
use super::host::HostSample;
use super::judgement::{Judgement, judgement_or_nulls};
use super::run::Run;
use super::sample::{ClassSample, Sample};
use super::schema::{ForEach, JudgementOrNulls, all, one_of};
use super::station::StationSample;
use super::{Clock, Thresholds};
use crate::config::GroupBy;
use crate::event::{Alarm, Clear, Cost, Hook, Resource, Watched};

/// The number increases when a key is removed or changes its meaning.
pub const SCHEMA: &str = "emud-log/2";

/// A value for each kind of resource.
pub type PerResource<T> = BTreeMap<Resource, T>;

/// The lines by the value of their key `type`.
macro_rules! lines {
    ($($Variant:ident($Body:ty) = $name:literal,)+) => {
        /// One line. Those from [`Line::Run`] to [`Line::Lost`] are only in the log of an experiment.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Line {
            $(#[allow(missing_docs, reason = "documented by its type")] $Variant($Body),)+
        }

        impl Line {
            /// Returns the line as JSON, with its line feed.
            ///
            /// # Errors
            /// A value that JSON does not have; none is known.
            pub fn json(&self, clock: &Clock) -> serde_json::Result<String> {
                let time = clock.time(self.mono_ns());
                let mut text = match self {
                    $(Self::$Variant(body) => {
                        serde_json::to_string(&Stamped { r#type: $name, time, body })
                    })+
                }?;
                text.push('\n');
                Ok(text)
            }
        }

        impl JsonSchema for Line {
            fn schema_name() -> Cow<'static, str> {
                "Line".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                one_of(generator, &[$(($name, Stamped::<$Body>::json_schema)),+])
            }
        }
    };
}

/// A line with the keys that all lines have.
#[derive(Serialize, JsonSchema)]
struct Stamped<'a, T> {
    /// Type of the line.
    r#type: &'static str,
    /// Time of the line in UTC (RFC 3339, with nanoseconds).
    #[schemars(regex(pattern = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$"))]
    time: String,
    #[serde(flatten)]
    body: &'a T,
}

lines! {
    Start(Box<Start>) = "start",
    Hooks(HooksLine) = "hooks",
    Alarm(Alarm) = "alarm",
    Clear(ClearLine) = "clear",
    Drops(Drops) = "drops",
    Metric(MetricLine) = "metric",
    Run(Box<Run>) = "run",
    Phase(PhaseLine) = "phase",
    Link(LinkLine) = "link",
    Output(OutputLine) = "output",
    Sample(Box<Sample>) = "sample",
    Class(Box<ClassSample>) = "class",
    Station(Box<StationSample>) = "station",
    Host(Box<HostSample>) = "host",
    Exit(ExitLine) = "exit",
    Artefact(ArtefactLine) = "artefact",
    Lost(Lost) = "lost",
    End(Box<End>) = "end",
}

/// The first line: what is watched, how, and since when.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Start {
    /// Time of the start in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Version of the format.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Version of emud.
    #[schemars(length(min = 1))]
    pub version: &'static str,
    /// Process of the monitor.
    pub pid: u32,
    /// The machine.
    pub host: Host,
    /// Offsets of the clocks at the start. `time` is `mono_ns` plus this `realtime_minus_mono_ns` in
    /// all lines.
    pub clock: Clock,
    /// Thresholds. A value that is null is not watched.
    pub config: Thresholds,
    /// Every hook that emud tried, in this order.
    pub hooks: Vec<Hook>,
    /// What is watched, by resource.
    #[schemars(with = "ForEach<Watched>")]
    pub watched: PerResource<Watched>,
    /// Kind of group in the shares of alarms.
    pub group_by: GroupBy,
    /// Number of alarms of one resource that become lines.
    pub limit: u32,
    /// Longest interval of the monitor's timer on a CPU, in ns.
    pub tick_ns: u64,
    /// Path of the socket for reports of programs; null: no socket.
    pub socket: Option<String>,
    /// Sentences on what the kernel rejected, and the consequences.
    pub notes: Vec<String>,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Release of the kernel.
    #[schemars(length(min = 1))]
    pub kernel: String,
    /// Number of CPUs that are online.
    pub cpus: u32,
    /// Name of the host.
    pub hostname: String,
}

impl Host {
    /// Describes this machine.
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

/// Hooks that emud tried after the start: those for emulated links follow the first link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HooksLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// The new hooks only.
    #[schemars(length(min = 1))]
    pub hooks: Vec<Hook>,
    /// What is watched from now on, by resource.
    #[schemars(with = "ForEach<Watched>")]
    pub watched: PerResource<Watched>,
}

/// A contention episode ended; `mono_ns` is the time at which emud noticed it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClearLine {
    /// The end of the alarm, as the monitor reported it.
    #[serde(flatten)]
    pub clear: Clear,
    /// `until_mono_ns` minus `since_mono_ns`, in ns.
    pub duration_ns: u64,
}

/// Alarms that did not become lines since the start. At most one line per second, when a number has
/// increased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Drops {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Records for which the ring buffer had no space.
    pub ring_full: u64,
    /// Alarms beyond the limit, by resource.
    #[schemars(with = "ForEach<u64>")]
    pub suppressed: PerResource<u64>,
}

/// State of a resource after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Verdict {
    /// Watched all the time, no alarm.
    #[serde(rename = "clean")]
    Clean,
    /// At least one alarm.
    #[serde(rename = "contended")]
    Contended,
    /// Requested, but not watched, or not all the time.
    #[serde(rename = "unknown")]
    Unknown,
    /// Not requested.
    #[serde(rename = "not watched")]
    NotWatched,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The requested duration is over.
    Duration,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    /// The requested number of alarms was reached.
    StopAfter,
    /// The reader of the output closed it.
    OutputClosed,
    /// The experiment is over.
    Done,
    /// The monitor failed.
    Error,
}

/// Result of a run. The last line; missing if the process was killed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(extend(
    "if" = { "properties": { "verdict": { "const": Null } } },
    "then" = all(JudgementOrNulls::KEYS, &json!({ "const": Null })),
    "else" = all(JudgementOrNulls::NEVER_NULL, &json!({ "not": { "const": Null } })),
))]
pub struct End {
    /// Time of the end in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Why the run ended.
    pub reason: EndReason,
    /// With reason "error": the error; null otherwise.
    pub error: Option<String>,
    /// Duration of watching in ns.
    pub duration_ns: u64,
    /// Offsets of the clocks at the end. If `realtime_minus_mono_ns` differs from the start line, the
    /// clock was set.
    pub clock: Clock,
    /// State of each resource.
    #[schemars(with = "ForEach<Verdict>")]
    pub resources: PerResource<Verdict>,
    /// Number of alarm lines, by resource.
    #[schemars(with = "ForEach<u64>")]
    pub alarms: PerResource<u64>,
    /// Number of alarms beyond the limit, by resource.
    #[schemars(with = "ForEach<u64>")]
    pub suppressed: PerResource<u64>,
    /// Records for which the ring buffer had no space.
    pub ring_full: u64,
    /// Events for which the kernel did not run a program, which would have interrupted itself, by
    /// resource. With any, the resource is never clean.
    #[schemars(with = "ForEach<u64>")]
    pub skipped: PerResource<u64>,
    /// Lines that were dropped because the reader of an output was too slow.
    pub lines_lost: u64,
    /// Cost of each program in the kernel.
    pub costs: Vec<CostLine>,
    /// Cost of the whole monitor.
    pub overhead: Overhead,
    /// Commands that ran because of alarms; null: none was requested.
    pub on_alarm: Option<OnAlarm>,
    /// Keys of an experiment, all null without one.
    #[serde(flatten, serialize_with = "judgement_or_nulls")]
    #[schemars(with = "JudgementOrNulls")]
    pub judgement: Option<Judgement>,
}

/// Cost of one program in the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CostLine {
    /// CPU time and events of the program.
    #[serde(flatten)]
    pub cost: Cost,
    /// Time of all runs in ns, extrapolated from the timed ones; null: there were runs, and none was timed.
    pub run_time_ns: Option<u64>,
    /// Mean time of the timed runs in ns; null: no run was timed.
    #[schemars(range(min = 0))]
    pub ns_per_event: Option<f64>,
}

impl From<Cost> for CostLine {
    fn from(cost: Cost) -> Self {
        let run_time_ns = cost.run_time_ns();
        let all = run_time_ns.filter(|_| cost.events > 0);
        Self {
            run_time_ns,
            ns_per_event: all.map(|all| all as f64 / cost.events as f64),
            cost,
        }
    }
}

/// Cost of the whole monitor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Overhead {
    /// Run time of all programs in the kernel in ns, extrapolated from the timed runs.
    pub run_time_ns: u64,
    /// `run_time_ns` divided by the duration.
    #[schemars(range(min = 0))]
    pub share_of_one_cpu: f64,
    /// Time of one run of an empty program on this machine in ns.
    #[schemars(range(min = 0))]
    pub empty_probe_ns: f64,
    /// `share_of_one_cpu` minus the share that empty programs would have.
    #[schemars(range(min = 0))]
    pub above_empty_share: f64,
    /// Runs of programs of which none was timed: their time is in none of these figures, which are lower bounds
    /// then.
    pub untimed: u64,
    /// CPU time of the process that writes this line in ns, without the programs in the kernel.
    pub process_ns: u64,
}

impl Overhead {
    /// Returns the overhead of all programs together in `duration_ns`.
    pub fn of(costs: &[CostLine], duration_ns: u64, empty_probe_ns: f64, process_ns: u64) -> Self {
        let (mut run_time_ns, mut timed, mut untimed) = (0, 0, 0);
        for line in costs {
            let events = line.cost.events;
            match line.run_time_ns {
                Some(all) => (run_time_ns, timed) = (run_time_ns + all, timed + events),
                None => untimed += events,
            }
        }
        let above = (run_time_ns as f64 - timed as f64 * empty_probe_ns).max(0.0);
        let share = |ns: f64| ns / duration_ns.max(1) as f64;
        Self {
            run_time_ns,
            share_of_one_cpu: share(run_time_ns as f64),
            empty_probe_ns,
            above_empty_share: share(above),
            untimed,
            process_ns,
        }
    }
}

/// Commands that ran because of alarms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OnAlarm {
    /// Commands with exit code 0.
    pub succeeded: u64,
    /// Commands that did not start or had another exit code.
    pub failed: u64,
    /// Commands that were running or waiting when the time to end was over.
    pub killed: u64,
    /// Alarms without a command, because too many were waiting.
    pub overflowed: u64,
}

impl Line {
    /// Returns the time of the line in ns of CLOCK_MONOTONIC.
    pub fn mono_ns(&self) -> u64 {
        match self {
            Self::Start(start) => start.mono_ns,
            Self::Hooks(line) => line.mono_ns,
            Self::Alarm(alarm) => alarm.mono_ns,
            Self::Clear(line) => line.clear.mono_ns,
            Self::Drops(drops) => drops.mono_ns,
            Self::Metric(line) => line.mono_ns,
            Self::Run(run) => run.mono_ns,
            Self::Phase(line) => line.mono_ns,
            Self::Link(line) => line.mono_ns,
            Self::Output(line) => line.mono_ns,
            Self::Sample(sample) => sample.mono_ns,
            Self::Class(sample) => sample.mono_ns,
            Self::Station(sample) => sample.mono_ns,
            Self::Host(sample) => sample.mono_ns,
            Self::Exit(line) => line.mono_ns,
            Self::Artefact(line) => line.mono_ns,
            Self::Lost(lost) => lost.mono_ns,
            Self::End(end) => end.mono_ns,
        }
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
