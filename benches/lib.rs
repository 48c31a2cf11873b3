// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that the suite and the benchmarks of single parts share.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod compiled;
pub mod events;
