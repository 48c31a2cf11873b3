// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: TOML text to a validated [`Profile`].
//!
//! The data flow is: text -> [`crate::text`] (TOML with positions) -> `draft` (the keys of each
//! direction, later over earlier) -> `check` -> [`Profile`]. The format is in docs/profile.md.

mod alter;
pub(crate) mod aqm;
mod background;
mod base;
mod bottleneck;
mod bottleneck_plan;
mod bottleneck_read;
mod change;
mod check;
mod classes;
mod delay;
mod delay_check;
mod delay_read;
mod distance;
mod draft;
mod error;
mod file;
pub mod hosts;
mod keys;
pub(crate) mod kinds;
mod links;
mod located;
mod loss;
mod loss_read;
pub mod loss_runs;
mod matrix;
mod model;
pub mod over_time;
mod pairs;
mod pattern;
mod phase;
mod phase_read;
mod print;
pub mod quantile;
mod queue;
mod queueing;
mod read;
mod reordering;
pub mod rule_keys;
mod rule_kinds;
mod rules;
mod rules_read;
mod shared;
pub mod shipped;
mod slot;
mod spare;
mod states;
mod trace;
mod trace_figures;
mod trace_file;
mod trace_read;
mod wire;
mod words;

pub use crate::text::{
    MAX_BYTES, Mistake, Mistakes, Nanoseconds, Percent, Rate, TextError, Time, UnitError, Word,
};
pub use alter::{ChecksumAfter, Corrupt, Duplicate, MAX_CORRUPT_BITS};
pub use aqm::{Aqm, Ared, CoDel, Length, Pi, Pie, Red, Rem, Rio};
pub use background::Background;
pub(crate) use bottleneck::parts as parts_of_class;
pub use bottleneck::{Bottleneck, ServiceClass};
pub use change::direction_of;
pub use delay::{Delay, Jitter};
pub use error::ProfileError;
pub use links::{MAX_LINKS, NamedLink};
pub use loss::{LinkState, Loss, LossModel, Model, Stage};
pub use matrix::{MAX_PAIRS, Matrix, Pair};
pub use model::*;
pub use pattern::{MAX_PATTERN, Pattern, PatternError};
pub use phase::{Phase, Phases};
pub use queue::Limit;
pub use queueing::{DEFAULT_QUEUE_PACKETS, Queue};
pub use reordering::Reordering;
pub use rules::{Match, Per, Ports, Rule, Target};
pub use slot::Slot;
pub use spare::{Connection, Spare};
pub use states::{Chain, STATES_IN_A_ROUND};
pub use trace::{MAX_ROWS, Summary, Trace, TraceRow, TraceSource};
pub use wire::{Cells, PACKET_BYTES, Wire};
pub use words::{Distribution, Neighbours, Offload, Reorder, Shape};

pub(crate) use trace_figures::{
    UNLIMITED_BYTES, delay as delay_with_trace, figures, longest_queue, own_mean,
    rate as rate_with_trace,
};
pub(crate) use trace_file::mahimahi as read_mahimahi;
