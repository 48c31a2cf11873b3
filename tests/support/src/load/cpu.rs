// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps its CPU busy.
//!
//! `spin NS`: for that long; prints when it began and ended, and its CPU time. `quarter`: a quarter
//! of the CPU forever, sleeping at least 10 ms between bursts (M). `shell`: becomes `while :; do :;
//! done`; prints when. `crowd N NS LAST_NS`: N threads, each with its name, for NS each; when
//! all have ended `crowd-last`, which prints what `spin` does.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::thread;

use super::{parsed, tell};
use crate::clock::{now, sleep_until, spin_until, used};

/// Between the bursts of a quarter, ns.
const PAUSE_NS: u64 = 10_000_000;

/// Maximum debt of a quarter, ns: three quarters that a busy machine delayed then fill the CPU for
/// 180 ms.
const DEBT_NS: u64 = 15_000_000;

pub fn run(commands: &Receiver<String>) {
    tell("ready");
    for command in commands {
        match parsed(&command) {
            ("spin", n) => spin(n[0]),
            ("quarter", _) => quarter(),
            ("shell", _) => shell(),
            ("crowd", n) => crowd(n[0], n[1], n[2]),
            _ => panic!("{command}"),
        }
    }
}

fn spin(for_ns: u64) {
    let (begin, used_before) = (now(), used());
    spin_until(begin + for_ns);
    tell(&format!("spun {begin} {} {}", now(), used() - used_before));
}

/// A debt is paid: a delayed load spins longer, so that four of them fill the CPU.
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

fn crowd(threads: u64, each_ns: u64, last_ns: u64) {
    let named = |name: String| thread::Builder::new().name(name);
    thread::scope(|scope| {
        for number in 0..threads {
            named(format!("crowd-{number}"))
                .spawn_scoped(scope, move || spin_until(now() + each_ns))
                .expect("a thread");
        }
    });
    let last = named("crowd-last".to_owned()).spawn(move || spin(last_ns));
    last.expect("a thread").join().expect("it ends");
}

fn shell() {
    tell(&format!("at {}", now()));
    let error = Command::new("/bin/sh")
        .args(["-c", "while :; do :; done"])
        .exec();
    panic!("sh: {error}");
}
