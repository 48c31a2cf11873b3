// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[medium.NAME]`: a radio channel that several nodes share.

mod cells;
mod file;
mod gateways;
mod keys;
mod kinds;
mod mobility;
mod place;
mod propagation;
mod queue;

pub(crate) use gateways::join;
pub(crate) use keys::{MediumTable, MediumTableDraft, RouteChoice};
pub(crate) use kinds::metres;
pub(crate) use mobility::Mobility;
pub use place::{Medium, Station};
pub(crate) use place::{connect, interfaces_are_apart, media};
pub(crate) use propagation::load_grid;

use crate::text::Located;

/// A medium of a file.
#[derive(Debug)]
pub(crate) struct MediumDraft {
    /// The interface of its stations.
    pub name: Located<String>,
    pub table: MediumTable,
    pub mobility: Option<Mobility>,
}

/// A topology whose nodes are stations of a medium, in metres from each other.
#[derive(Debug, Clone)]
pub(crate) struct OnAir {
    pub medium: Located<String>,
    pub spacing_m: f64,
}
