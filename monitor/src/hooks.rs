// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the programs attach. For each criterion a ladder: its rungs are tried in
//! order, by loading and attaching (a configuration says nothing of what is
//! refused), and the first that holds is kept.

use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};

use crate::abi;
use crate::event::Hook;
use crate::settings::{TICK, WATCH_TICK};

/// How a program attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A tracepoint with BTF types: its name.
    Tracepoint(&'static str),
    /// The entry of a kernel function, through ftrace.
    Fentry(&'static str),
    /// The entry of a kernel function, through a breakpoint.
    Kprobe(&'static str),
    /// A timer on every CPU.
    Timer,
    /// Every major page fault, on every CPU.
    MajorFaults,
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Tracepoint(name) => format!("tp_btf/{name}"),
            Self::Fentry(function) => format!("fentry/{function}"),
            Self::Kprobe(function) => format!("kprobe/{function}"),
            Self::Timer => "perf/cpu-clock".into(),
            Self::MajorFaults => "perf/major-faults".into(),
        }
    }
}

/// A program of bpf/monitor.bpf.c, its place, and the alarms it raises.
pub struct Part {
    pub program: &'static str,
    pub way: Way,
    pub raises: Option<u32>,
}

/// Programs that are of use together only.
pub struct Rung {
    pub parts: Vec<Part>,
    pub caveat: Option<String>,
    /// Why not even to try.
    pub out_of_question: Option<String>,
}

impl Rung {
    pub fn of(parts: impl IntoIterator<Item = Part>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
            caveat: None,
            out_of_question: None,
        }
    }

    pub fn but(mut self, caveat: impl Into<String>) -> Self {
        self.caveat = Some(caveat.into());
        self
    }

    pub fn unless(mut self, reason: Option<String>) -> Self {
        self.out_of_question = reason;
        self
    }
}

pub const fn part(program: &'static str, way: Way, raises: Option<u32>) -> Part {
    Part {
        program,
        way,
        raises,
    }
}

/// The programs that hold, and what was tried.
pub struct Hooks {
    pub tried: Vec<Hook>,
    /// Name of the hook that raises an alarm, by `enum emud_hook`.
    pub raising: Vec<String>,
    /// Programs attached, with their hooks.
    pub attached: Vec<(&'static str, String)>,
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

    /// Takes the first rung that holds; false if none does.
    pub fn climb(&mut self, bpf: &mut Ebpf, criterion: &str, ladder: &[Rung]) -> bool {
        ladder
            .iter()
            .any(|rung| self.step(bpf, criterion, rung).is_ok())
    }

    /// Whether a program is attached.
    pub fn has(&self, program: &str) -> bool {
        self.attached.iter().any(|(name, _)| *name == program)
    }

    fn step(&mut self, bpf: &mut Ebpf, criterion: &str, rung: &Rung) -> Result<(), ()> {
        let names: Vec<_> = rung.parts.iter().map(|part| part.way.name()).collect();
        let mut hook = Hook {
            criterion: criterion.into(),
            hook: names.join(" + "),
            refused: None,
            caveat: rung.caveat.clone(),
        };
        match self.attach_all(bpf, rung) {
            Ok(()) => {
                self.tried.push(hook);
                self.keep(rung);
                Ok(())
            }
            Err(why) => {
                hook.refused = Some(why);
                self.tried.push(hook);
                Err(())
            }
        }
    }

    fn keep(&mut self, rung: &Rung) {
        for part in &rung.parts {
            self.attached.push((part.program, part.way.name()));
            if let Some(raises) = part.raises {
                self.raising[raises as usize] = part.way.name();
            }
        }
    }

    /// All or none.
    fn attach_all(&self, bpf: &mut Ebpf, rung: &Rung) -> Result<(), String> {
        if let Some(why) = &rung.out_of_question {
            return Err(why.clone());
        }
        for (n, part) in rung.parts.iter().enumerate() {
            if let Err(error) = self.attach(bpf, part) {
                for undone in &rung.parts[..=n] {
                    if let Some(program) = bpf.program_mut(undone.program) {
                        // Not loaded: nothing to unload.
                        let _ = unload(program);
                    }
                }
                return Err(format!("{}: {}", part.way.name(), reason(&error)));
            }
        }
        Ok(())
    }

    fn attach(&self, bpf: &mut Ebpf, part: &Part) -> Result<(), ProgramError> {
        let program = bpf
            .program_mut(part.program)
            .ok_or(ProgramError::NotLoaded)?;
        match (program, part.way) {
            (Program::BtfTracePoint(program), Way::Tracepoint(name)) => {
                program.load(name, &self.btf)?;
                program.attach().map(drop)
            }
            (Program::FEntry(program), Way::Fentry(function)) => {
                program.load(function, &self.btf)?;
                program.attach().map(drop)
            }
            (Program::KProbe(program), Way::Kprobe(function)) => {
                program.load()?;
                program.attach(function, 0).map(drop)
            }
            (Program::PerfEvent(program), way) => {
                program.load()?;
                self.cpus.iter().enumerate().try_for_each(|(n, cpu)| {
                    let (event, period) = match way {
                        Way::MajorFaults => (SoftwareEvent::PageFaultsMaj, 1),
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

/// The verifier's account is long; its last line says what is wrong.
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
