// SPDX-License-Identifier: MIT OR Apache-2.0
//! The physical layer: standards, durations of frames, path loss, and the signals between stations.

mod energy;
mod geometry;
mod grid;
mod grid_read;
mod loss;
mod matrix;
mod path;
mod power;
mod standard;
mod timing;
mod wire;

pub use energy::Watts;
pub use geometry::{Geometry, Spread};
pub use grid::Grid;
pub use grid_read::GridError;
pub use loss::Loss;
pub(crate) use matrix::Row;
pub use matrix::{Disk, Matrix, Radio, Reach};
pub use path::PathLoss;
pub(crate) use power::{STRONGEST_AW, exceeds};
pub use power::{attowatts, dbm, ratio};
pub use standard::{STANDARDS, Standard};
pub use timing::Timing;
pub use wire::{Line, Wire};

/// Where a station is, in metres.
pub type Position = [f64; 2];
