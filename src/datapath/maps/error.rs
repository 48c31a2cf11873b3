// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the classifier's programs and maps.

use std::io;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use emud_monitor::denied::{is_denied, with_causes};

use crate::abi;
use crate::host::cgroup::NoCgroup;

/// Why the classifier could not be loaded, found, read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum DatapathError {
    #[error("cannot load the classifier: {}", said(.0))]
    Load(#[from] EbpfError),
    #[error("the kernel rejects program {name}: {}", said(.source))]
    Program {
        name: &'static str,
        source: ProgramError,
    },
    #[error("map {name}: {source}")]
    Map {
        name: &'static str,
        source: MapError,
    },
    #[error("the classifier has no {0}: a different version of emud loaded it")]
    Missing(&'static str),
    #[error(
        "the classifier has emud ABI {found}, this version of emud supports {}: detach it with the version that attached it",
        abi::EMUD_ABI
    )]
    Abi { found: u32 },
    #[error(
        "map {0} has a size of a different version of emud: detach the link with the version that attached it"
    )]
    OtherVersion(&'static str),
    #[error("there is no BPF program with id {0}")]
    NoProgram(u32),
    #[error("cannot list the loaded BPF programs: {}", said(.0))]
    Search(ProgramError),
    #[error(
        "cannot wait until no packet uses the previous link, which is no longer active: {0} (where the kernel rejects membarrier(2), this needs CAP_NET_RAW)"
    )]
    GracePeriod(io::Error),
    #[error(
        "the profile, its patterns and samples, and the state to restore take {0} bytes, the maximum is {max}: use fewer or shorter patterns and samples",
        max = abi::EMUD_PIECES * abi::EMUD_PIECE_LEN
    )]
    TooLong(usize),
    #[error(
        "there is no room for {rows} rows of a trace: this link was attached with room for {room}, including the active ones; detach, then attach with the new trace"
    )]
    NoRoomForRows { rows: u32, room: u32 },
    #[error("the kernel no longer has the rows of that trace: give its file again")]
    RowsGone,
    #[error(
        "the loaded classifier lacks features {0:#x}, which the link needs: detach and attach the link"
    )]
    Lacks(u32),
    #[error("cannot pass maps to another program by a BPF file system: {0}")]
    Pin(io::Error),
    #[error(transparent)]
    Cgroup(#[from] NoCgroup),
}

impl DatapathError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Load(e) if is_denied(e) => 77,
            Self::Program { source: e, .. } | Self::Search(e) if is_denied(e) => 77,
            Self::GracePeriod(e) if e.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::Load(_) | Self::Program { .. } => 69,
            Self::Search(_)
            | Self::GracePeriod(_)
            | Self::Map { .. }
            | Self::NoProgram(_)
            | Self::Pin(_) => 71,
            Self::Missing(_) | Self::Abi { .. } | Self::OtherVersion(_) | Self::Lacks(_) => 70,
            Self::Cgroup(_) => 66,
            Self::TooLong(_) | Self::NoRoomForRows { .. } | Self::RowsGone => 65,
        }
    }
}

/// Formats an error of the BPF library with its causes and the missing permissions, if any.
fn said(error: &(dyn std::error::Error + 'static)) -> String {
    let hint = match is_denied(error) {
        true => " (needs root of the host: CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN)",
        false => "",
    };
    with_causes(error) + hint
}

pub(crate) fn at(name: &'static str) -> impl Fn(MapError) -> DatapathError {
    move |source| match source {
        MapError::InvalidKeySize { .. } | MapError::InvalidValueSize { .. } => {
            DatapathError::OtherVersion(name)
        }
        source => DatapathError::Map { name, source },
    }
}

#[cfg(test)]
mod tests {
    use aya::sys::SyscallError;

    use super::*;

    #[test]
    fn only_missing_permissions_ask_for_root() {
        let search = |number| {
            let (call, io_error) = ("bpf", io::Error::from_raw_os_error(number));
            DatapathError::Search(SyscallError { call, io_error }.into()).exit_code()
        };
        assert_eq!(search(libc::ENOMEM), 71);
        assert_eq!(search(libc::EPERM), 77);
    }
}
