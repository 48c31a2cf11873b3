// SPDX-License-Identifier: MIT OR Apache-2.0
//! What counts as contention. A resource without a configuration is not watched.

pub use crate::criteria::{
    Alarms, Application, Basis, Class, Config, Cpu, Disk, Emulator, GroupBy, Memory, Network, Psi,
    Reporters,
};
