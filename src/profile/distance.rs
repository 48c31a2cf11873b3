// SPDX-License-Identifier: MIT OR Apache-2.0
//! `distance` of a delay: its mean as the propagation delay of a length of cable or path.
//!
//! It becomes the mean when it is read, so everything after the reader knows delays only.

use super::delay::DelayDraft;
use super::keys;
use super::kinds::{Length, VelocityFactor};
use crate::text::{
    Distance as Metres, Entry, Located, Mistake, Reader, Time, Value, is_none, table,
};

/// Speed of light in vacuum, exact by the definition of the metre.
const LIGHT_M_S: f64 = 299_792_458.0;
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
    fn propagation_ns(self) -> f64 {
        self.length_m / (self.velocity_factor * LIGHT_M_S) * 1e9
    }
}

impl Reader {
    /// Reads `distance`. It and `mean` are one slot: each replaces the other.
    pub(super) fn distance(&mut self, draft: &mut DelayDraft, entries: &[Entry]) {
        let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
        let Some(entry) = find("distance") else {
            return;
        };
        if is_none(&entry.value) {
            draft.mean_ns = None;
            return;
        }
        let before = self.mistakes.len();
        if find("mean").is_some() {
            let help = "keep one: the propagation delay of `distance` is the mean; to add other \
                        delays, write their sum as `mean`";
            let title = "both `mean` and `distance` are given";
            self.mistake(&entry.key.at, title, help);
        }
        let mut read = DistanceDraft::default();
        self.table(&mut read, &entry.value, ("distance", "length"), |key| {
            keys::unknown(key, &keys::DISTANCE)
        });
        if self.mistakes.len() > before {
            return;
        }
        let at = &entry.value.at;
        let Some(length) = &read.length_m else {
            let help = "write distance = { length = \"300km\" } or distance = \"300km\"";
            return self.mistake(at, "a distance without `length`", help);
        };
        let distance = read.values();
        let ns = distance.propagation_ns();
        if ns > Time::MAX.0 as f64 {
            let limit_km = (distance.velocity_factor * LIGHT_M_S * 3.6).floor();
            let help = format!(
                "the limit is a delay of an hour, \"{limit_km}km\" at this propagation speed"
            );
            return self.mistake(&length.at, "a distance of more than an hour", help);
        }
        draft.mean_ns = Some(Located {
            value: ns.round() as u64,
            at: at.clone(),
        });
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
