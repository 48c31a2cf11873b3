// SPDX-License-Identifier: MIT OR Apache-2.0
//! The distribution of the requested delay.

use super::theory::{Asked, Source};
use crate::profile::quantile::{normal_cdf, normal_quantile};

/// Points of a distribution function: fine compared with any sample's Kolmogorov distance.
const GRID: usize = 8192;
/// The grid ends where one delay in 30,000 lies beyond: the last delays of a pareto would take all
/// of it.
const GRID_TAIL: f64 = 4.0;

/// Distribution function of the requested delay of probes.
#[derive(Debug, Clone)]
pub struct Cdf {
    low_ns: f64,
    step_ns: f64,
    below: Vec<f64>,
}

impl Cdf {
    /// Computes that of a sum of independent delays: of one direction, or of both for a round trip.
    pub fn of(ways: &[&Asked]) -> Self {
        let mut delays = vec![0.0];
        let points = if ways.len() > 1 { 600 } else { 65_536 };
        for way in ways {
            let each: Vec<f64> = match way.source {
                Source::Constant => vec![way.mean_ns],
                _ => (0..points)
                    .map(|i| {
                        way.delay_ns(normal_quantile((f64::from(i) + 0.5) / f64::from(points)))
                    })
                    .collect(),
            };
            delays = delays
                .iter()
                .flat_map(|a| each.iter().map(move |b| a + b))
                .collect();
        }
        delays.sort_by(f64::total_cmp);
        Self::of_sorted(&delays)
    }

    fn of_sorted(delays: &[f64]) -> Self {
        let tail = (delays.len() as f64 * normal_cdf(-GRID_TAIL)) as usize;
        let (low_ns, high) = (delays[0], delays[delays.len() - 1 - tail]);
        let step_ns = ((high - low_ns) / GRID as f64).max(f64::MIN_POSITIVE);
        let below = (0..=GRID)
            .map(|i| {
                let x = low_ns + i as f64 * step_ns;
                delays.partition_point(|d| *d <= x) as f64 / delays.len() as f64
            })
            .collect();
        Self {
            low_ns,
            step_ns,
            below,
        }
    }

    /// Returns the share of delays up to this one.
    pub fn at(&self, ns: f64) -> f64 {
        let place = (ns - self.low_ns) / self.step_ns;
        if place < 0.0 {
            return 0.0;
        }
        let i = place as usize;
        if i >= self.below.len() - 1 {
            return 1.0;
        }
        let (a, b) = (self.below[i], self.below[i + 1]);
        a + (b - a) * (place - i as f64)
    }

    /// Returns the share with the shortest delay: above 0 if only some packets are delayed.
    pub fn atom(&self) -> f64 {
        self.below[0]
    }

    /// Returns the delay below which this share of delays lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let i = self.below.partition_point(|b| *b < share);
        let Some((a, b)) = i.checked_sub(1).map(|h| (self.below[h], self.below.get(i))) else {
            return self.low_ns;
        };
        let part = b.map_or(0.0, |b| (share - a) / (b - a));
        self.low_ns + (i as f64 - 1.0 + part) * self.step_ns
    }
}
