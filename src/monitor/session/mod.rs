// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the contention monitor: passes its events to users and programs.
//!
//! Two threads, so that no client can delay the monitor. The first, with real-time priority, takes
//! events from the kernel ([`Source`]) and writes lines ([`Observation`]). The second ([`MonitorSide`])
//! serves the control socket and the metrics, searches for emulated links and runs commands; it
//! only sends the first one short requests.
//!
//! For `emud run` an [`Experiment`] keeps both in the background: all lines go to one sorted log,
//! and the events are judged at the end.

mod at_end;
pub mod client;
mod control;
mod emulated;
mod ended;
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

pub use control::{Allowed, BoundSocket};
pub use ended::{Ended, Measures, Stop};
pub use error::{ObserveError, StartError};
pub use experiment::Experiment;
pub use observation::{Observation, Request, Setup, Until};
pub use prepare::{Socket, monitor, pressure, sockets};
pub use punctual::punctual;
pub use report::Finished;
pub use side::{Ends, MonitorSide, Remote, SideParts};
pub use source::Source;
pub use witness::Witness;
