// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of instructions that this kernel's verifier processes, and the size of the verified
//! programs: a program that grows here approaches the limit of a kernel.

use emud::datapath::maps::{Loaded, Program};
use emud::datapath::stage::sizes::Sizes;

use crate::Suite;

/// Once: a verifier counts the same every time.
pub fn run(suite: &mut Suite) {
    let loaded = Loaded::load_only(&Program::ALL, &Sizes::default()).expect("load the classifier");
    for program in Program::ALL {
        let info = loaded.program(program).expect("a program").info();
        let info = info.expect("the program's own account");
        let name = program.name();
        let looked_at = info.verified_instruction_count();
        let translated = info.size_translated();
        let jitted = Some(info.size_jitted()).filter(|size| *size > 0);
        for (metric, unit, value) in [
            ("looked at", "instructions", looked_at),
            ("size, translated", "By", translated),
            ("size, compiled", "By", jitted),
        ] {
            match value {
                Some(value) => suite.results.add(name, "emud", metric, unit, value.into()),
                None => suite
                    .results
                    .miss(&format!("{name}: {metric}: the kernel does not say")),
            }
        }
    }
}
