// SPDX-License-Identifier: GPL-2.0-only
//! Profiles: TOML text to a validated [`Profile`].
//!
//! One way only: text -> `value` (TOML with places) -> `draft` (what was said about each direction,
//! later over earlier) -> `check` -> [`Profile`]. The format is in docs/profile.md.

mod change;
mod check;
mod draft;
mod error;
mod keys;
mod model;
mod print;
mod read;
pub mod shipped;
mod units;
mod value;
mod words;

pub use error::{Mistake, Mistakes, ProfileError};
pub use model::*;
pub use read::MAX_BYTES;
pub use units::{Nanoseconds, Percent, Rate, Time, UnitError};
pub use words::Word;
