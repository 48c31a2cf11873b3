// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need a kernel and root, but no quiet machine: the classifier under BPF_PROG_TEST_RUN,
//! netlink, the holder on a TAP, commands. Tests run at the same time, each in separate namespaces.
//!
//! Tests that judge milliseconds, and statistics that take long, are ignored except in the full
//! run.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod classifier;
mod commands;
mod experiment;
mod hold;
mod json;
mod log_live;
mod netlink;
mod record;
mod verify;
