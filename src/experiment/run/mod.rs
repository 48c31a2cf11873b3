// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries out an experiment: its network, its programs, its log and its verdict.
//!
//! [`conduct`] carries out a [`crate::experiment::scenario::Plan`] in three phases. *Preparation*:
//! nodes, wires, links, services. *Measurement*: the programs under test. *Clean-up*, whatever the
//! result of the others. Every event goes to the observing thread
//! ([`crate::monitor::session::Experiment`]) as a line; only this thread writes the log and judges.

mod artefacts;
mod collect;
mod conductor;
mod counts;
mod deadline;
mod describe;
mod error;
mod folders;
mod group;
pub mod in_place;
mod links;
mod location;
mod media;
mod media_watch;
mod network;
mod output;
mod phases;
mod process;
mod programs;
mod progress;
mod sampler;
mod seeds;
mod sets;
mod settings;
mod stations;
mod terminal;
mod together;
mod user;
mod verdict;

pub use collect::collect;
pub use conductor::{Outcome, conduct};
pub use error::RunError;
pub use progress::Progress;
pub use seeds::{derived, of_repeat};
pub use settings::{ExitCode, Settings, numbered};
pub use together::{ChangeLink, Heard, Said, Set, Together};
pub use user::User;
pub use verdict::{exit_code, exits, span, text};
