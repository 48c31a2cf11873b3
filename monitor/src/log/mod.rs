// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of a run, "emud-log/2": one line for the start, each alarm, each end of an episode, what
//! was dropped, and the end. It is written as JSON (docs/log-format.md) or for people. The log of
//! an experiment, JSON only, also has the actions of the experiment; lines are in the order of
//! time.

mod action;
mod clock;
mod file;
mod host;
mod judgement;
mod line;
mod run;
mod sample;
mod schema;
mod sorted;
mod station;
mod stream;
mod text;
mod thresholds;
mod writer;

pub use action::{
    ArtefactLine, ExitLine, LinkEvent, LinkLine, Lost, MetricLine, OutputLine, OutputStream,
    PhaseLine, PhaseName,
};
pub use clock::{Clock, mono_ns};
pub use file::{FileLog, Moved};
pub use host::{BusiestCpu, CpuSample, DiskSample, HostSample, MemorySample, SwapSample};
pub use judgement::{Judgement, RunVerdict, Span, SpanShare};
pub use line::{
    ClearLine, CostLine, Drops, End, EndReason, HooksLine, Host, Line, OnAlarm, Overhead,
    PerResource, SCHEMA, Start, Verdict,
};
pub use run::{AskedFor, Run, RunClass, RunLink, RunNode};
pub use sample::{ClassCounted, ClassSample, Counted, DelaySample, Sample};
pub use sorted::{LineSender, SortedLog};
pub use station::{RunMedium, RunStation, StationCounted, StationSample};
pub use text::{printable, why_unknown};
pub use thresholds::Thresholds;
pub use writer::{Format, Log, Outlet};
