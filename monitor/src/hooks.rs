// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the programs. The candidates of a criterion are tried in order, by loading and
//! attaching (the kernel's configuration does not show what it rejects), and the first that works
//! is kept.

use std::time::Duration;

use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};

use crate::abi;
use crate::candidates::{Attempt, Candidate, Part, Point, TICK};
use crate::criteria::Resource;
use crate::event::Hook;

/// Interval of the timer that also checks for stuck devices.
const WATCH_TICK: Duration = Duration::from_millis(1);

/// An attached program.
pub struct Attached {
    pub program: &'static str,
    /// Name of the hook, such as "tp_btf/sched_switch".
    pub name: String,
    /// Number in `enum emud_hook`.
    pub hook: u32,
    /// Resource that it watches; `None`: all with a tick.
    pub resource: Option<Resource>,
}

/// The attached programs, and the result of every attempt.
pub struct Hooks {
    pub tried: Vec<Hook>,
    /// Names of the hooks that raise alarms, indexed by `enum emud_hook`.
    pub raising: Vec<String>,
    pub attached: Vec<Attached>,
    btf: Btf,
    cpus: Vec<u32>,
}

impl Hooks {
    pub fn new(btf: Btf, cpus: Vec<u32>) -> Self {
        Self {
            tried: vec![],
            raising: vec![String::new(); abi::EMUD_HOOKS as usize],
            attached: vec![],
            btf,
            cpus,
        }
    }

    /// Attaches the first candidate that works; returns false if none does. `resource`: what it watches;
    /// `None`: all with a tick.
    pub fn attach_first(
        &mut self,
        bpf: &mut Ebpf,
        resource: Option<Resource>,
        attempt: &Attempt,
    ) -> bool {
        let mut candidates = attempt.candidates.iter();
        candidates.any(|candidate| self.attempt(bpf, resource, attempt.label, candidate))
    }

    /// Returns whether a program is attached.
    pub fn has(&self, program: &str) -> bool {
        self.attached.iter().any(|held| held.program == program)
    }

    /// Tries one candidate and records the result; returns false if it does not work.
    fn attempt(
        &mut self,
        bpf: &mut Ebpf,
        resource: Option<Resource>,
        criterion: &str,
        candidate: &Candidate,
    ) -> bool {
        let names: Vec<_> = candidate
            .parts
            .iter()
            .map(|part| part.point.name())
            .collect();
        let refused = self.attach_all(bpf, candidate).err();
        if refused.is_none() {
            self.keep(candidate, resource);
        }
        let holds = refused.is_none();
        self.tried.push(Hook {
            criterion: criterion.into(),
            hook: names.join(" + "),
            refused,
            caveat: candidate.caveat.clone(),
        });
        holds
    }

    fn keep(&mut self, candidate: &Candidate, resource: Option<Resource>) {
        for part in &candidate.parts {
            let name = part.point.name();
            if let Some(raising) = self.raising.get_mut(part.hook as usize) {
                raising.clone_from(&name);
            }
            self.attached.push(Attached {
                program: part.program,
                name,
                hook: part.hook,
                resource,
            });
        }
    }

    /// Attaches all programs of a candidate, or none.
    fn attach_all(&self, bpf: &mut Ebpf, candidate: &Candidate) -> Result<(), String> {
        if let Some(why) = &candidate.out_of_question {
            return Err(why.clone());
        }
        for (n, part) in candidate.parts.iter().enumerate() {
            if let Err(error) = self.attach(bpf, part) {
                for undone in &candidate.parts[..=n] {
                    if let Some(program) = bpf.program_mut(undone.program) {
                        // Not loaded: there is nothing to unload.
                        let _ = unload(program);
                    }
                }
                return Err(format!("{}: {}", part.point.name(), reason(&error)));
            }
        }
        Ok(())
    }

    fn attach(&self, bpf: &mut Ebpf, part: &Part) -> Result<(), ProgramError> {
        let program = bpf
            .program_mut(part.program)
            .ok_or(ProgramError::NotLoaded)?;
        match (program, part.point) {
            (Program::BtfTracePoint(program), Point::Tracepoint(name)) => {
                program.load(name, &self.btf)?;
                program.attach().map(drop)
            }
            (Program::FEntry(program), Point::Fentry(function)) => {
                program.load(function, &self.btf)?;
                program.attach().map(drop)
            }
            (Program::KProbe(program), Point::Kprobe(function)) => {
                program.load()?;
                program.attach(function, 0).map(drop)
            }
            (Program::PerfEvent(program), point) => {
                program.load()?;
                self.cpus.iter().enumerate().try_for_each(|(n, cpu)| {
                    let (event, period) = match point {
                        Point::MajorFaults => (SoftwareEvent::PageFaultsMaj, 1),
                        _ if n == 0 => (SoftwareEvent::CpuClock, WATCH_TICK.as_nanos()),
                        _ => (SoftwareEvent::CpuClock, TICK.as_nanos()),
                    };
                    let scope = PerfEventScope::AllProcessesOneCpu { cpu: *cpu };
                    let period = SamplePolicy::Period(period as u64);
                    let event = PerfEventConfig::Software(event);
                    program.attach(event, scope, period, false).map(drop)
                })
            }
            _ => Err(ProgramError::UnexpectedProgramType),
        }
    }
}

fn unload(program: &mut Program) -> Result<(), ProgramError> {
    match program {
        Program::BtfTracePoint(program) => program.unload(),
        Program::FEntry(program) => program.unload(),
        Program::KProbe(program) => program.unload(),
        Program::PerfEvent(program) => program.unload(),
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}

/// Returns the last line of the verifier's log, which is long and names the problem at its end.
fn reason(error: &ProgramError) -> String {
    match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            let statistics = [
                "processed ",
                "verification time ",
                "stack depth ",
                "max_states",
            ];
            let told = |line: &&str| {
                !line.trim().is_empty() && !statistics.iter().any(|s| line.starts_with(s))
            };
            match log.lines().rfind(told) {
                Some(line) => format!("{io_error} ({})", line.trim()),
                None => io_error.to_string(),
            }
        }
        ProgramError::SyscallError(error) => format!("{}: {}", error.call, error.io_error),
        other => other.to_string(),
    }
}
