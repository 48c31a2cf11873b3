// SPDX-License-Identifier: MIT OR Apache-2.0
//! Path loss by distance.
//!
//! Sources: Friis 1946; two-ray ground as in ns-2 (free space up to the crossover distance, the
//! fourth power beyond it); log-distance with its reference at 1 m (Rappaport, Wireless
//! Communications, 2002, 4.9).

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

pub(super) const LIGHT_M_PER_S: f64 = 299_792_458.0;
/// Below this distance in metres every model stays as it is there.
const NEAREST_M: f64 = 1.0;

/// A model of path loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum PathLoss {
    /// Friis: 20 dB for ten times the distance.
    FreeSpace,
    /// Antennas at this height above ground, m.
    TwoRay {
        /// Height of both antennas.
        height_m: f64,
    },
    /// As free space up to 1 m, then with this exponent.
    LogDistance {
        /// 2 is free space.
        exponent: f64,
    },
}

impl PathLoss {
    /// Returns the loss in dB over a distance, for a carrier of `hz` and antennas without gain.
    pub fn db(self, distance_m: f64, hz: f64) -> f64 {
        let d = distance_m.max(NEAREST_M);
        match self {
            Self::FreeSpace => free_space_db(d, hz),
            Self::TwoRay { height_m } => {
                let crossover = 4.0 * PI * height_m * height_m * hz / LIGHT_M_PER_S;
                match d < crossover {
                    true => free_space_db(d, hz),
                    false => 40.0 * libm::log10(d) - 40.0 * libm::log10(height_m),
                }
            }
            Self::LogDistance { exponent } => {
                free_space_db(NEAREST_M, hz) + 10.0 * exponent * libm::log10(d / NEAREST_M)
            }
        }
    }

    /// Returns the distance in metres at which the loss exceeds `budget_db`; 0: it does so at any distance.
    pub fn reach_m(self, budget_db: f64, hz: f64) -> f64 {
        if self.db(0.0, hz) > budget_db {
            return 0.0;
        }
        let (mut low, mut high) = (NEAREST_M, 1e9);
        for _ in 0..100 {
            let middle = libm::sqrt(low * high);
            match self.db(middle, hz) < budget_db {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}

fn free_space_db(d: f64, hz: f64) -> f64 {
    20.0 * libm::log10(4.0 * PI * d * hz / LIGHT_M_PER_S)
}
