// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps its CPU busy.
//!
//! `spin NS`: for that long; says when it began and ended, and what it got of the CPU.
//! `quarter`: a quarter of the CPU for ever, sleeping at least 10 ms between bursts (M).
//! `shell`: becomes `while :; do :; done`; says when.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::Receiver;

use super::{parsed, tell};
use crate::clock::{now, sleep_until, spin_until, used};

/// Between the bursts of a quarter, ns.
const PAUSE_NS: u64 = 10_000_000;

/// No quarter is owed more than this, ns: three that a busy machine kept from the CPU fill it for 180 ms then.
const DEBT_NS: u64 = 15_000_000;

pub fn run(commands: &Receiver<String>) {
    tell("ready");
    for command in commands {
        match parsed(&command) {
            ("spin", n) => spin(n[0]),
            ("quarter", _) => quarter(),
            ("shell", _) => shell(),
            _ => panic!("{command}"),
        }
    }
}

fn spin(for_ns: u64) {
    let (begin, used_before) = (now(), used());
    spin_until(begin + for_ns);
    tell(&format!("spun {begin} {} {}", now(), used() - used_before));
}

/// A debt is paid: who was kept from the CPU spins longer, so that four of them fill it.
fn quarter() {
    let (mut begin, used_before) = (now(), used());
    let owed = |begin: u64| (now() - begin).saturating_sub(4 * (used() - used_before));
    loop {
        begin += owed(begin).saturating_sub(4 * DEBT_NS);
        while owed(begin) > 0 {
            std::hint::spin_loop();
        }
        sleep_until(now() + PAUSE_NS);
    }
}

fn shell() {
    tell(&format!("at {}", now()));
    let error = Command::new("/bin/sh")
        .args(["-c", "while :; do :; done"])
        .exec();
    panic!("sh: {error}");
}
