// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io;

use crate::experiment::run::RunError;
use crate::netlink::NetlinkError;
use crate::profile::ProfileError;

/// Why something on several hosts failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    #[error("--etcd {0}")]
    Url(String),
    #[error("{0}")]
    Tls(String),
    /// No member answers.
    #[error("etcd: {0}")]
    Unreachable(String),
    /// A member answers with an error.
    #[error("etcd rejected {attempted}: {message}")]
    Rejected { attempted: String, message: String },
    /// Somebody may not read or write the keys.
    #[error("etcd: no permission for {attempted}: {message}")]
    Denied { attempted: String, message: String },
    #[error("etcd answered {attempted} with something else: {problem}")]
    Answer { attempted: String, problem: String },
    /// The lease is gone, and with it the keys.
    #[error("the lease has expired: etcd was not reached for {0} s")]
    LeaseLost(u64),
    #[error("{0}")]
    Placement(String),
    #[error("{0}")]
    Plan(String),
    #[error("{0}")]
    Unmet(String),
    #[error("{0}")]
    Busy(String),
    #[error("{0}")]
    Absent(String),
    #[error("the clock: {0}")]
    Clock(String),
    #[error("{attempted}: {error}")]
    System { attempted: String, error: io::Error },
    #[error(transparent)]
    Run(Box<RunError>),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl From<RunError> for FleetError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl FleetError {
    pub(crate) fn system(attempted: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let attempted = attempted.into();
        move |error| Self::System { attempted, error }
    }

    /// Returns the exit code from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Url(_) => 64,
            Self::Placement(_) | Self::Plan(_) => 65,
            Self::Absent(_) => 66,
            Self::Tls(_) => 78,
            Self::Unreachable(_) | Self::LeaseLost(_) | Self::Unmet(_) | Self::Clock(_) => 69,
            Self::Rejected { .. } | Self::Answer { .. } => 76,
            Self::System { .. } => 71,
            Self::Busy(_) => 75,
            Self::Denied { .. } => 77,
            Self::Run(e) => e.exit_code(),
            Self::Netlink(e) => e.exit_code(),
            Self::Profile(e) => e.exit_code(),
        }
    }
}
