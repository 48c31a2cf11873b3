// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of each packet between two captures.

mod capture;
mod pairing;

pub use capture::{Capture, CaptureError, Seen, read};
pub use pairing::{Fate, Listed, Listing, Merged, pair};
