// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[medium.NAME]`: a radio channel that several nodes share; `[segment.NAME]`: a wire.

mod cells;
mod file;
mod keys;
mod kinds;
mod media;
mod mobility;
mod propagation;
mod queue;
mod rate;
mod segment;

pub(crate) use cells::check as within_grid;
pub(crate) use keys::{MediumTable, MediumTableDraft, RouteChoice};
pub(crate) use kinds::{Spacing, its_rates};
pub use media::{Medium, Station};
pub(crate) use mobility::Mobility;
pub(crate) use propagation::load_grid;
pub(crate) use rate::RateChoice;
pub(crate) use segment::{SegmentTable, SegmentTableDraft};

use crate::text::Located;

/// A medium of a file.
#[derive(Debug)]
pub(crate) struct MediumDraft {
    /// The interface of its stations.
    pub name: Located<String>,
    pub table: MediumTable,
    pub mobility: Option<Mobility>,
    /// Its figures as a wire; none: a radio channel.
    pub segment: Option<SegmentTable>,
}

/// Returns the name of the kind in messages: "segment" or "medium".
pub(crate) fn word(segment: Option<&SegmentTable>) -> &'static str {
    match segment {
        Some(_) => "segment",
        None => "medium",
    }
}

/// A topology whose nodes are stations of a medium, in metres from each other.
#[derive(Debug, Clone)]
pub(crate) struct OnAir {
    pub medium: Located<String>,
    pub spacing_m: f64,
}
