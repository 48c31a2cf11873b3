// SPDX-License-Identifier: MIT OR Apache-2.0
use std::{fmt, io};

use netlink_socket2::ReplyError;

use super::socket::Refused;

/// The result of a netlink request.
pub type Result<T, E = NetlinkError> = std::result::Result<T, E>;

/// The kernel's answer to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsFailure {
    /// The attempted action, such as "add qdisc fq on eth0".
    pub attempted: String,
    /// Error number; 0 if the kernel returned none.
    pub errno: i32,
    /// The kernel's extended acknowledgement or another explanation; may be empty.
    pub message: String,
}

impl fmt::Display for OsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.attempted)?;
        if self.errno != 0 {
            write!(f, ": {}", io::Error::from_raw_os_error(self.errno))?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

/// Why a netlink request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetlinkError {
    /// The interface of this name does not exist.
    #[error("there is no interface {0} in this network namespace")]
    NoInterface(String),
    /// The network namespace of this name does not exist.
    #[error("there is no network namespace {0}")]
    NoNamespace(String),
    /// A number is the name of one network namespace and a process in another one.
    #[error(
        "a process and a name of `ip netns` have this number: give --netns {named} or {of_process}"
    )]
    TwoNamespaces {
        /// The file of the name.
        named: String,
        /// The file of the process.
        of_process: String,
    },
    /// This kernel, driver or device does not support the request.
    #[error("{0} (not available in this kernel or on this device)")]
    Unavailable(OsFailure),
    /// EPERM or EACCES.
    #[error("{0} (needs root: CAP_NET_ADMIN and CAP_SYS_ADMIN)")]
    Denied(OsFailure),
    /// EEXIST: the object exists.
    #[error("{0}")]
    Exists(OsFailure),
    /// EBUSY, EAGAIN or EADDRINUSE.
    #[error("{0}")]
    Busy(OsFailure),
    /// Any other answer of the kernel.
    #[error("{0}")]
    Os(OsFailure),
    /// Detected before anything was removed.
    #[error("detach could not restore the root qdisc of {ifname}: {reason}")]
    CannotRestore {
        /// Name of the interface.
        ifname: String,
        /// Why.
        reason: String,
    },
    /// Restored, but the kernel now shows a different qdisc than before.
    #[error(
        "the root qdisc of {ifname} was restored, but differs from the previous one: {difference}"
    )]
    RestoreDiffers {
        /// Name of the interface.
        ifname: String,
        /// The difference as a phrase.
        difference: String,
    },
    /// The saved state has a format that this version does not support.
    #[error("cannot read the saved state: {0}")]
    BadSnapshot(String),
}

impl NetlinkError {
    /// Returns the exit code of the process for this error (sysexits.h).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::TwoNamespaces { .. } => 64,
            Self::NoInterface(_) | Self::NoNamespace(_) => 66,
            Self::Unavailable(_) => 69,
            Self::BadSnapshot(_) => 70,
            Self::Os(f) if f.errno == libc::ENODEV => 66,
            Self::Os(_) | Self::RestoreDiffers { .. } => 71,
            Self::Exists(_) | Self::CannotRestore { .. } => 73,
            Self::Busy(_) => 75,
            Self::Denied(_) => 77,
        }
    }

    /// Returns whether the interface does not exist, or no longer.
    pub fn is_no_device(&self) -> bool {
        matches!(self, Self::NoInterface(_)) || self.errno() == libc::ENODEV
    }

    /// Returns the kernel's error number, 0 if there is none.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Unavailable(f)
            | Self::Denied(f)
            | Self::Exists(f)
            | Self::Busy(f)
            | Self::Os(f) => f.errno,
            _ => 0,
        }
    }

    pub(super) fn of(f: OsFailure) -> Self {
        match f.errno {
            libc::EPERM | libc::EACCES => Self::Denied(f),
            libc::EEXIST => Self::Exists(f),
            libc::EBUSY | libc::EAGAIN | libc::EADDRINUSE => Self::Busy(f),
            libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ENOSYS => {
                Self::Unavailable(f)
            }
            _ => Self::Os(f),
        }
    }

    pub(crate) fn io(attempted: impl Into<String>, err: &io::Error) -> Self {
        let (errno, message) = match err.raw_os_error() {
            Some(errno) => (errno, String::new()),
            // In another user namespace, a folder of root's belongs to the user `nobody`.
            None if err.kind() == io::ErrorKind::PermissionDenied => {
                (libc::EACCES, err.to_string())
            }
            None => (0, err.to_string()),
        };
        Self::of(OsFailure {
            attempted: attempted.into(),
            errno,
            message,
        })
    }

    pub(super) fn reply(attempted: impl Into<String>, err: &ReplyError) -> Self {
        let io = err.as_io_error();
        let cause = match io.raw_os_error() {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::new(io.kind(), io.to_string()),
        };
        let message = err.ext_ack().and_then(|a| {
            a.get_msg()
                .ok()
                .map(|m| m.to_string_lossy().trim_end().to_string())
        });
        Self::refused(attempted, Refused { cause, message })
    }

    pub(super) fn refused(attempted: impl Into<String>, refused: Refused) -> Self {
        let Refused { cause, message } = refused;
        match (cause.raw_os_error(), message) {
            (Some(errno), Some(message)) => Self::of(OsFailure {
                attempted: attempted.into(),
                errno,
                message,
            }),
            _ => Self::io(attempted, &cause),
        }
    }

    /// Converts ENOENT for "add an object of this kind", which means that the kernel does not have the kind.
    pub(super) fn kind_missing(self, no_other_cause: bool) -> Self {
        match self {
            Self::Os(f)
                if f.errno == libc::ENOENT
                    && (no_other_cause || f.message.contains("kind is unknown")) =>
            {
                Self::Unavailable(f)
            }
            other => other,
        }
    }
}
