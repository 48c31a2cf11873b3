// SPDX-License-Identifier: GPL-2.0-only
//! What makes the monitor's lines punctual on a machine that has run out of something. A
//! refusal makes them later, not wrong, so it is a note in the log.

use std::io;

use crate::engine::hold::tune::{lock_used_memory, set_real_time, set_short_slice};

/// Neither commands that run because of an alarm nor threads inherit the priority.
const FLAGS: i32 = libc::SCHED_FLAG_RESET_ON_FORK;

/// Tunes the calling thread and locks the process in memory. Threads and processes that it
/// starts later have an ordinary priority. Returns a sentence for each refusal.
pub fn punctual() -> Vec<String> {
    let schedule = set_real_time(FLAGS)
        .err()
        .map(|e| refused("real-time priority", &e, "on a busy CPU lines come later"));
    let memory = lock_used_memory().err().map(|e| {
        refused(
            "locking memory",
            &e,
            "while the host swaps lines come later",
        )
    });
    schedule.into_iter().chain(memory).collect()
}

/// For the thread that serves others: ahead of ordinary ones when it wakes up, but sharing
/// its CPU, because whoever talks to it decides how much it has to do.
pub fn prompt() {
    // Without it answers come later; nothing that is noticed depends on it.
    let _ = set_short_slice(FLAGS);
}

fn refused(what: &str, error: &io::Error, so: &str) -> String {
    format!("{what} was refused ({error}): {so}")
}
