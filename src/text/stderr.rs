// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages on standard error.

use std::fmt::Display;
use std::io::{self, Write};

use super::printable;

/// Writes a line to standard error. A reader that closed the pipe early (`2>&1 | head`) misses it,
/// which is no reason to end: `eprintln` panics then.
pub fn to_stderr(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", printable(&line.to_string()));
}
