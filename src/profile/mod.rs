// SPDX-License-Identifier: GPL-2.0-only
//! Profiles: TOML text to a validated [`Profile`].

mod model;

pub use model::*;
