// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what the monitor notices to the lines that people and programs read: an observation that
//! is fed by the test, its socket, its metrics and its commands; and the real one. Needs
//! root and python3-jsonschema, Debian's validator.

mod commands;
mod kinds;
mod lines;
mod run;
mod socket;
