// SPDX-License-Identifier: MIT OR Apache-2.0
//! What alarms are described with.

use schemars::JsonSchema;
use serde::Serialize;

/// The contended object: a CPU, a device, a class of devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scope {
    /// A CPU without idle time, or from which the hypervisor took time.
    Cpu {
        /// Number of the CPU.
        cpu: u32,
    },
    /// All network devices of a class together.
    Class {
        /// Class of the devices.
        #[schemars(extend("enum" = ["external", "internal"]))]
        class: &'static str,
    },
    /// A network device.
    Device {
        /// Name of the device when the monitor last saw it.
        name: String,
        /// Index of the device in its network namespace; 0 as `netns`.
        ifindex: u32,
        /// Inode number of the network namespace; 0 if devices of this name in several network
        /// namespaces sent, which count together.
        netns: u32,
    },
    /// Swap traffic of the host.
    Paging {
        /// Direction of the swap traffic.
        #[schemars(extend("enum" = ["page-in", "page-out"]))]
        direction: &'static str,
    },
    /// A block device.
    Disk {
        /// Name of the device; empty if unknown.
        name: String,
        /// Major device number.
        major: u32,
        /// Minor device number.
        minor: u32,
    },
    /// A program that reported contention.
    Application {
        /// Name that the program reported.
        #[schemars(length(min = 1))]
        name: String,
    },
    /// An emulated link.
    Link {
        /// Failure: packets that left late, packets that the engine dropped, or a link that another
        /// process changed.
        #[schemars(extend("enum" = ["late", "dropped", "tampered"]))]
        failure: &'static str,
        /// With "tampered": the missing or changed parts, separated by "; "; null otherwise.
        what: Option<String>,
        /// Name of the device when the monitor last saw it.
        name: String,
        /// Index of the device in its network namespace.
        ifindex: u32,
        /// Inode number of the network namespace.
        netns: u32,
    },
    /// Pressure stall information of the host.
    Psi {
        /// Resource for which tasks waited.
        #[schemars(extend("enum" = ["cpu", "memory", "io"]))]
        of: &'static str,
    },
}

/// Unit of an alarm's `value` and `threshold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A time in nanoseconds.
    Ns,
    /// A number of bytes.
    Bytes,
    /// Pages of memory.
    Pages,
    /// A number of packets.
    Packets,
    /// A number with a meaning that only the program knows.
    Number,
    /// The program reported no value; `value` and `threshold` are 0.
    None,
}
