// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the monitor noticed. Times are ns of CLOCK_MONOTONIC.

use serde::{Deserialize, Serialize};

pub use crate::criteria::Resource;

/// Which one of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scope {
    Cpu {
        cpu: u32,
    },
    /// All devices of a class together: "external" or "internal".
    Class {
        class: &'static str,
    },
    /// One network device. The name is the one it had when last seen; netns is the inode number.
    Device {
        name: String,
        ifindex: u32,
        netns: u32,
    },
    /// "page-in" or "page-out".
    Paging {
        direction: &'static str,
    },
    /// One block device.
    Disk {
        name: String,
        major: u32,
        minor: u32,
    },
    /// What a program reported of itself.
    Application {
        name: String,
    },
    /// "late" or "dropped" packets of an emulated link on a device, or a link "tampered" with.
    Link {
        failure: &'static str,
        /// What of a link tampered with is missing or changed.
        what: Option<String>,
        name: String,
        ifindex: u32,
        netns: u32,
    },
    /// Pressure stall information: "cpu", "memory" or "io".
    Psi {
        of: &'static str,
    },
}

/// The failure of a link of which somebody else has deleted or changed a part.
pub const TAMPERED: &str = "tampered";

/// Unit of an alarm's `value` and `threshold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Ns,
    Bytes,
    Pages,
    Packets,
    /// A number of the program's own.
    Number,
    /// The program gave no value; `value` and `threshold` are 0.
    None,
}

/// The part of one group in the busy interval or window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// Network namespace, cgroup path or command, as asked for by `group_by`.
    pub group: String,
    /// 0 to 1, of all that was used.
    pub share: f64,
}

/// A contention episode began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alarm {
    /// Number of the episode, unique in a run; its end carries the same.
    pub episode: u64,
    /// When it was judged.
    pub mono_ns: u64,
    pub resource: Resource,
    pub scope: Scope,
    /// When the busy interval or the window began; of a late packet: its departure time.
    pub since_mono_ns: u64,
    pub value: u64,
    pub threshold: u64,
    pub unit: Unit,
    /// The hook whose program raised it, such as "perf/cpu-clock" or "tp_btf/net_dev_xmit".
    pub hook: String,
    /// The eight largest, largest first.
    pub shares: Vec<Share>,
    /// Share of all the other groups.
    pub rest: f64,
}

/// A contention episode ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clear {
    pub episode: u64,
    /// When the end was seen.
    pub mono_ns: u64,
    pub resource: Resource,
    pub scope: Scope,
    pub since_mono_ns: u64,
    /// When it ended: the CPU or the device became idle, the rate fell.
    pub until_mono_ns: u64,
    pub hook: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Alarm(Alarm),
    Clear(Clear),
}

/// A place in the kernel where a program of the monitor was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// What it is for: "cpu", "network", ..., or "tick" (serves all).
    pub criterion: String,
    /// "tp_btf/sched_switch", "perf/cpu-clock", "fentry/swap_read_folio", ...
    pub hook: String,
    /// Why the kernel refused it; none: taken.
    pub refused: Option<String>,
    /// What this hook sees less, or more, than the criterion means; none: exactly it.
    pub caveat: Option<String>,
}

/// What can be said of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Watched {
    Yes,
    /// Not asked for.
    No,
    /// Asked for, but no hook of this kernel supports it: never to be read as clean.
    Unknown,
}

/// Events that did not become alarm lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Records that found the ring buffer full.
    pub ring_full: u64,
    /// Alarms beyond the limit, by resource, in the order of [`Resource::ALL`].
    pub suppressed: [u64; Resource::ALL.len()],
}

/// Cost of one program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    pub program: String,
    pub hook: String,
    /// How often it ran.
    pub events: u64,
    /// Of those, how many the kernel's BPF run statistics timed.
    pub timed: u64,
    /// Of all, if the others took as long as the timed ones.
    pub run_time_ns: u64,
}
