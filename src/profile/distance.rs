// SPDX-License-Identifier: MIT OR Apache-2.0
//! `distance` of a delay: its mean as the propagation delay of a length of cable or path.
//!
//! It becomes the mean when it is read, so everything after the reader knows delays only.

use super::kinds::{Length, VelocityFactor};
use crate::text::{Distance as Metres, Located, Mistake, Time, Value, table};

/// Speed of light in vacuum, exact by the definition of the metre.
pub(super) const LIGHT_M_S: f64 = 299_792_458.0;
/// Of fibre: the core has a refractive index of about 1.5.
const FIBRE: f64 = 2.0 / 3.0;

table! {
    /// A length that packets propagate along.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Distance {
        /// Metres.
        length_m: f64 = 0.0, "length" as Length;
        /// Propagation speed as a share of that of light in vacuum.
        velocity_factor: f64 = FIBRE, "velocity-factor" as VelocityFactor;
    }
    struct DistanceDraft {}
}

impl Distance {
    pub(super) fn propagation_ns(self) -> f64 {
        self.length_m / (self.velocity_factor * LIGHT_M_S) * 1e9
    }
}

/// Returns the mistake for kilometres in place of a delay. Metres are none: `5m` is a misspelt `5ms`.
pub(super) fn instead_of_a_delay(value: &Located<Value>) -> Option<Mistake> {
    let Value::Text(text) = &value.value else {
        return None;
    };
    let text = text.trim();
    let Metres(length_m) = text.parse().ok().filter(|_| text.ends_with("km"))?;
    let distance = Distance {
        length_m,
        ..Distance::default()
    };
    let ns = distance.propagation_ns();
    let time = Time((ns.round() as u64).min(Time::MAX.0));
    let help = format!(
        "write delay = {{ distance = \"{text}\" }} for its propagation delay in fibre, {time}"
    );
    let title = format!("`{text}` is a distance");
    Some(Mistake::new(&value.at, title, help))
}
