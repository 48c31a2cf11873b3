// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all formats of traces have in common.

/// Why a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The problem as a phrase.
    pub problem: String,
}

/// Times beyond these are mistakes, s.
pub(super) const LONGEST_S: f64 = 1e8;
/// Nodes of a trace.
pub(super) const MOST_NODES: usize = 65_536;

pub(super) fn wrong(line: usize, problem: impl Into<String>) -> TraceError {
    TraceError {
        line,
        problem: problem.into(),
    }
}
