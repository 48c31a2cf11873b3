// SPDX-License-Identifier: GPL-2.0-only

use std::io;

use aya::EbpfError;
use aya::maps::MapError;

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("this kernel does not describe its types (BTF): {0}")]
    Btf(#[from] aya::BtfError),
    #[error("the recording programs were not taken: {0}")]
    Load(#[from] EbpfError),
    #[error("not one hook can be recorded here: {0}")]
    NoHook(String),
    #[error("no permission to load BPF programs; run as root")]
    Permission,
    #[error("the recording programs have no {0}")]
    Missing(&'static str),
    #[error("a map of the recording programs: {0}")]
    Map(#[from] MapError),
    #[error("a ring buffer of {0} bytes: it has to be a power of two, 4 KiB to 1 GiB")]
    RingSize(u64),
    #[error("cannot write the recording: {0}")]
    Write(#[source] io::Error),
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
    #[error("the recording thread ended by a panic")]
    Thread,
}

/// Why a file cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("not a recording of emud monitor record")]
    NotARecording,
    #[error("a recording of format {0}; this emud reads format {VERSION}", VERSION = super::reader::VERSION)]
    Version(u32),
    #[error("cut short inside its header: nothing was recorded")]
    CutInHeader,
    #[error("its header is damaged: {0}")]
    Header(String),
    #[error("damaged at byte {offset}: {problem}")]
    Damaged { offset: u64, problem: String },
}
