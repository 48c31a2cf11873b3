// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs can be attached to, and in which order that is tried.

use std::time::Duration;

use crate::abi;

/// Interval of the timer of every CPU: a program takes 0.3 us, its interrupt about 1 us.
pub const TICK: Duration = Duration::from_millis(4);

/// Where a program attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// A tracepoint with BTF types, by name.
    Tracepoint(&'static str),
    /// The entry of a kernel function, with ftrace.
    Fentry(&'static str),
    /// The entry of a kernel function, with a breakpoint.
    Kprobe(&'static str),
    /// A timer on every CPU.
    Timer,
    /// Every major page fault, on every CPU.
    MajorFaults,
}

impl Point {
    pub fn name(self) -> String {
        match self {
            Self::Tracepoint(name) => format!("tp_btf/{name}"),
            Self::Fentry(function) => format!("fentry/{function}"),
            Self::Kprobe(function) => format!("kprobe/{function}"),
            Self::Timer => "perf/cpu-clock".into(),
            Self::MajorFaults => "perf/major-faults".into(),
        }
    }
}

/// A program, its attach point, and its number in `enum emud_hook`.
pub struct Part {
    pub program: &'static str,
    pub point: Point,
    pub hook: u32,
}

/// Programs that only work together.
pub struct Candidate {
    pub parts: Vec<Part>,
    pub caveat: Option<String>,
    /// Reason not to try this candidate.
    pub out_of_question: Option<String>,
}

impl Candidate {
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

pub const fn part(program: &'static str, point: Point, hook: u32) -> Part {
    Part {
        program,
        point,
        hook,
    }
}

/// Returns a candidate of programs that raise no alarms, at tracepoints.
pub fn tracepoints(programs: &[(&'static str, &'static str)]) -> Candidate {
    let parts = programs.iter();
    Candidate::of(
        parts.map(|(program, name)| part(program, Point::Tracepoint(name), abi::EMUD_HOOKS)),
    )
}

/// Candidates for a hook, of which one is needed, the best first. They were determined by trying
/// the kernels 6.1, 6.12, 6.18 and 7.2.
pub(crate) struct Attempt {
    pub label: &'static str,
    pub candidates: Vec<Candidate>,
}

impl Attempt {
    pub fn of(label: &'static str, candidates: impl Into<Vec<Candidate>>) -> Self {
        let candidates = candidates.into();
        Self { label, candidates }
    }
}
