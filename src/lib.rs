// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a real network interface behave like a described link.

pub mod abi;
pub mod doctor;
pub mod engine;
pub mod export;
pub mod histogram;
pub mod import;
pub mod lab;
pub mod link;
pub mod lock;
mod netem;
pub mod netlink;
pub mod observe;
pub mod page;
pub mod profile;
pub mod results;
pub mod run;
pub mod runtime;
pub mod scenario;
pub mod signals;
pub mod text;
pub mod verify;
pub mod watch;
