// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the contention monitor: what happens between its events and the people and
//! programs that want to know.
//!
//! Two threads, so that nobody who asks can keep the monitor from what it notices. The
//! first, with real-time priority, takes events from the kernel ([`Source`]) and writes
//! lines ([`Observation`]). The second ([`Side`]) serves the control socket and the metrics, looks
//! for emulated links and runs commands; it only sends the first one short requests.
//!
//! For `emud run` an [`Experiment`] keeps both in the background: its lines and those of others
//! go to one log, sorted, and what was noticed is judged at the end.

pub mod client;
mod control;
mod emulated;
mod error;
pub mod experiment;
mod judge;
mod metrics;
mod observation;
mod observing;
mod on_alarm;
mod prepare;
mod punctual;
mod report;
mod side;
mod source;
mod tally;
mod witness;

pub use control::{Allowed, Place};
pub use error::{ObserveError, StartError};
pub use experiment::Experiment;
pub use observation::{Observation, Request, Setup, Stop, Until};
pub use prepare::{Socket, monitor, pressure, sockets};
pub use punctual::punctual;
pub use report::{Ended, Finished, Measures};
pub use side::{Ends, Remote, Side, SideParts};
pub use source::Source;
pub use witness::Witness;
