// SPDX-License-Identifier: MIT OR Apache-2.0
use std::{fmt, io};

use netlink_socket2::ReplyError;

pub type Result<T, E = NetlinkError> = std::result::Result<T, E>;

/// What the kernel answered to one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsFailure {
    /// What was attempted, e.g. "add qdisc fq on eth0".
    pub attempted: String,
    /// 0 if the failure was not an error number of the kernel's.
    pub errno: i32,
    /// The kernel's extended acknowledgement, or what else is known; may be empty.
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetlinkError {
    #[error("there is no interface {0} in this network namespace")]
    NoInterface(String),
    #[error("there is no network namespace {0}")]
    NoNamespace(String),
    /// This kernel, driver or device lacks what was asked for.
    #[error("{0} (not available in this kernel or on this device)")]
    Unavailable(OsFailure),
    #[error("{0} (needs root: CAP_NET_ADMIN and CAP_SYS_ADMIN)")]
    Denied(OsFailure),
    #[error("{0}")]
    Exists(OsFailure),
    #[error("{0}")]
    Busy(OsFailure),
    #[error("{0}")]
    Os(OsFailure),
    /// Found out before anything was removed.
    #[error("the root qdisc of {ifname} could not be put back later: {reason}")]
    CannotRestore { ifname: String, reason: String },
    /// Rebuilt, but the kernel now shows something else than before.
    #[error("the root qdisc of {ifname} was put back, but differs from what it was: {difference}")]
    RestoreDiffers { ifname: String, difference: String },
    /// A saved state that this version cannot read.
    #[error("saved state is unreadable: {0}")]
    BadSnapshot(String),
}

impl NetlinkError {
    /// The process exit code (sysexits.h).
    pub fn exit_code(&self) -> u8 {
        match self {
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

    /// There is no such interface, or it has gone meanwhile.
    pub fn is_no_device(&self) -> bool {
        matches!(self, Self::NoInterface(_)) || self.errno() == libc::ENODEV
    }

    /// The kernel's error number, 0 if there is none.
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
        let errno = err.raw_os_error().unwrap_or(0);
        let message = if errno == 0 {
            err.to_string()
        } else {
            String::new()
        };
        Self::of(OsFailure {
            attempted: attempted.into(),
            errno,
            message,
        })
    }

    pub(super) fn reply(attempted: impl Into<String>, err: &ReplyError) -> Self {
        let io = err.as_io_error();
        let errno = io.raw_os_error().unwrap_or(0);
        let extack = err.ext_ack().and_then(|a| {
            a.get_msg()
                .ok()
                .map(|m| m.to_string_lossy().trim_end().to_string())
        });
        let message = match extack {
            Some(text) => text,
            None if errno == 0 => io.to_string(),
            None => String::new(),
        };
        Self::of(OsFailure {
            attempted: attempted.into(),
            errno,
            message,
        })
    }

    /// ENOENT from "add a thing of this kind" means that the kernel has no such kind.
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
