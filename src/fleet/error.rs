// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io;

use super::LEASE;
use crate::experiment::run::RunError;
use crate::netlink::NetlinkError;
use crate::profile::ProfileError;

/// Why something on several hosts failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// A URL of etcd is wrong.
    #[error("--etcd {0}")]
    Url(String),
    /// A certificate or key cannot be used.
    #[error("{0}")]
    Tls(String),
    /// No member answers.
    #[error("etcd: {0}")]
    Unreachable(String),
    /// A member answers with an error.
    #[error("etcd rejected {attempted}: {message}")]
    Rejected {
        /// The attempted action.
        attempted: String,
        /// The answer of etcd.
        message: String,
    },
    /// etcd does not allow this user to read or write the keys.
    #[error(
        "etcd: no permission for {attempted}: {message} (--etcd-user and --etcd-password name a user of etcd)"
    )]
    Denied {
        /// The attempted action.
        attempted: String,
        /// The answer of etcd.
        message: String,
    },
    /// The answer of a member cannot be read.
    #[error("etcd answered {attempted} with something else: {problem}")]
    Answer {
        /// The attempted action.
        attempted: String,
        /// The problem as a phrase.
        problem: String,
    },
    /// The lease is gone, and with it the keys.
    #[error("{0}")]
    LeaseLost(LeaseEnd),
    /// Nodes cannot be placed as the file says.
    #[error("{0}")]
    Placement(String),
    /// A plan is not valid.
    #[error("{0}")]
    Plan(String),
    /// A host cannot build what its plan says.
    #[error("{0}")]
    Unmet(String),
    /// Another host does not answer as it must: it is lost, or the network to it is not good enough.
    #[error("{0}")]
    Peer(String),
    /// Another run or agent is active.
    #[error("{0}")]
    Busy(String),
    /// An agent or a run is not there.
    #[error("{0}")]
    Absent(String),
    /// A host rejects a change: why, and the exit code.
    #[error("{0}; no link has changed")]
    Refused(String, u8),
    /// A clock is not known well enough.
    #[error("the clock: {0}")]
    Clock(String),
    /// The kernel returned an error.
    #[error("{attempted}: {error}")]
    System {
        /// The attempted action.
        attempted: String,
        /// The error of the kernel.
        error: io::Error,
    },
    /// The part could not be carried out.
    #[error(transparent)]
    Run(Box<RunError>),
    /// The kernel rejected a step.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A profile of a plan is not valid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Why a lease is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeaseEnd {
    /// No member answered in time.
    #[error("the lease has expired: etcd was not reached for {} s", LEASE.as_secs())]
    Expired,
    /// etcd answers that it has no such lease.
    #[error(
        "etcd has ended the lease, though it answers: another client revoked it, or the leading member hung \
         (`etcdctl endpoint status`)"
    )]
    Revoked,
    /// etcd rejects a key of a report.
    #[error("the lease is given up: etcd rejected a report")]
    GivenUp,
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
            Self::Refused(_, code) => *code,
            Self::Tls(_) => 78,
            Self::Unreachable(_)
            | Self::LeaseLost(_)
            | Self::Unmet(_)
            | Self::Peer(_)
            | Self::Clock(_) => 69,
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
