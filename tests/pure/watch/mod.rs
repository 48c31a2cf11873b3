// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the monitor is told to watch for: what files and flags mean, and what is
//! said about those that mean nothing.

mod meaning;
mod mistakes;
mod random;
