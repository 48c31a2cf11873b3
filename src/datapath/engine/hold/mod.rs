// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine `hold`: frames wait in user space, behind a TAP that emud creates.
//!
//! The classifier puts a departure time in front of every frame and redirects it to the TAP
//! ([`tap`]). The holder (`holder`) keeps it in a timer queue ([`queue`]) and writes it back to
//! the same TAP in time; the classifier at the TAP's ingress sends it on to the device. The holder
//! renews a lease while it runs; without a lease the classifier sends it no frames, so a dead
//! holder is harmless.

mod ds;
pub mod failure;
pub mod frame;
pub(crate) mod holder;
pub mod orphan;
pub(crate) mod port;
pub(crate) mod process;
pub mod queue;
pub mod reports;
pub mod servers;
pub mod signal;
pub mod spawn;
pub mod tap;
pub(crate) mod tune;
mod worker;

use std::io;

pub use crate::abi::emud_holder as HolderStats;
use crate::abi::{EMUD_DOWN, EMUD_UP};

pub use holder::Holder;
pub use port::End;
pub use tap::Tap;
pub use tune::{Schedule, Tuning, spare};

/// A direction of the link, with the classifier's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Direction {
    /// Egress of the device.
    Up = EMUD_UP,
    /// Ingress of the device.
    Down = EMUD_DOWN,
}

/// Errors of the holder and its TAP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum HoldError {
    /// A system call failed.
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// The kernel has no TAP devices.
    #[error("cannot open {path}: {source}: {}", no_tun(.source))]
    NoTun {
        path: &'static str,
        source: io::Error,
    },
    /// An invalid name of an interface.
    #[error("\"{0}\" is not a valid name of an interface")]
    BadName(String),
    /// The holder in the background failed to start with this message.
    #[error("cannot start the holder: {message}")]
    Refused { exit_code: u8, message: String },
    /// The holder in the background ended without a message.
    #[error("the holder ended before it was ready ({0})")]
    Died(std::process::ExitStatus),
    /// The holder in the background did not start in time and was ended.
    #[error("the holder was not ready after {0} ms")]
    NotReady(u128),
}

fn no_tun(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root; a container needs access to this device",
        _ => "load the module tun",
    }
}

impl HoldError {
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::System { .. } => 71,
            Self::NoTun { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::NoTun { .. } => 69,
            Self::BadName(_) => 64,
            Self::Refused { exit_code, .. } => *exit_code,
            Self::Died(_) => 70,
            Self::NotReady(_) => 75,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_no_missing_module() {
        let of = |errno| HoldError::NoTun {
            path: "/dev/net/tun",
            source: io::Error::from_raw_os_error(errno),
        };
        for (errno, code, help) in [
            (libc::EACCES, 77, "run as root"),
            (libc::EPERM, 77, "run as root"),
            (libc::ENOENT, 69, "load the module tun"),
        ] {
            assert_eq!(of(errno).exit_code(), code);
            assert!(of(errno).to_string().contains(help));
        }
    }
}
