// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes the monitor's lines punctual on a machine that has run out of something. A
//! refusal makes them later, not wrong, so it is a note in the log.

use std::io;

use crate::datapath::engine::hold::tune::{
    lock_used_memory, set_deadline, set_real_time, set_short_slice,
};

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

/// What the thread that serves others may take of a CPU ahead of everybody: a tenth, because
/// whoever talks to it decides how much it has to do. The work of a report is some 50 us.
const SERVING_NS: u64 = 1_000_000;
const SERVING_PERIOD_NS: u64 = 10_000_000;

/// For the thread that serves others. Four busy loops on two CPUs made reports 9 ms late
/// (99th percentile) at nice -20 with a short slice.
pub fn prompt() {
    // Without either answers come later; nothing that is noticed depends on it.
    let _ = set_deadline(SERVING_NS, SERVING_PERIOD_NS, FLAGS).or_else(|_| set_short_slice(FLAGS));
}

fn refused(what: &str, error: &io::Error, so: &str) -> String {
    format!("{what} was refused ({error}): {so}")
}
