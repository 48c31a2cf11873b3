// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stations of a shared medium ([`crate::medium`]): TAPs in the nodes, and one thread that carries
//! frames between them in virtual time.
//!
//! A packet is stamped by a BPF program when its node sends it (`stamp`), read by the thread
//! (`worker`), and handed over to the air with its stamp. The thread decides on the air up to the
//! present only after it has read everything, so what happens on air does not depend on when the
//! thread runs: a late thread makes deliveries late, which is counted ([`Status`]).
//!
//! All devices end with their descriptors, and so with the process.

mod frame;
mod motion;
mod pool;
mod record;
mod serve;
mod stamp;
mod status;
mod tap;
mod worker;

use std::io;

use crate::datapath::engine::hold::HoldError;
use crate::datapath::maps::DatapathError;
use crate::netlink::NetlinkError;

pub use frame::address;
pub(crate) use record::MOST_STATIONS;
pub use record::{Replay, ReplayError, Setting, replay};
pub use serve::Radio;
pub use stamp::Stamp;
pub use status::{DELIVERED_LATE, Gauge, READ_LATE, Status};
pub use tap::{MTU, Tap, TapSetup, create};
pub use worker::Setup;

/// Why a station or a medium could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum RadioError {
    #[error(transparent)]
    Tap(#[from] HoldError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Stamp(#[from] DatapathError),
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

impl RadioError {
    fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Tap(error) => error.exit_code(),
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => 77,
            _ => 71,
        }
    }
}
