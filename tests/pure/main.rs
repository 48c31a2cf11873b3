// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need neither privileges nor an interface: files, arguments, logs, pages.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bottleneck;
mod case;
mod completions;
mod contrib;
mod engines;
mod fleet;
mod house;
mod load;
mod log;
mod medium;
mod monitor;
mod packets;
mod profiles;
mod program;
mod qdisc;
mod report_page;
mod reproduction;
mod scenario;
mod schema;
mod watch;
