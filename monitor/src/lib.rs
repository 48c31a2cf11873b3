// SPDX-License-Identifier: GPL-2.0-only
//! Notices, inside the kernel, that the host ran out of a resource: the result
//! of an emulation is worth nothing if the machine was the bottleneck.
//!
//! One way through the crate: [`config`] (what is contention) → [`Monitor`]
//! (programs in the kernel that judge it, at the event) → [`event`] (what was
//! noticed).

pub mod calibrate;
pub mod config;
pub mod event;
mod monitor;
pub mod record;

pub use config::Config;
pub use event::{Alarm, Clear, Event};
pub use monitor::{Monitor, MonitorError};
