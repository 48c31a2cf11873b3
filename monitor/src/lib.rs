// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects, inside the kernel, that the host ran out of a resource: the results of an emulation are
//! invalid if the machine was the bottleneck.
//!
//! The data flow of the crate: [`config`] (what is contention) → [`Monitor`] (programs in the
//! kernel that judge it at each event) → [`event`] (what they detected) → [`log`] (as lines). To
//! find thresholds: [`record`] (what the criteria judge, in a file) → [`calibrate`] (the result of
//! thresholds on it).

#![warn(missing_docs)]

mod abi;
pub mod calibrate;
mod candidates;
pub mod config;
pub mod criteria;
mod decode;
pub mod denied;
pub mod empty;
pub mod event;
mod hooks;
mod host;
mod loader;
pub mod log;
mod moments;
mod monitor;
mod names;
pub mod psi;
pub mod record;
mod skipped;
mod swaps;
mod terms;

/// Block devices that are watched at a time.
pub const DISKS: u32 = abi::EMUD_DISKS;
/// Number of pending requests that are followed at a time.
pub const PENDING: u32 = abi::EMUD_PENDING;

pub use config::Config;
pub use event::{Alarm, Clear, Event};
pub use loader::loader;
pub use monitor::{Emulated, Monitor, MonitorError};
