// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the monitor's events to lines for people and programs: an observation whose events come
//! from the test, its socket, its metrics and its commands; and the real one. Needs root and
//! python3-jsonschema, Debian's validator.

mod commands;
mod kinds;
mod lines;
mod run;
mod socket;

pub use socket::MONITOR_COUNTERS;
