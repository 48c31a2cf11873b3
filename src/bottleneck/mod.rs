// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues in front of a wire that is too slow.

pub mod aqm;
