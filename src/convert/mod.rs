// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles from and to the formats of other tools.

pub mod export;
mod htb;
pub mod import;
mod netem;
mod tc_red;
