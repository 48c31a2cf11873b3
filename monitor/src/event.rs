// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the monitor noticed. Times are ns of CLOCK_MONOTONIC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::criteria::Resource;
pub use crate::terms::{Scope, Unit};

/// The failure of a link of which another process deleted or changed a part.
pub const TAMPERED: &str = "tampered";

/// Share of one group in the busy interval or window.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Share {
    /// Network namespace, cgroup path or command, according to `group_by` of the start line.
    pub group: String,
    /// Share of the resource that was used, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
}

/// A contention episode began; `mono_ns` is the time of the decision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Alarm {
    /// Number of the episode, unique in a log. The clear line has the same number.
    pub episode: u64,
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Resource that was contended.
    pub resource: Resource,
    /// The contended object.
    pub scope: Scope,
    /// Start of the busy interval or window in ns of CLOCK_MONOTONIC; of a late packet its departure
    /// time.
    pub since_mono_ns: u64,
    /// Measured value in `unit`.
    pub value: u64,
    /// Threshold in `unit`; 0 if a program reported none.
    pub threshold: u64,
    /// Unit of `value` and `threshold`.
    pub unit: Unit,
    /// Hook whose program raised the alarm, such as "tp_btf/net_dev_xmit"; "socket" for a report;
    /// "psi/..." for pressure stall information.
    #[schemars(length(min = 1))]
    pub hook: String,
    /// Shares of the eight largest groups, largest first; empty if the resource cannot be attributed.
    #[schemars(length(max = 8))]
    pub shares: Vec<Share>,
    /// Share of all other groups, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub rest: f64,
}

/// A contention episode ended; `mono_ns` is the time at which emud noticed it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Clear {
    /// Number of the episode, as in its alarm line.
    pub episode: u64,
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Resource that was contended.
    pub resource: Resource,
    /// The contended object.
    pub scope: Scope,
    /// Start of the episode in ns of CLOCK_MONOTONIC, as in its alarm line.
    pub since_mono_ns: u64,
    /// End of the episode in ns of CLOCK_MONOTONIC: the CPU or device became idle, or the rate fell
    /// below the threshold.
    pub until_mono_ns: u64,
    /// Hook whose program noticed the end.
    #[schemars(length(min = 1))]
    pub hook: String,
    /// For a CPU, the shares of the eight largest groups in the whole episode, largest first; those of
    /// its alarm are of the time before it. Otherwise empty.
    #[schemars(length(max = 8))]
    pub shares: Vec<Share>,
    /// Share of all other groups, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub rest: f64,
}

/// An event that the monitor reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An episode began.
    Alarm(Alarm),
    /// An episode ended.
    Clear(Clear),
}

/// A kernel function or event to which the monitor tried to attach a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// Purpose: a resource, a part of one ("memory: page-in"), or "tick", which serves all.
    #[schemars(length(min = 1))]
    pub criterion: String,
    /// Type of program and location, such as "tp_btf/sched_switch" or "perf/cpu-clock".
    #[schemars(length(min = 1))]
    pub hook: String,
    /// Error of the kernel; null: the program is attached.
    pub refused: Option<String>,
    /// What the hook misses or counts in addition to the criterion; null: nothing.
    pub caveat: Option<String>,
}

/// Whether a resource is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Watched {
    /// A hook watches the resource.
    Yes,
    /// The resource was not requested.
    No,
    /// The resource was requested, but no hook of this kernel supports it. This never means clean.
    Unknown,
}

/// Events that did not become alarm lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Records for which the ring buffer had no space.
    pub ring_full: u64,
    /// Requests beyond the number of block devices, or of pending requests, that are watched.
    pub disks_unknown: u64,
    /// Events for which the kernel did not run a program, by resource, in the order of
    /// [`Resource::ALL`].
    pub skipped: [u64; Resource::ALL.len()],
    /// Alarms beyond the limit, by resource, in the same order.
    pub suppressed: [u64; Resource::ALL.len()],
}

/// Cost of one program in the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    /// Name of the program.
    #[schemars(length(min = 1))]
    pub program: String,
    /// Hook of the program.
    #[schemars(length(min = 1))]
    pub hook: String,
    /// Number of runs.
    pub events: u64,
    /// Number of runs that the kernel's BPF run statistics timed: those in 100 ms of every 10 s.
    pub timed: u64,
    /// Time of the timed runs in ns.
    #[serde(skip)]
    pub timed_ns: u64,
}

impl Cost {
    /// Returns the time of all runs in ns, extrapolated from the timed ones; `None`: there were runs, and none was
    /// timed.
    pub fn run_time_ns(&self) -> Option<u64> {
        match (self.events, self.timed) {
            (0, _) => Some(0),
            (_, 0) => None,
            (events, timed) => {
                Some((u128::from(self.timed_ns) * u128::from(events) / u128::from(timed)) as u64)
            }
        }
    }
}
