// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::event::{Unit, Watched};
use crate::record::WatchedKinds;

/// A criterion with a threshold of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Criterion {
    /// Busy intervals of a CPU.
    Cpu,
    /// Bytes of all external devices in a window.
    External,
    /// Bytes of all internal devices in a window.
    Internal,
    /// Pages read from swap in a window.
    PageIn,
    /// Pages written to swap in a window.
    PageOut,
    /// Intervals in which a block device is never empty.
    Disk,
}

impl Criterion {
    pub const ALL: [Self; 6] = [
        Self::Cpu,
        Self::External,
        Self::Internal,
        Self::PageIn,
        Self::PageOut,
        Self::Disk,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::External => "external",
            Self::Internal => "internal",
            Self::PageIn => "page-in",
            Self::PageOut => "page-out",
            Self::Disk => "disk",
        }
    }

    /// Of the values and of the threshold.
    pub fn unit(self) -> Unit {
        match self {
            Self::Cpu | Self::Disk => Unit::Ns,
            Self::External | Self::Internal => Unit::Bytes,
            Self::PageIn | Self::PageOut => Unit::Pages,
        }
    }

    /// Whether a recording shows all of it.
    pub(super) fn watched(self, kinds: &WatchedKinds) -> Watched {
        match self {
            Self::Cpu => kinds.cpu,
            Self::External | Self::Internal => kinds.network,
            Self::PageIn => kinds.page_ins,
            Self::PageOut => kinds.page_outs,
            Self::Disk if kinds.disk_requests == Watched::Yes => kinds.disk_bios,
            Self::Disk => kinds.disk_requests,
        }
    }
}
