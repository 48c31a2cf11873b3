// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the process of a holder runs.

/// Returns whether the holder's process is there, stopped or starved.
pub(crate) fn running(pid: u64) -> bool {
    let of_it = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    // A zombie has a name, but no arguments any more.
    let alive = of_it("cmdline").is_ok_and(|arguments| !arguments.is_empty());
    alive && of_it("comm").is_ok_and(|name| name.starts_with("emud"))
}

/// Returns whether SIGSTOP or a debugger stopped a process.
pub(crate) fn stopped(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may contain anything.
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    state.starts_with(['T', 't'])
}
