// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of this machine.

use std::fs;
use std::path::Path;

use rustix::param::page_size;
use rustix::time::{ClockId, clock_getres};

const SECOND_NS: i64 = 1_000_000_000;

/// Returns ticks per second: the resolution of the coarse clock is the time between two ticks.
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

/// Returns the kernel's flag of a request in a flush sequence. Before the flags were an enumeration,
/// whose second one it is (Linux 6.11), it was the fifth. That enumeration had no name at first, so
/// that only the text in the kernel's types shows it.
pub fn flush_seq() -> u64 {
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    flush_seq_of(&types)
}

fn flush_seq_of(types: &[u8]) -> u64 {
    const FLAG: &[u8] = b"\0__RQF_FLUSH_SEQ\0";
    // SAFETY: memmem() reads no more than these lengths. std has no search of bytes.
    let at = unsafe {
        libc::memmem(
            types.as_ptr().cast(),
            types.len(),
            FLAG.as_ptr().cast(),
            FLAG.len(),
        )
    };
    if at.is_null() { 1 << 4 } else { 1 << 1 }
}

fn off(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_of_a_flush_sequence() {
        assert_eq!(flush_seq_of(b"\0__RQF_STARTED\0__RQF_FLUSH_SEQ\0"), 1 << 1);
        assert_eq!(flush_seq_of(b"\0__RQF_STARTED\0"), 1 << 4);
        assert_eq!(flush_seq_of(b""), 1 << 4);
    }
}
