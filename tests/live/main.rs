// SPDX-License-Identifier: MIT OR Apache-2.0
//! emud on live traffic, measured from outside, in network namespaces that the tests make. Needs
//! root. One test follows another.
//!
//! A test that takes long is ignored unless `EMUD_TEST_FULL` is set, one that only a clock of instructions
//! can judge is ignored outside guests, and with `EMUD_TEST_HERE=no` guests ignore what is the same on every
//! kernel. Properties of the kernel that the caller expects, so that nothing is skipped silently: `EMUD_GUEST`, `EMUD_EXPECT_ENGINES` ("fq hold qdisc") and `EMUD_EXPECT` ("netem esp").
//! For slow machines: `EMUD_LIVE_SCALE` (share of the probes), `EMUD_LIVE_PPS_MAX`,
//! `EMUD_MONITOR_RATE`, `EMUD_MONITOR_TRIALS`, `EMUD_NETEM_COUNT`. `EMUD_BIN` is the emud to test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod container;
mod fleet;
mod host;
mod lab;
mod link;
mod monitor;
mod netem;
mod run;

use std::process::ExitCode;

use support::trial;

fn main() -> ExitCode {
    if let Some(done) = trial::role().or_else(lab::role) {
        return done;
    }
    // Even under sudo the programs of a run are root's, unless a test is about that. SAFETY: this
    // process has one thread so far.
    unsafe { std::env::remove_var("SUDO_UID") };
    let (netem, pairs) = netem::tests();
    let conclusion = trial::run(
        [
            link::tests(),
            lab::tests(),
            container::tests(),
            host::tests(),
            monitor::tests(),
            run::tests(),
            fleet::tests(),
            netem,
        ]
        .into_iter()
        .flatten()
        .collect(),
    );
    pairs.end();
    conclusion
}
