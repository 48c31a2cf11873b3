// SPDX-License-Identifier: GPL-2.0-only
//! Profiles: TOML text to a validated [`Profile`].
//!
//! One way only: text -> [`crate::text`] (TOML with places) -> `draft` (what was said about each direction,
//! later over earlier) -> `check` -> [`Profile`]. The format is in docs/profile.md.

mod change;
mod check;
mod draft;
mod error;
mod file;
mod keys;
mod model;
mod print;
mod queue;
mod read;
mod reordering;
pub mod shipped;
mod words;

pub use crate::text::{MAX_BYTES, Mistake, Mistakes, Nanoseconds, Percent, Rate, TextError, Time};
pub use crate::text::{UnitError, Word};
pub use error::ProfileError;
pub use model::*;
