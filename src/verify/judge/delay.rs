// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the delay: mean, standard deviation and distribution.

use super::{Judge, LATE_SHARE, LEAST_PROBES};
use crate::profile::quantile::normal_quantile;
use crate::verify::cdf::Cdf;
use crate::verify::check::{Check, Unit, What, z_power};
use crate::verify::probe::Stream;
use crate::verify::simulate::{Chance, EDGES, latest_ns, moments};

/// Above this share the delays are those of this machine, not of the link.
const TOO_LATE_SHARE: f64 = 0.2;
/// Largest change of the distribution by the clamp that keeps the order (docs/design.md).
const CLAMP_SHARE: f64 = 0.003;

impl Judge<'_> {
    pub(super) fn delay(&self, stream: &Stream, cdf: &Cdf, chance: &Chance) -> Vec<Check> {
        let serialisation = self.serialisation_ns();
        let propagation: f64 = self.ways.iter().map(|w| w.mean_ns).sum();
        let variance: f64 = self.ways.iter().map(|w| w.sd_ns.powi(2)).sum();
        let mut checks = vec![
            self.check(What::DelayMean, Unit::Ns, propagation + serialisation),
            self.check(What::DelaySd, Unit::Ns, variance.sqrt()),
            self.check(What::DelayDistribution, Unit::Share, 0.0),
        ];
        let mut delays = stream.delays_ns();
        if delays.len() < LEAST_PROBES {
            let why = format!("only {} probes with a known delay arrived", delays.len());
            checks.iter_mut().for_each(|c| c.why = Some(why.clone()));
            return checks;
        }
        if self.late_share > TOO_LATE_SHARE {
            let late = self.late_share * 100.0;
            let why = format!("this machine released {late:.0} % of the packets late");
            checks.iter_mut().for_each(|c| c.why = Some(why.clone()));
            return checks;
        }
        delays.sort_by(f64::total_cmp);
        if self.varies() {
            let kept = delays.len() - self.beyond(&delays, cdf);
            self.random(&mut checks, &delays[..kept], serialisation, cdf, chance);
        } else {
            self.constant(&mut checks, &delays);
        }
        checks
    }

    /// Counts the delays that the link exceeds only once in 300,000: this machine paused, and a few
    /// pauses of 100 ms double the standard deviation. No more of them are excluded than the
    /// machine is allowed (of the delayed packets, if only a share is delayed), so a link that is
    /// too late still counts.
    pub(in crate::verify) fn beyond(&self, sorted: &[f64], cdf: &Cdf) -> usize {
        let latest = latest_ns(&self.ways) + self.serialisation_ns() + self.resolution_ns;
        let beyond = sorted.len() - sorted.partition_point(|d| *d <= latest);
        let most = self.late_allowed() * (1.0 - cdf.atom()) * sorted.len() as f64;
        if beyond as f64 > most || !self.varies() {
            return 0;
        }
        beyond
    }

    fn late_allowed(&self) -> f64 {
        LATE_SHARE + self.late_share
    }

    /// Decides the checks that are subject to chance.
    fn random(
        &self,
        checks: &mut [Check],
        sorted: &[f64],
        serialisation: f64,
        cdf: &Cdf,
        chance: &Chance,
    ) {
        let (mean, sd) = moments(sorted);
        let r = self.resolution_ns;
        let asked = checks[0].asked;
        let off = chance.mean_ns;
        let propagation = asked - serialisation;
        let around = (
            mean - (off.high - propagation) - r,
            mean + (propagation - off.low) + r,
        );
        checks[0].decide(mean, around);
        checks[0].notices = Some(off.high + serialisation + r + z_power() * off.sd());
        // The spread of a sample's sd is proportional to the sd.
        let asked = checks[1].asked;
        let scale = &chance.sd_ns;
        if scale.low > 0.0 {
            let around = ((sd - r) * asked / scale.high, (sd + r) * asked / scale.low);
            checks[1].decide(sd, around);
            let least = asked - z_power() * (asked / scale.mean()) * scale.sd();
            checks[1].notices = (least > 0.0).then(|| (scale.high + r) * asked / least);
        } else {
            // By chance all of them have the same delay.
            checks[1].why = Some("too few probes are delayed".to_owned());
        }
        let allowed = chance.ks.high + self.late_allowed() + CLAMP_SHARE;
        checks[2].decide_up_to(self.distance(sorted, serialisation, cdf), allowed);
        checks[2].notices = Some(allowed + z_power() * chance.ks.sd());
    }

    /// Deviations are due to the machine: medians reduce the effect of a pause.
    fn constant(&self, checks: &mut [Check], sorted: &[f64]) {
        let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
        let (median, r) = (at(0.5), self.resolution_ns);
        checks[0].decide(median, (median - r, median + r));
        checks[0].notices = Some(checks[0].asked + 2.0 * r);
        // As the sd of a normal distribution.
        let sd = (at(0.95) - at(0.05)) / (2.0 * normal_quantile(0.95));
        checks[1].decide(sd, ((sd - r).max(0.0), sd + r));
        checks[1].notices = Some(2.0 * r);
        let off = |d: &&f64| (**d - checks[0].asked).abs() > r;
        let share = sorted.iter().filter(off).count() as f64 / sorted.len() as f64;
        checks[2].decide_up_to(share, self.late_allowed());
        checks[2].notices = Some(2.0 * self.late_allowed());
    }

    /// Returns the Kolmogorov distance at the edges of the simulation; a delay may be too long by the
    /// resolution.
    fn distance(&self, sorted: &[f64], serialisation: f64, cdf: &Cdf) -> f64 {
        let first = (cdf.atom() * EDGES as f64) as usize;
        (first + 1..=EDGES)
            .map(|i| {
                let share = i as f64 / EDGES as f64;
                let edge = cdf.quantile(share);
                let below = sorted.partition_point(|d| d - serialisation <= edge) as f64;
                let below = below / sorted.len() as f64;
                let at_least = cdf.at(edge - self.resolution_ns);
                (below - share).max(at_least - below)
            })
            .fold(0.0, f64::max)
    }
}
