// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor's programs, compiled for this machine: the orders in which CPUs can run them.

use crate::program::finds_nothing;

/// The compiler calls the test before each access.
const ACCESSES: &str = "-fsanitize-coverage=bb,trace-loads,trace-stores";

/// About 0.5 s. With three changes of the CPU instead of two, 14 s (`EMUD_TEST_FULL`).
#[test]
fn every_alarm_is_followed_by_its_end() {
    let changes = if support::full() { 3 } else { 2 };
    finds_nothing(
        "monitor/episodes",
        &[ACCESSES, &format!("-DCHANGES={changes}")],
    );
}

#[test]
fn what_they_count() {
    finds_nothing("monitor/counts", &[ACCESSES, "-g"]);
}

#[test]
fn what_the_recorder_counts() {
    finds_nothing("monitor/record", &[ACCESSES, "-g"]);
}
