// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor's configuration: the meaning of files and flags, and the messages for meaningless
//! ones.

mod meaning;
mod mistakes;
mod random;
