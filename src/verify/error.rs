// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io;
use std::net::IpAddr;

use crate::datapath::LinkError;
use crate::datapath::maps::DatapathError;
use crate::netlink::NetlinkError;
use crate::profile::quantile::SpreadError;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum VerifyError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    #[error("{direction}: {source}")]
    Spread {
        direction: &'static str,
        source: SpreadError,
    },
    #[error(
        "give --peer-netns NAME (each direction alone) or --peer ADDR (both together, by ping)"
    )]
    NoPeer,
    #[error("namespace {netns} has no address in a network of {interface}; give one with --peer")]
    NoAddress { netns: String, interface: String },
    #[error(
        "{netns} is the namespace of {interface} itself, where probes would be looped back and never \
         see the link: name the namespace of the other end, or give its address with --peer ADDR alone"
    )]
    SameNamespace { netns: String, interface: String },
    #[error("{what}: {source}")]
    Socket {
        what: &'static str,
        source: io::Error,
    },
    #[error(
        "no probe came back from {peer}, and the link is not configured to lose every packet; is the address \
         right, and does the peer answer?"
    )]
    NoAnswer { peer: IpAddr },
    #[error("no property of this link can be judged: it has {what} (docs/verify.md)")]
    NotJudged { what: String },
    #[error(
        "the MTU of {interface} or of its peer is {mtu}: too small for the train of packets that \
         measures the rate; verify needs 248 bytes at least (IPv4: 228)"
    )]
    SmallMtu { interface: String, mtu: u32 },
    #[error(
        "the link on {interface} ends in {ends_in_s:.0} s, before it is measured: give it more time with \
         `emud set {interface} --for TIME`, or a shorter --duration"
    )]
    EndsFirst { interface: String, ends_in_s: f64 },
    #[error(
        "the link on {interface} ended or was removed while it was measured: attach it again, and verify it \
         while it is there"
    )]
    Gone { interface: String },
    #[error("the link on {interface} was changed while it was measured: verify it again")]
    Changed { interface: String },
    #[error("duration {0} is too short: must be at least 1 s")]
    TooShort(String),
    #[error("a probing thread ended unexpectedly")]
    Thread,
}

impl VerifyError {
    /// Returns the exit code of the process for this error (sysexits.h).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Link(e) => e.exit_code(),
            Self::Netlink(e) => e.exit_code(),
            Self::Datapath(e) => e.exit_code(),
            Self::Spread { .. } => 65,
            Self::NoPeer | Self::TooShort(_) => 64,
            Self::NoAddress { .. }
            | Self::SameNamespace { .. }
            | Self::EndsFirst { .. }
            | Self::Gone { .. } => 66,
            Self::Changed { .. } => 75,
            Self::NoAnswer { .. } | Self::NotJudged { .. } | Self::SmallMtu { .. } => 69,
            Self::Socket { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::Socket { .. } => 71,
            Self::Thread => 70,
        }
    }
}
