// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries thresholds on recordings: how often each criterion would have raised an alarm, the
//! distributions of busy intervals and windowed sums, and the thresholds that they suggest.
//!
//! [`crate::record::Reader`] → [`replay()`] → [`Findings`] → [`Suggestion`]. Memory is bounded by
//! the content of one window and the number of CPUs and devices, not by the file.

mod crossing;
mod devices;
mod distribution;
mod findings;
mod intervals;
mod reorder;
mod replay;
mod suggest;
#[cfg(test)]
mod tests;
mod window;

pub use distribution::{Distribution, RELATIVE_ERROR};
pub use findings::{Findings, Measure, Tally};
pub use replay::{CalibrateError, replay};
pub use suggest::{DEFAULT_MARGIN, Outcome, Suggestion, in_threshold_unit, suggest};
