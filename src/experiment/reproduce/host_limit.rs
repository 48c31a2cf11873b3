// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that may need more than the host has: what the same programs do without emulation, and through a link that
//! does not limit their rate.

use super::counts::Counts;
use super::live::Variant;
use super::netem::Netem;
use super::report::number;
use super::{Bench, Figure, ReproduceError};

impl Bench<'_> {
    /// Returns a figure of this variant. If it is too small, or of a run that was not clean, a host that does less than
    /// it needs in these runs, too, is the reason.
    pub(super) fn or_beyond_host(
        &self,
        figure: Figure,
        variant: &Variant<'_>,
        value: impl Fn(&Counts) -> Option<f64>,
    ) -> Result<Figure, ReproduceError> {
        if !figure.is_missed() {
            return Ok(figure);
        }
        let mut set = variant.set.to_vec();
        set.push("rate=none");
        let bare = Variant {
            netem: Some(Netem::Bare),
            ..*variant
        };
        let unlimited = Variant {
            set: &set,
            ..*variant
        };
        for (without, variant) in [("emulation", bare), ("the link's rate", unlimited)] {
            let title = format!("{}, without {without}", variant.title);
            let variant = Variant {
                title: &title,
                ..variant
            };
            // The host lacks something if it does what it can.
            let counts = self.overloaded(&variant, &self.settings.config)?;
            if let Some(most) = value(&counts).filter(|most| figure.needs_more_than(*most)) {
                let why = format!(
                    "this host has {} {} without {without}",
                    number(most),
                    figure.unit
                );
                return Ok(figure.beyond_host(most, why));
            }
        }
        Ok(figure)
    }
}
