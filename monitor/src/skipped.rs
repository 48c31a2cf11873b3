// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events for which the kernel did not run a program.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use aya::programs::Program;

const KEY: &str = "recursion_misses:";

/// Returns the number of events for which the kernel skipped a program: one that interrupts itself
/// on the same CPU (`__bpf_trace_run()` and the trampoline), which would otherwise have no end.
///
/// # Errors
/// The kernel does not return the number.
pub fn skipped(program: &Program) -> io::Result<u64> {
    // The library has no function for this field of the program's information.
    let fd = program.fd().map_err(io::Error::other)?;
    let path = format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd());
    let info = fs::read_to_string(path)?;
    of(&info).ok_or_else(|| io::Error::other(format!("no {KEY} in its fdinfo")))
}

fn of(info: &str) -> Option<u64> {
    let value = info.lines().find_map(|line| line.strip_prefix(KEY))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found() {
        let info = "pos:\t0\nprog_type:\t26\nrun_cnt:\t9516\nrecursion_misses:\t7\n";
        assert_eq!(of(info), Some(7));
        assert_eq!(of("pos:\t0\nrun_cnt:\t9516\n"), None);
    }
}
