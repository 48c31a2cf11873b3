// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records what the criteria judge: busy intervals of CPUs and block devices, transmitted packets,
//! page-ins and page-outs.
//!
//! [`Recorder`] (programs in the kernel, a ring buffer, a thread that empties it) → [`Writer`] →
//! file → [`Reader`] → [`Event`]. The file's format: docs/record-format.md.

mod abi;
mod bytes;
mod end;
mod error;
mod event;
mod header;
mod programs;
mod reader;
mod recorder;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

pub use bytes::RECORD_BYTES;
pub use error::{ReadError, RecordError};
pub use event::{Event, Interval, Kind, NetClass};
pub use header::{Header, SCHEMA, StopReason, Trailer, WatchedKinds};
pub use reader::{End, Reader};
pub use recorder::{Options, Recorder, Summary};
pub use writer::Writer;
