// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io;

use aya::EbpfError;
use aya::maps::MapError;

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel's types cannot be read.
    #[error("cannot read the kernel's types (the kernel needs CONFIG_DEBUG_INFO_BTF): {0}")]
    Btf(#[from] aya::BtfError),
    /// The recording programs cannot be loaded.
    #[error("cannot load the recording programs: {0}")]
    Load(#[from] EbpfError),
    /// None of the hooks works; one reason per hook.
    #[error("this kernel supports none of the recording hooks: {0}")]
    NoHook(String),
    /// The process lacks the permission to load BPF programs.
    #[error("no permission to load BPF programs; run as root of the host")]
    Permission,
    /// The object lacks a map or a program of this name.
    #[error("the recording programs have no {0}")]
    Missing(&'static str),
    /// A map cannot be read or written.
    #[error("cannot use a map of the recording programs: {0}")]
    Map(#[from] MapError),
    /// Invalid size of the ring buffer in bytes.
    #[error("invalid size of the ring buffer \"{0}\": must be a power of two from 4 KiB to 1 GiB")]
    RingSize(u64),
    /// The file cannot be written.
    #[error("cannot write the recording: {0}")]
    Write(#[source] io::Error),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The recording thread panicked.
    #[error("the recording thread ended by a panic")]
    Thread,
}

/// Why a file cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file does not begin like a recording.
    #[error("not a recording of emud monitor record")]
    NotARecording,
    /// The format has this unsupported version.
    #[error("unsupported format {0} of a recording: this version of emud reads format {VERSION}", VERSION = super::header::VERSION)]
    Version(u32),
    /// The file ends inside the header.
    #[error("the file ends inside its header: nothing was recorded")]
    CutInHeader,
    /// The header has this problem.
    #[error("the header is damaged: {0}")]
    Header(String),
    /// A record or the trailer is damaged.
    #[error("damaged at byte {offset}: {problem}")]
    Damaged {
        /// Offset of the damage in bytes.
        offset: u64,
        /// Description of the damage.
        problem: String,
    },
}

const EX_USAGE: u8 = 64;
const EX_DATAERR: u8 = 65;
const EX_UNAVAILABLE: u8 = 69;
const EX_SOFTWARE: u8 = 70;
const EX_OSERR: u8 = 71;
const EX_IOERR: u8 = 74;
const EX_NOPERM: u8 = 77;

impl RecordError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::RingSize(_) => EX_USAGE,
            Self::Btf(_) | Self::NoHook(_) => EX_UNAVAILABLE,
            Self::Missing(_) | Self::Thread => EX_SOFTWARE,
            Self::Load(_) | Self::Map(_) | Self::System { .. } => EX_OSERR,
            Self::Write(_) => EX_IOERR,
            Self::Permission => EX_NOPERM,
        }
    }
}

impl ReadError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io(_) => EX_IOERR,
            _ => EX_DATAERR,
        }
    }
}
