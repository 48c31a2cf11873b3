// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the loss between two stations comes from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Position;
use super::grid::Grid;
use super::path::PathLoss;

/// A source of path loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// A model of the distance.
    Path(PathLoss),
    /// Computed before, between cells of an area.
    Grid(Arc<Grid>),
}

impl From<PathLoss> for Loss {
    fn from(path: PathLoss) -> Self {
        Self::Path(path)
    }
}

impl Loss {
    /// Returns the loss in dB between two positions over `distance_m`, for a carrier of `hz`. None:
    /// nothing gets there.
    pub(super) fn db(&self, ends: [Position; 2], distance_m: f64, hz: f64) -> Option<f64> {
        match self {
            Self::Path(path) => Some(path.db(distance_m, hz)),
            Self::Grid(grid) => grid.db(ends[0], ends[1]),
        }
    }
}
