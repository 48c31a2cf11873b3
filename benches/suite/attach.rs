// SPDX-License-Identifier: MIT OR Apache-2.0
//! One link with a constant delay: the time of the command that attaches it, and the memory of the
//! kernel's objects. Without the first time of each side, which also loads modules.

use std::process::Command;

use crate::Suite;
use crate::links::{kernel_mib, seconds_since};
use crate::side::{Side, here};
use support::clock;
use support::lab::{self, Lab};

const PROFILE: &str = "[link]\ndelay = \"2ms\"\n";

pub fn run(suite: &mut Suite) {
    let wanted = [Side::Netem, Side::Emud, Side::EmudQdisc, Side::EmudHold];
    let sides = here(suite, &wanted).into_iter();
    let labs: Vec<(Side, Lab)> = sides.map(|side| (side, Lab::new())).collect();
    for turn in 0..=suite.turns {
        for (side, lab) in &labs {
            one(suite, *side, lab, "up", turn > 0);
            // netem would need an ifb, and a second command.
            if *side != Side::Netem {
                one(suite, *side, lab, "both", turn > 0);
            }
        }
    }
}

fn one(suite: &mut Suite, side: Side, lab: &Lab, direction: &str, counts: bool) {
    let (held, start) = (kernel_mib(), clock::now());
    match side.engine() {
        Some(engine) => drop(lab.attach(engine, PROFILE, &["--direction", direction])),
        None => tc(lab, "qdisc add dev va root netem delay 2ms"),
    }
    let took = seconds_since(start);
    let memory = kernel_mib() - held;
    match side.engine() {
        Some(_) => lab.detach(),
        None => tc(lab, "qdisc del dev va root"),
    }
    if counts {
        let case = format!("delay 2 ms, direction {direction}");
        let (name, results) = (side.name(), &mut suite.results);
        results.add(&case, name, "set-up time", "s", took);
        results.add(&case, name, "kernel memory", "MiB", memory);
    }
}

/// Without a shell, whose time would count.
fn tc(lab: &Lab, line: &str) {
    let mut command = Command::new("tc");
    lab::run(command.args(["-n", &lab.a]).args(line.split(' '))).expect(0);
}
