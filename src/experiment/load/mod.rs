// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads for one resource of the host each, until they are stopped: to test thresholds of the
//! monitor, and what an experiment does on a machine without spare capacity. Each returns what it
//! really did.

mod cpu;
mod disk;
mod memory;
mod network;

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cpu::Cpu;
pub use disk::{Disk, Operation};
pub use memory::Memory;
pub use network::Network;

/// Longest time until a load ends that is stopped, unless a system call takes longer.
const STOPS_WITHIN: Duration = Duration::from_millis(20);

/// Result of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loaded {
    /// Result of `emud load cpu`.
    Cpu(CpuLoaded),
    /// Result of `emud load memory`.
    Memory(MemoryLoaded),
    /// Result of `emud load disk`.
    Disk(DiskLoaded),
    /// Result of `emud load network`.
    Network(NetworkLoaded),
}

/// CPU time of busy threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuLoaded {
    /// Number of busy threads.
    pub threads: usize,
    /// CPU time of all threads.
    pub cpu_ns: u64,
    /// From the first to the last one.
    pub duration_ns: u64,
}

/// Bytes written to memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryLoaded {
    /// Size of the memory.
    pub size: u64,
    /// Bytes written, each time.
    pub written: u64,
    /// Page faults of the process that waited for a disk.
    pub major_faults: u64,
    /// From the first byte to the end.
    pub duration_ns: u64,
}

/// Bytes read or written, and durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskLoaded {
    /// Whether it read or wrote.
    pub operation: Operation,
    /// Operations that ended.
    pub operations: u64,
    /// Bytes read or written by them.
    pub bytes: u64,
    /// Duration of the longest operation.
    pub longest_ns: u64,
    /// From the first operation to the end, without the preparation of the file.
    pub duration_ns: u64,
}

/// Packets sent and received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkLoaded {
    /// Packets sent.
    pub packets: u64,
    /// Bytes of data in them, without headers.
    pub bytes: u64,
    /// Packets that the kernel did not accept: no route, or no buffer.
    pub rejected: u64,
    /// Packets that arrived; null: at another process.
    pub received: Option<u64>,
    /// From the first packet to the end.
    pub duration_ns: u64,
}

/// Why a load could not begin or go on.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum LoadError {
    #[error("{what}: {error}")]
    System { what: String, error: io::Error },
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Lacks(String),
    #[error("{0}")]
    File(String),
}

impl LoadError {
    /// Returns the exit code from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::System { .. } => 71,
            Self::Usage(_) => 64,
            Self::Lacks(_) => 69,
            Self::File(_) => 73,
        }
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
    let what = what.into();
    move |error| LoadError::System { what, error }
}

/// Sleeps until a time, in pieces, so that a load can be stopped.
fn sleep_until(due_ns: u64, stop: &std::sync::atomic::AtomicBool) {
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        match due_ns.saturating_sub(crate::host::now_ns()) {
            0 => return,
            left => std::thread::sleep(Duration::from_nanos(left).min(STOPS_WITHIN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// Runs a load for `ms` milliseconds.
    pub fn for_a_while<T>(ms: u64, run: impl FnOnce(&AtomicBool) -> T) -> T {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(ms));
                stop.store(true, Ordering::Relaxed);
            });
            run(&stop)
        })
    }
}
