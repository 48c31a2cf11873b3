// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices, inside the kernel, that the host ran out of a resource: the result
//! of an emulation is worth nothing if the machine was the bottleneck.
//!
//! One way through the crate: [`config`] (what is contention) → [`Monitor`]
//! (programs in the kernel that judge it, at the event) → [`event`] (what was
//! noticed) → [`log`] (as lines). To find thresholds: [`record`] (what the criteria
//! judge, in a file) → [`calibrate`] (what thresholds would have made of it).

mod abi;
pub mod calibrate;
pub mod config;
pub mod criteria;
mod decode;
pub mod denied;
pub mod empty;
pub mod event;
mod hooks;
mod host;
pub mod log;
mod moments;
mod monitor;
mod names;
pub mod psi;
pub mod record;
mod swaps;

pub use config::Config;
pub use event::{Alarm, Clear, Event};
pub use monitor::{Emulated, Monitor, MonitorError};
