// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io;

use ipnet::Ipv4Net;

use crate::netlink::NetlinkError;

/// Why a network could not be created or removed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum LabError {
    #[error("creating a network needs root: use sudo")]
    NotRoot,
    /// The kernel's error, with the missing feature.
    #[error("this kernel does not support {what}: {error}")]
    Lacking {
        what: &'static str,
        error: io::Error,
    },
    #[error("node {0} already exists: choose a different name")]
    Taken(String),
    #[error("there is no node {0}")]
    NoNode(String),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// An error of a node's first process.
    #[error("node {node}: {message}")]
    Node { node: String, message: String },
    #[error("{attempted}: {error}")]
    System { attempted: String, error: io::Error },
    #[error(
        "{attempted}: {interface} has no address: the wire to the outside needs one at both ends"
    )]
    NoAddress {
        attempted: String,
        interface: String,
    },
    /// Another emud process is restoring forwarding and does not end.
    #[error("forwarding on {0}: another emud process is changing it; try again")]
    Busy(String),
    #[error("no free /{0} in 100.64.0.0/10 or 198.18.0.0/15: see `ip route show table all`")]
    NoFreeNetwork(u8),
    #[error(
        "the wire of `outside` has the network {network}, but this host or another run uses {other}: \
         set a different `network` at the top of the scenario"
    )]
    NetworkInUse { network: Ipv4Net, other: Ipv4Net },
}

impl LabError {
    pub(crate) fn system(attempted: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::System {
            attempted: attempted.into(),
            error: error.into(),
        }
    }

    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotRoot => 77,
            Self::Lacking { .. } => 69,
            Self::Taken(_) => 73,
            Self::NoNode(_) | Self::NoAddress { .. } => 70,
            Self::Netlink(error) => error.exit_code(),
            Self::System { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::Node { .. } | Self::System { .. } => 71,
            Self::NoFreeNetwork(_) | Self::NetworkInUse { .. } | Self::Busy(_) => 75,
        }
    }
}
