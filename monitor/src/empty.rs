// SPDX-License-Identifier: GPL-2.0-only
//! What the mere call of a program costs on this machine.

use aya::Ebpf;
use aya::programs::{ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun};

/// Calls of the empty program; the first half warms it up.
const CALLS: u32 = 2000;

/// Time of one call by the kernel's run statistics, in ns.
///
/// # Errors
/// The kernel does not run it.
pub fn cost_ns(bpf: &mut Ebpf) -> Result<f64, ProgramError> {
    let program = bpf
        .program_mut("emud_empty")
        .ok_or(ProgramError::NotLoaded)?;
    let program: &mut RawTracePoint = program.try_into()?;
    program.load()?;
    let call = |program: &RawTracePoint| {
        program
            .test_run(RawTracePointRunOptions::default())
            .map(drop)
    };
    for _ in 0..CALLS / 2 {
        call(program)?;
    }
    let before = program.info()?;
    for _ in 0..CALLS / 2 {
        call(program)?;
    }
    let after = program.info()?;
    let calls = after.run_count() - before.run_count();
    let time = after.run_time().saturating_sub(before.run_time());
    program.unload()?;
    Ok(match calls {
        0 => 0.0,
        calls => time.as_nanos() as f64 / calls as f64,
    })
}
