// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that does nothing: what the mere call of one costs on this machine.

use aya::programs::{ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun};
use aya::{Ebpf, EbpfError};

use crate::abi;

/// Calls of the program to find its cost; the first half warms it up.
const CALLS: u64 = 2000;

/// Why the empty program could not be loaded, run or attached.
#[derive(Debug, thiserror::Error)]
pub enum EmptyError {
    #[error("cannot load the monitor's object: {0}")]
    Load(#[from] EbpfError),
    #[error("the empty program: {0}")]
    Program(#[from] ProgramError),
}

/// The empty program, loaded.
pub struct Empty {
    bpf: Ebpf,
}

impl Empty {
    /// # Errors
    /// The kernel refuses it.
    pub fn load() -> Result<Self, EmptyError> {
        let mut bpf = Ebpf::load(abi::MONITOR_OBJECT)?;
        program(&mut bpf)?.load()?;
        Ok(Self { bpf })
    }

    /// Lets it run at a tracepoint from now on, as long as it is not dropped.
    ///
    /// # Errors
    /// There is no such tracepoint.
    pub fn attach(&mut self, tracepoint: &str) -> Result<(), EmptyError> {
        program(&mut self.bpf)?.attach(tracepoint)?;
        Ok(())
    }

    /// Runs so far, and the time they took in ns, from the kernel's run statistics
    /// (which have to be enabled).
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn cost(&mut self) -> Result<(u64, u64), EmptyError> {
        cost(program(&mut self.bpf)?)
    }
}

/// Time of one call, in ns, by the kernel's run statistics.
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
