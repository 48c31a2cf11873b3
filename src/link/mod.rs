// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel runs: compile a profile, load it, read it back, change it.

pub mod compile;
pub mod datapath;
pub mod quantile;
pub mod shapes;
