// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distances.

use std::str::FromStr;

use super::{QuantityKind, Unit, UnitError};

/// A distance in metres, with a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Distance(pub f64);

const KIND: QuantityKind = QuantityKind {
    name: "a distance",
    plural: "distances",
    units: &[Unit::decimal("m", 0), Unit::decimal("km", 3)],
    ignore_case: false,
    examples: "\"300km\", \"50m\", \"35786km\"",
    usual: "km",
};

impl FromStr for Distance {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        KIND.read(text).map(Self)
    }
}
