// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in force, read back from the kernel.

pub mod counters;
pub mod link;
pub mod list;
pub mod matching;
pub mod overlap;
pub mod report;
pub mod service;
pub mod time;
