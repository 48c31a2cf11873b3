// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a real network interface behave like a described link.
#![warn(missing_docs)]
// It panics if the reader has closed the pipe: text::to_stderr.
#![warn(clippy::print_stderr)]

pub mod abi;
pub mod bottleneck;
mod bpf;
pub mod catalogue;
pub mod container;
pub mod convert;
pub mod datapath;
pub mod experiment;
pub mod fleet;
pub mod histogram;
pub mod host;
pub mod medium;
pub mod metrics;
pub mod monitor;
mod mount;
pub mod netlink;
pub mod packets;
pub mod plot;
pub mod profile;
pub mod schema;
mod socket_option;
pub mod text;
pub mod top;
pub mod verify;
