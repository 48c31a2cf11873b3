// SPDX-License-Identifier: GPL-2.0-only
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
    let (begin, used_before) = (now(), used());
    loop {
        while 4 * (used() - used_before) < now() - begin {
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
