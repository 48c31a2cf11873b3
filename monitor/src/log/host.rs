// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a run about the state of the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host over an interval that ends at `mono_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSample {
    /// End of the interval in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Length of the interval in ns, at least 50 ms.
    pub interval_ns: u64,
    /// Shares of the CPUs' time; null: /proc/stat cannot be read, or its counters went back.
    pub cpu: Option<CpuSample>,
    /// Memory at the end of the interval; null: /proc/meminfo cannot be read.
    pub memory: Option<MemorySample>,
    /// Swapped in the interval; null: /proc/vmstat cannot be read, or its counters went back.
    pub swap: Option<SwapSample>,
    /// Whole disks, without those that did nothing in the interval; null: /proc/diskstats or /sys/block
    /// cannot be read.
    pub disks: Option<Vec<DiskSample>>,
}

/// Shares of the time of all CPUs together, 0.0..=1.0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSample {
    /// Not idle: the sum of `user`, `system` and `steal`.
    #[schemars(range(min = 0, max = 1))]
    pub busy: f64,
    /// Programs, also niced ones and guests.
    #[schemars(range(min = 0, max = 1))]
    pub user: f64,
    /// The kernel, with interrupts.
    #[schemars(range(min = 0, max = 1))]
    pub system: f64,
    /// Given to others by the hypervisor.
    #[schemars(range(min = 0, max = 1))]
    pub steal: f64,
    /// Idle, while a program waited for a disk; null: the kernel corrected what it had counted as idle.
    #[schemars(range(min = 0, max = 1))]
    pub iowait: Option<f64>,
    /// The CPU with the largest share; null: counters of a CPU went back.
    pub busiest: Option<BusiestCpu>,
}

/// The busiest CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusiestCpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Share of its time in which it was not idle.
    #[schemars(range(min = 0, max = 1))]
    pub busy: f64,
}

/// Memory of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySample {
    /// All memory in bytes.
    pub total_bytes: u64,
    /// Bytes that programs can have without swapping.
    pub available_bytes: u64,
}

/// Swapped in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwapSample {
    /// Bytes read from swap space.
    pub in_bytes: u64,
    /// Bytes written to swap space.
    pub out_bytes: u64,
}

/// A disk in an interval. A value is null if the disk is new, or its counter went back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskSample {
    /// Name of the disk.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Share of the time with a request in progress.
    #[schemars(range(min = 0, max = 1))]
    pub busy: Option<f64>,
    /// Bytes read in the interval.
    pub read_bytes: Option<u64>,
    /// Bytes written in the interval.
    pub written_bytes: Option<u64>,
}
