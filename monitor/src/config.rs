// SPDX-License-Identifier: MIT OR Apache-2.0
//! What counts as contention. A resource without a configuration is not watched.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// Thresholds and windows of all criteria.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub cpu: Option<Cpu>,
    pub network: Option<Network>,
    pub memory: Option<Memory>,
    pub disk: Option<Disk>,
    pub emulator: Option<Emulator>,
    /// Pressure stall information, a second opinion of the kernel; off by default.
    pub psi: Option<Psi>,
    pub alarms: Alarms,
}

/// A CPU without idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    /// Contention when busy for at least this long; 1 ms to 1 h.
    pub theta: Duration,
    pub basis: Basis,
}

/// What counts as an idle CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The idle task is scheduled. Softirqs on top of it count as idle.
    Task,
    /// The CPU has really entered an idle state: forwarding in softirq counts as busy.
    Idle,
}

/// Bytes transmitted in a sliding window.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Length of the window; 1 ms to 10 s.
    pub window: Duration,
    /// Contention at this rate over the window, all external devices together; bit/s.
    pub external_bit_s: Option<u64>,
    /// The same for all internal devices together (veth, bridge, TAP, loopback, ...).
    pub internal_bit_s: Option<u64>,
    /// Interfaces whose class is not the guess from the device kind, by name, in every
    /// network namespace.
    pub classes: BTreeMap<String, Class>,
    /// Thresholds of single interfaces, bit/s, by name; on top of their class.
    pub devices: BTreeMap<String, u64>,
}

/// Where the packets of a device go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Out of this host: a device with hardware behind it.
    External,
    /// To another device of this host.
    Internal,
    /// Not counted.
    Ignored,
}

/// Swap traffic in a sliding window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Length of the window; 1 ms to 10 s.
    pub window: Duration,
    /// Contention at this many pages read from swap in a window; none: not watched.
    pub page_ins: Option<u64>,
    /// Contention at this many pages written to swap in a window; none: not watched.
    pub page_outs: Option<u64>,
}

/// A block device that always has a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// Contention when never empty for at least this long; 1 ms to 1 h.
    pub theta: Duration,
    /// Other values for single devices by name ("sda"); none: that device is ignored.
    pub devices: BTreeMap<String, Option<Duration>>,
}

/// The emulator's own failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emulator {
    /// A packet released later than this after its departure time is contention.
    pub late: Duration,
}

/// Pressure stall information: tasks stalled for `stall` within `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Psi {
    pub stall: Duration,
    /// 500 ms to 10 s, as the kernel allows.
    pub window: Duration,
}

/// How alarms are raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarms {
    /// Alarms of one resource before the rest is only counted.
    pub limit: u32,
    pub group_by: GroupBy,
    pub reporters: Reporters,
}

/// Whose shares an alarm carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupBy {
    Netns,
    Cgroup,
    Command,
}

/// Which users may report contention of their programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reporters {
    Root,
    /// Root and the user of the programs under test.
    Own,
    All,
}

impl Default for Config {
    /// CPU 200 ms, network 490 Mbit/s external and 1 Gbit/s internal over 10 ms, any
    /// swapping over 10 ms, disk 100 ms: the thresholds of S. D. Maier, "Scalable Computer
    /// Network Emulation Using Node Virtualization and Resource Monitoring" (2011).
    fn default() -> Self {
        Self {
            cpu: Some(Cpu::default()),
            network: Some(Network::default()),
            memory: Some(Memory::default()),
            disk: Some(Disk::default()),
            emulator: Some(Emulator::default()),
            psi: None,
            alarms: Alarms::default(),
        }
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self {
            theta: Duration::from_millis(200),
            basis: Basis::Task,
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(10),
            external_bit_s: Some(490_000_000),
            internal_bit_s: Some(1_000_000_000),
            classes: BTreeMap::new(),
            devices: BTreeMap::new(),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(10),
            page_ins: Some(1),
            page_outs: Some(1),
        }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            theta: Duration::from_millis(100),
            devices: BTreeMap::new(),
        }
    }
}

impl Default for Emulator {
    fn default() -> Self {
        Self {
            late: Duration::from_millis(1),
        }
    }
}

impl Default for Alarms {
    fn default() -> Self {
        Self {
            limit: 3,
            group_by: GroupBy::Netns,
            reporters: Reporters::Own,
        }
    }
}
