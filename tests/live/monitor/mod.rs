// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud monitor` on a real machine, judged from outside by its log, with loads that record their
//! own times.

mod alarms;
mod criteria;
mod episodes;
mod experiment;
mod latency;
mod quiet;
mod robust;
mod shares;

use libtest_mimic::Trial;
use support::{full, guest, named, number_from, trial};

pub fn tests() -> Vec<Trial> {
    named![fn();
        Guest:
            criteria::all,
            shares::cpu,
            shares::cpu_after_a_crowd,
            shares::cpu_of_a_whole_episode;
        Here:
            criteria::cpu,
            criteria::disk,
            criteria::emulator,
            criteria::network,
            criteria::paging,
            criteria::steal,
            criteria::windows,
            alarms::application,
            alarms::limit,
            alarms::metrics,
            alarms::off,
            alarms::on_alarm,
            alarms::rotated,
            alarms::stop_after,
            alarms::timed_for_moments,
            alarms::unknown_is_not_clean,
            robust::killed;
        Host:
            robust::hostile_user;
        Full:
            episodes::cpu,
            episodes::disk,
            episodes::memory,
            episodes::network,
            experiment::table,
            latency::cpu,
            latency::cpu_never_yields,
            latency::disk,
            latency::disk_stuck,
            latency::disk_of_bios,
            latency::memory,
            latency::network,
            quiet::idle,
            quiet::cpu,
            quiet::demand_paging,
            quiet::disk,
            quiet::memory,
            quiet::network,
            robust::cgroups_come_and_go,
            robust::ring_full,
            shares::disk,
            shares::memory,
            shares::network;
    ]
    .map(|(when, name, test)| trial::test(when, format!("monitor::{name}"), test))
    .into()
}

/// The cases to try: in a guest, where a start of the monitor takes seconds, only the first, except
/// in the full run.
fn cases<T>(all: &[T]) -> &[T] {
    if guest() && !full() { &all[..1] } else { all }
}

/// Number of trials per criterion; 100 in the full run.
fn trials(usual: u32) -> u32 {
    number_from("EMUD_MONITOR_TRIALS").map_or(if full() { 100 } else { usual }, |n| n as u32)
}

/// A network rate, bit/s, that this machine can sustain.
fn bandwidth(bit_s: u64) -> u64 {
    (bit_s as f64 * number_from("EMUD_MONITOR_RATE").unwrap_or(1.0)) as u64
}
