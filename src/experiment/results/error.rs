// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io;
use std::path::PathBuf;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ResultsError {
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is empty: give a log that `emud run --log FILE` wrote", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{}, line 1: not the start of a log of schema \"emud-log/2\"{}: give the file that \
         `emud run --log FILE` wrote", path.display(), detail(found)
    )]
    NotALog { path: PathBuf, found: String },
    #[error(
        "{}, line {line}: {problem}; the file was changed or damaged after emud wrote it",
        path.display()
    )]
    Line {
        path: PathBuf,
        line: u64,
        problem: String,
    },
    #[error(
        "{} is the log of a monitor alone (no line of type \"run\"): it has no experiment; \
         `emud run --log FILE` writes one that has, docs/log-format.md has recipes for this one",
        path.display()
    )]
    NoExperiment { path: PathBuf },
    #[error(
        "{} is the log of several hosts, which only `emud report` reads: give the log of \
         one host, which `emud fleet run --log d.log` writes as d.HOST.log", path.display()
    )]
    Merged { path: PathBuf },
    #[error("no host of {} has an experiment: {why}", path.display())]
    NoHost { path: PathBuf, why: String },
    #[error(
        "the experiment of {} has no medium: a scenario has one by [medium.NAME] or [segment.NAME]",
        path.display()
    )]
    NoMedium { path: PathBuf },
}

fn detail(found: &str) -> String {
    match found {
        "" => String::new(),
        found => format!(" ({found})"),
    }
}

impl ResultsError {
    /// Returns the exit code for it, after sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::Io { .. } => 66,
            Self::Empty { .. }
            | Self::NotALog { .. }
            | Self::Line { .. }
            | Self::NoExperiment { .. }
            | Self::Merged { .. }
            | Self::NoHost { .. }
            | Self::NoMedium { .. } => 65,
        }
    }
}
