// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the monitor failed.

use std::io;

use aya::maps::MapError;

use crate::denied::with_causes;

/// Why the monitor could not be started, or stopped working.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The kernel's types cannot be read.
    #[error(
        "cannot read the kernel's types from /sys/kernel/btf/vmlinux (the kernel needs CONFIG_DEBUG_INFO_BTF): {0}"
    )]
    Btf(#[from] aya::BtfError),
    /// The object cannot be loaded into the kernel.
    #[error("cannot load the monitor into the kernel: {}", with_causes(.0))]
    Load(#[from] aya::EbpfError),
    /// The process lacks the permission to load BPF programs.
    #[error("no permission to load BPF programs; run as root of the host ({})", with_causes(.0))]
    Permission(aya::EbpfError),
    /// A map cannot be read or written.
    #[error("map {name}: {source}")]
    Map {
        /// Name of the map.
        name: &'static str,
        /// Error of the BPF library.
        source: MapError,
    },
    /// The object lacks a map or a program of this name.
    #[error("the monitor's object has no {0}")]
    Missing(&'static str),
    /// None of the configured criteria found a hook; one line per hook.
    #[error("this kernel supports none of the configured criteria:\n{0}")]
    Blind(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
}

impl MonitorError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 64,
            Self::Permission(_) => 77,
            Self::Map { .. } | Self::Blind(_) if !rustix::process::geteuid().is_root() => 77,
            Self::Btf(_) | Self::Load(_) | Self::Blind(_) => 69,
            Self::Missing(_) => 70,
            Self::Map { .. } | Self::System { .. } => 71,
        }
    }
}

pub(super) fn at(name: &'static str) -> impl Fn(MapError) -> MonitorError {
    move |source| MonitorError::Map { name, source }
}

pub(super) fn system(what: &'static str, source: io::Error) -> MonitorError {
    MonitorError::System { what, source }
}
