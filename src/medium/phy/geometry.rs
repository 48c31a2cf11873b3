// SPDX-License-Identifier: MIT OR Apache-2.0
//! What turns positions into who hears whom.

use serde::{Deserialize, Serialize};

use super::matrix::{Disk, Matrix, Position, Radio};

/// A model of propagation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Spread {
    /// By distance alone.
    Disk(Disk),
    /// By power and path loss.
    Radio(Radio),
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
    /// Returns who hears whom at these positions.
    pub fn matrix(&self, positions: &[Position]) -> Matrix {
        match &self.spread {
            Spread::Disk(disk) => Matrix::disk(positions, *disk, self.ber),
            Spread::Radio(radio) => Matrix::radio(positions, radio, self.ber),
        }
    }
}
