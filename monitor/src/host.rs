// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts of this machine.

use std::fs;
use std::path::Path;

use rustix::param::page_size;
use rustix::time::{ClockId, clock_getres};

const SECOND_NS: i64 = 1_000_000_000;

/// The resolution of the coarse clock is the time between two ticks.
pub fn hz() -> u32 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let tick_ns = (tick.tv_sec * SECOND_NS + tick.tv_nsec).max(1);
    u32::try_from((SECOND_NS + tick_ns / 2) / tick_ns).unwrap_or(0)
}

pub fn page_bytes() -> u32 {
    u32::try_from(page_size()).unwrap_or(4096)
}

/// Block devices with requests whose statistics are off: the kernel does not tell the end of
/// their requests by block_io_done (it calls that from where the statistics are kept).
fn disks_without_statistics() -> Vec<String> {
    let Ok(disks) = fs::read_dir("/sys/block") else {
        return vec![];
    };
    let mut names: Vec<String> = disks
        .filter_map(Result::ok)
        .filter(|d| off(&d.path().join("queue/iostats")))
        .map(|d| d.file_name().to_string_lossy().into_owned())
        // Devices without requests have no such end.
        .filter(|name| Path::new("/sys/block").join(name).join("mq").is_dir())
        .collect();
    names.sort();
    names
}

/// Why block_io_done cannot be relied upon here, if it cannot.
pub fn endless_requests() -> Option<String> {
    let without_statistics = disks_without_statistics();
    (!without_statistics.is_empty()).then(|| {
        let disks = without_statistics.join(", ");
        format!("may tell no end of requests where queue/iostats is 0: {disks}")
    })
}

fn off(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim() == "0")
}
