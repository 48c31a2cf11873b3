// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contention monitor (package `emud-monitor`) as a command.

pub mod calibration;
pub mod session;
pub mod settings;
