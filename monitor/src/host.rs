// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of this machine.

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

/// Returns block devices with requests and disabled statistics: the kernel does not report the end
/// of their requests with block_io_done, which it calls from the statistics code.
fn disks_without_statistics() -> Vec<String> {
    let Ok(disks) = fs::read_dir("/sys/block") else {
        return vec![];
    };
    let mut names: Vec<String> = disks
        .filter_map(Result::ok)
        .filter(|d| off(&d.path().join("queue/iostats")))
        .map(|d| d.file_name().to_string_lossy().into_owned())
        // Devices without requests have no such event.
        .filter(|name| Path::new("/sys/block").join(name).join("mq").is_dir())
        .collect();
    names.sort();
    names
}

/// Returns why block_io_done is unreliable here, or `None` if it is reliable.
pub fn endless_requests() -> Option<String> {
    let without_statistics = disks_without_statistics();
    (!without_statistics.is_empty()).then(|| {
        let disks = without_statistics.join(", ");
        format!("may not report the end of requests on devices with queue/iostats 0: {disks}")
    })
}

fn off(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim() == "0")
}
