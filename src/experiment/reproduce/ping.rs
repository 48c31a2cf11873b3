// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far what ping says may be from theory.

use super::counts::Counts;
use super::echoed::Echoed;
use super::figure::{Figure, Tolerance};

/// Most that the host adds to a round trip, ms.
const HOST_MS: f64 = 0.5;
/// A correct link is outside this number of standard errors in 1 of 15,000 runs.
const ERRORS: f64 = 4.0;

pub(super) const LACKS: &str =
    "round trips need the program ping: install the Debian package iputils-ping";

/// A round trip over two links of a class: uniform delays, independent from packet to packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// Delay of each direction, ms.
    pub delay_ms: f64,
    /// Most difference from it.
    pub jitter_ms: f64,
    /// Share lost in each direction.
    pub loss: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    pub loss_percent: f64,
    pub mean_ms: f64,
    pub sd_ms: Option<f64>,
}

impl Class {
    /// Returns loss, mean and standard deviation of a node's pings.
    pub fn figures(
        self,
        title: &str,
        published: Published,
        counts: &Counts,
        node: &str,
    ) -> [Figure; 3] {
        let pings = counts.echoed(node);
        let of = |n: fn(&Echoed) -> f64| pings.map(n);
        let sent = of(|p| p.sent as f64).unwrap_or(1.0);
        let loss = 1.0 - (1.0 - self.loss).powi(2);
        // The sum of two uniform delays has a kurtosis of 2.4.
        let sd = self.jitter_ms * (2.0f64 / 3.0).sqrt();
        let of_loss = (loss * (1.0 - loss) / sent).sqrt();
        let of_mean = sd / sent.sqrt();
        let of_sd = sd * (1.4 / (4.0 * sent)).sqrt();
        let figure = |name: &str, unit, theory: f64, within: f64, measured| {
            let figure = Figure::new(format!("{title}: {name}"), unit).theory(theory);
            let figure = figure.within(Tolerance::Absolute(within));
            figure.measured(measured, Some(counts.verdict))
        };
        let lost = of(|p| 100.0 * (p.sent.saturating_sub(p.answered)) as f64 / p.sent as f64);
        let lost = figure("loss", "%", 100.0 * loss, 100.0 * ERRORS * of_loss, lost);
        let within = ERRORS * of_mean + HOST_MS;
        let mean = figure("mean", "ms", 2.0 * self.delay_ms, within, of(|p| p.mean_ms));
        let sd = figure(
            "standard deviation",
            "ms",
            sd,
            ERRORS * of_sd + HOST_MS,
            of(|p| p.sd_ms),
        );
        [
            // All echo requests between two addresses are one flow, and losses do not depend on times.
            lost.published(published.loss_percent).seeded(),
            mean.published(published.mean_ms),
            match published.sd_ms {
                Some(ms) => sd.published(ms),
                None => sd,
            },
        ]
    }
}
