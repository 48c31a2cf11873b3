// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the signals between stations from their positions.

use serde::{Deserialize, Serialize};

use super::Position;
use super::matrix::{Disk, Matrix, Radio};
use super::wire::Wire;

/// A model of propagation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Spread {
    /// By distance alone.
    Disk(Disk),
    /// By power and path loss.
    Radio(Radio),
    /// By pair, whatever the positions, with the bit errors of each pair.
    Wire(Wire),
}

/// Propagation and bit errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Geometry {
    /// How far signals reach.
    pub spread: Spread,
    /// The share of wrong bits of every frame that is strong enough, 0.0..=1.0.
    pub ber: f64,
}

impl Geometry {
    /// Returns the signals between stations at these positions.
    pub fn matrix(&self, positions: &[Position]) -> Matrix {
        match &self.spread {
            Spread::Disk(disk) => Matrix::disk(positions, *disk, self.ber),
            Spread::Radio(radio) => Matrix::radio(positions, radio, self.ber),
            Spread::Wire(wire) => wire.matrix(positions.len()),
        }
    }

    /// Returns whether its figures are possible with this many modes, if they are not those of a scenario.
    pub fn is_consistent(&self, modes: usize) -> bool {
        match &self.spread {
            Spread::Disk(_) => true,
            Spread::Radio(radio) => radio.is_consistent(modes),
            Spread::Wire(wire) => wire.is_consistent(),
        }
    }

    /// Returns the distance in metres up to which data in a mode is decoded, without bit errors and
    /// interference; none: it depends on more than the distance.
    pub fn range_m(&self, mode: usize) -> Option<f64> {
        match &self.spread {
            Spread::Disk(disk) => Some(disk.range_m),
            Spread::Radio(radio) => radio.reach_m(radio.weakest_dbm(mode)),
            Spread::Wire(_) => None,
        }
    }

    /// Returns the distance in metres up to which a transmission keeps the medium busy; none: as
    /// [`range_m`](Self::range_m).
    pub fn sense_m(&self) -> Option<f64> {
        match &self.spread {
            Spread::Disk(disk) => Some(disk.sense_m),
            Spread::Radio(radio) => radio.reach_m(radio.sense_dbm),
            Spread::Wire(_) => None,
        }
    }
}
