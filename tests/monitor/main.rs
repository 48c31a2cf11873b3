// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud monitor` on a real machine, judged from outside by its log, with loads that know when they took
//! what. Needs root, and a machine that is otherwise quiet: what others do to a CPU or a disk is contention.
//!
//! `EMUD_TEST_FULL`: all trials, and minutes of silence. `EMUD_MONITOR_TRIALS`: so many a criterion.
//! `EMUD_MONITOR_RATE`: network rates in shares of the usual ones, for slow machines. `EMUD_MONITOR_GUEST`: a kernel with
//! null_blk, dummy and cgroup v2 is promised, and little memory. `EMUD_BIN` is another emud to test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alarms;
mod clock;
mod episodes;
mod experiment;
#[path = "../live/lab.rs"]
#[allow(dead_code)]
mod lab;
mod latency;
mod load;
mod place;
mod quiet;
mod refusal;
mod robust;
mod shares;
#[path = "../live/stats.rs"]
#[allow(dead_code)]
mod stats;
mod watch;
mod witness;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

const TESTS: &[(&str, fn())] = &[
    ("alarms::application", alarms::application),
    ("alarms::limit", alarms::limit),
    ("alarms::metrics", alarms::metrics),
    ("alarms::off", alarms::off),
    ("alarms::on_alarm", alarms::on_alarm),
    ("alarms::stop_after", alarms::stop_after),
    ("alarms::unknown_is_not_clean", alarms::unknown_is_not_clean),
    ("episodes::cpu", episodes::cpu),
    ("episodes::disk", episodes::disk),
    ("episodes::memory", episodes::memory),
    ("episodes::network", episodes::network),
    ("experiment::table", experiment::table),
    ("latency::cpu", latency::cpu),
    ("latency::cpu_never_yields", latency::cpu_never_yields),
    ("latency::disk", latency::disk),
    ("latency::disk_stuck", latency::disk_stuck),
    ("latency::disk_of_bios", latency::disk_of_bios),
    ("latency::memory", latency::memory),
    ("latency::network", latency::network),
    ("quiet::idle", quiet::idle),
    ("quiet::cpu", quiet::cpu),
    ("quiet::demand_paging", quiet::demand_paging),
    ("quiet::disk", quiet::disk),
    ("quiet::memory", quiet::memory),
    ("quiet::network", quiet::network),
    ("robust::cgroups_come_and_go", robust::cgroups_come_and_go),
    ("robust::killed", robust::killed),
    ("robust::ring_full", robust::ring_full),
    ("shares::cpu", shares::cpu),
    ("shares::disk", shares::disk),
    ("shares::memory", shares::memory),
    ("shares::network", shares::network),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(load::ARGUMENT) {
        return load::main(arguments);
    }
    let mut arguments = Arguments::from_args();
    // Loads at the same time would be one another's.
    arguments.test_threads = Some(1);
    let trials = TESTS
        .iter()
        .map(|&(name, test)| {
            Trial::test(name, move || {
                println!();
                let begin = std::time::Instant::now();
                test();
                println!("    {:.1} s", begin.elapsed().as_secs_f64());
                Ok(())
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Whether the slow runs are asked for.
fn full() -> bool {
    std::env::var_os("EMUD_TEST_FULL").is_some()
}

/// Whether this is a guest kernel.
fn guest() -> bool {
    std::env::var_os("EMUD_MONITOR_GUEST").is_some()
}

/// The cases to try: in a guest, where a start of the monitor takes seconds, the first, unless all is asked for.
fn cases<T>(all: &[T]) -> &[T] {
    if guest() && !full() { &all[..1] } else { all }
}

/// How many trials a criterion; 100 in the full run.
fn trials(usual: u32) -> u32 {
    number_from("EMUD_MONITOR_TRIALS").map_or(if full() { 100 } else { usual }, |n| n as u32)
}

/// A network rate, bit/s, as this machine can bear it.
fn bandwidth(bit_s: u64) -> u64 {
    (bit_s as f64 * number_from("EMUD_MONITOR_RATE").unwrap_or(1.0)) as u64
}

fn number_from(variable: &str) -> Option<f64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
    )
}
