// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io;
use std::path::PathBuf;

use emud_monitor::MonitorError;

use crate::datapath::maps::DatapathError;

/// Why a run could not begin, or a running monitor could not be reached.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ObserveError {
    #[error("cannot listen on {at}: {error}")]
    Listen { at: String, error: io::Error },
    #[error("{} belongs to a running monitor", .0.display())]
    Taken(PathBuf),
    #[error("{attempted}: {error}")]
    System {
        attempted: &'static str,
        error: io::Error,
    },
    #[error("no monitor is running at {0}: start one with `emud monitor`")]
    NoMonitor(String),
    #[error("{}: {error}", .path.display())]
    Talk { path: PathBuf, error: io::Error },
    #[error("the monitor rejected the request: {0}")]
    Refused(String),
    #[error("the monitor rejected the request: {0}")]
    NotAllowed(String),
}

impl ObserveError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Self::Listen { error, .. } | Self::Talk { error, .. } if denied(error) => 77,
            Self::Listen { .. } | Self::Taken(_) => 73,
            Self::System { .. } => 71,
            Self::NoMonitor(_) => 66,
            Self::Talk { .. } => 74,
            Self::Refused(_) => 64,
            Self::NotAllowed(_) => 77,
        }
    }
}

/// Why an experiment's monitor could not begin.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum StartError {
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    #[error(transparent)]
    Links(#[from] DatapathError),
}

impl StartError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Observe(e) => e.exit_code(),
            Self::Monitor(e) => e.exit_code(),
            Self::Links(e) => e.exit_code(),
        }
    }
}
