// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that does nothing: measures the cost of calling a program on this machine.

use aya::programs::{ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun};
use aya::{Ebpf, EbpfError};

use crate::abi;

/// Calls of the program for the measurement; the first half is warm-up.
const CALLS: u64 = 2000;

/// Why the empty program could not be loaded, run or attached.
#[derive(Debug, thiserror::Error)]
pub enum EmptyError {
    /// The object cannot be loaded.
    #[error("cannot load the monitor's object: {0}")]
    Load(#[from] EbpfError),
    /// The program cannot be loaded, attached or run.
    #[error("cannot measure the empty program: {0}")]
    Program(#[from] ProgramError),
}

/// The empty program, loaded.
pub struct Empty {
    bpf: Ebpf,
}

impl Empty {
    /// Loads the program.
    ///
    /// # Errors
    /// The kernel rejects the program.
    pub fn load() -> Result<Self, EmptyError> {
        let mut bpf = Ebpf::load(abi::MONITOR_OBJECT)?;
        program(&mut bpf)?.load()?;
        Ok(Self { bpf })
    }

    /// Attaches the program to a tracepoint until it is dropped.
    ///
    /// # Errors
    /// The kernel has no such tracepoint.
    pub fn attach(&mut self, tracepoint: &str) -> Result<(), EmptyError> {
        program(&mut self.bpf)?.attach(tracepoint)?;
        Ok(())
    }

    /// Returns the number of runs so far and their time in ns, from the kernel's run statistics
    /// (which have to be enabled).
    ///
    /// # Errors
    /// The kernel does not return the statistics.
    pub fn cost(&mut self) -> Result<(u64, u64), EmptyError> {
        cost(program(&mut self.bpf)?)
    }
}

/// Measures the time of one call in ns with the kernel's run statistics.
pub(crate) fn call_ns(bpf: &mut Ebpf) -> Result<f64, EmptyError> {
    let program = program(bpf)?;
    program.load()?;
    let call = |_| {
        let result = program.test_run(RawTracePointRunOptions::default());
        result.map(drop)
    };
    (0..CALLS / 2).try_for_each(call)?;
    let before = cost(program)?;
    (0..CALLS / 2).try_for_each(call)?;
    let after = cost(program)?;
    program.unload()?;
    Ok((after.1 - before.1) as f64 / (after.0 - before.0).max(1) as f64)
}

fn program(bpf: &mut Ebpf) -> Result<&mut RawTracePoint, ProgramError> {
    let program = bpf.program_mut("emud_empty");
    program.ok_or(ProgramError::NotLoaded)?.try_into()
}

fn cost(program: &RawTracePoint) -> Result<(u64, u64), EmptyError> {
    let info = program.info()?;
    Ok((info.run_count(), info.run_time().as_nanos() as u64))
}
