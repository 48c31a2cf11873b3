// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions by their CDFs, and tests of values against them.
//!
//! A Kolmogorov-Smirnov distance of 100,000 independent values is below 0.0062 with a
//! probability of 0.999.

use std::sync::Arc;

use emud::profile::Shape;
use emud::profile::quantile::{Table, density, moments_of, normal_cdf, table_x};

use super::*;

/// Standard errors that a figure may be off.
pub const ERRORS: f64 = 4.5;

/// A distribution by its standardised CDF.
pub struct Theory {
    pub name: &'static str,
    pub shape: Shape,
    /// Mean over standard deviation of the test.
    pub mean: f64,
    cdf: Box<dyn Fn(f64) -> f64>,
    /// How many standard deviations the mean is above the one in the profile: as in
    /// tc-netem, a table's own mean counts.
    offset: f64,
    /// Moments beyond the second exist.
    pub light: bool,
}

fn named(name: &'static str, distribution: Distribution, cdf: fn(f64) -> f64) -> Theory {
    Theory {
        name,
        shape: distribution.into(),
        mean: 10.0,
        cdf: Box::new(cdf),
        offset: 0.0,
        light: matches!(distribution, Distribution::Uniform | Distribution::Normal),
    }
}

fn pareto_cdf(x: f64) -> f64 {
    let r = 1.5 + 0.75f64.sqrt() * x;
    if r > 1.0 { 1.0 - r.powi(-3) } else { 0.0 }
}

/// A quarter normal and three quarters pareto, added and standardised: the mean of the
/// normal's CDF over the pareto's quantiles.
fn paretonormal_cdf(x: f64) -> f64 {
    const PARTS: u32 = 2000;
    let t = x * 0.625f64.sqrt();
    let one = |k: u32| {
        let u = (f64::from(k) + 0.5) / f64::from(PARTS);
        let pareto = ((1.0 - u).powf(-1.0 / 3.0) - 1.5) / 0.75f64.sqrt();
        normal_cdf((t - 0.75 * pareto) / 0.25)
    };
    (0..PARTS).map(one).sum::<f64>() / f64::from(PARTS)
}

/// Where `x` is among `values`, standardised.
fn empirical(name: &'static str, shape: Shape, mean: f64, values: &[f64]) -> Theory {
    let (m, s) = moments_of(values);
    let mut sorted: Vec<f64> = values.iter().map(|v| (v - m) / s).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    Theory {
        name,
        shape,
        mean,
        cdf: Box::new(move |x| sorted.partition_point(|v| *v <= x) as f64 / n),
        offset: m / s,
        light: true,
    }
}

/// A skewed table in tc-netem's form: sums of four exponentials, of whole numbers.
fn dist_values() -> Vec<f64> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((state >> 11) as f64 + 0.5) / 2f64.powi(53)
    };
    (0..4096)
        .map(|_| -(0..4).map(|_| uniform().ln()).sum::<f64>())
        .map(|sum| ((sum - 4.0) / 2.0 * 8192.0).round().min(32767.0) / 8192.0)
        .collect()
}

/// Two thirds about 20 ms, one third about 35 ms, as on a path that changes.
fn sample_values() -> Vec<f64> {
    (0..3000)
        .map(|k| f64::from(k * 7919 % 3000) / 3000.0)
        .map(|u| {
            if u < 0.667 {
                20.0 + 6.0 * u
            } else {
                29.0 + 12.0 * u * u
            }
        })
        .collect()
}

pub fn theories() -> Vec<Theory> {
    let table = |values: &[f64]| Shape::Table(Arc::new(Table::new(values).unwrap()));
    let (dist, samples) = (dist_values(), sample_values());
    let (mean, sd) = moments_of(&samples);
    let standard: Vec<f64> = samples.iter().map(|v| (v - mean) / sd).collect();
    let s = (0.25f64).ln_1p();
    vec![
        named("uniform", Distribution::Uniform, |x| {
            (0.5 + x / 12f64.sqrt()).clamp(0.0, 1.0)
        }),
        named("normal", Distribution::Normal, normal_cdf),
        named("pareto", Distribution::Pareto, pareto_cdf),
        named("paretonormal", Distribution::ParetoNormal, paretonormal_cdf),
        Theory {
            name: "lognormal",
            shape: Shape::LogNormal,
            mean: 2.0,
            cdf: Box::new(move |x| {
                normal_cdf(((1.0 + 0.5 * x).max(1e-300).ln() + 0.5 * s) / s.sqrt())
            }),
            offset: 0.0,
            light: true,
        },
        empirical("a table", table(&dist), 10.0, &dist),
        empirical("samples", table(&standard), mean / sd, &standard),
    ]
}

impl Theory {
    /// Of delays with this standard deviation.
    pub fn mean_ns(&self, sd: f64) -> f64 {
        (self.mean * sd).trunc() + self.offset * sd
    }

    /// Mean and deviation of the table that the classifier runs are the configured ones to 1e-4,
    /// independent of a sample of a long tail.
    pub fn check_table(&self, b: &Bench, sd: f64) {
        let table = b.maps.table_of(0, abi::EMUD_UP).unwrap();
        // Lines between the points, with eight samples on each.
        let places: Vec<(f64, f64)> = (0..8 * 4096)
            .map(|k| (k / 8, (f64::from(k as u32 % 8) + 0.5) / 8.0))
            .map(|(i, u)| {
                let (from, to) = (table.delay_ns[i] as f64, table.delay_ns[i + 1] as f64);
                (
                    density(table_x(i) + u / 256.0) / 2048.0,
                    from + (to - from) * u,
                )
            })
            .collect();
        let weighted =
            |f: &dyn Fn(f64) -> f64| -> f64 { places.iter().map(|(w, d)| w * f(*d)).sum() };
        let mean = weighted(&|d| d);
        let got = weighted(&|d| (d - mean).powi(2)).sqrt();
        let off = (mean - self.mean_ns(sd)).abs() / sd;
        assert!(
            off < 1e-4,
            "{}: the table's mean is off by {off} sd",
            self.name
        );
        assert!(
            (got / sd - 1.0).abs() < 1e-4,
            "{}: the table's sd is {got}",
            self.name
        );
    }

    /// Kolmogorov-Smirnov distance of standardised values; of 2000 points, between two of
    /// which there are 50 of 100,000 values.
    pub fn distance(&self, values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        (0..n)
            .step_by((n / 2000).max(1))
            .map(|i| {
                let below = sorted.partition_point(|v| *v <= sorted[i]);
                (below as f64 / n as f64 - (self.cdf)(sorted[i])).abs()
            })
            .fold(0.0, f64::max)
    }

    /// Mean and standard deviation of what is cut off above at `cap`, from the CDF alone:
    /// E min(X, c) = c - integral F, E min(X, c)^2 = c^2 - 2 integral x F.
    fn cut_moments(&self, cap: f64) -> (f64, f64) {
        const STEPS: u32 = 4000;
        let low = -6.0;
        let h = (cap - low) / f64::from(STEPS);
        let (mut first, mut second) = (cap, cap * cap);
        for k in 0..STEPS {
            let x = low + (f64::from(k) + 0.5) * h;
            let f = (self.cdf)(x);
            first -= f * h;
            second -= 2.0 * x * f * h;
        }
        (first, (second - first * first).sqrt())
    }

    /// The value that one in a thousand exceeds.
    fn cap(&self) -> f64 {
        let (mut low, mut high) = (0.0, 1000.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if (self.cdf)(middle) < 0.999 {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// `values` are independent, of this distribution with this mean and deviation.
    pub fn check(&self, values: &[f64], mean: f64, sd: f64) {
        let name = self.name;
        let mut x: Vec<f64> = values.iter().map(|v| (v - mean) / sd).collect();
        let (got, _) = moments(&x);
        let n = x.len() as f64;
        // Of the mean itself 1 %, of the deviation far less.
        assert!(
            got.abs() < ERRORS / n.sqrt(),
            "{name}: mean off by {got} sd"
        );
        assert!(got.abs() < 0.01 * mean / sd, "{name}: mean off by {got} sd");
        let d = self.distance(&x);
        assert!(d < 0.01, "{name}: KS {d}");
        // The sample deviation of a pareto with shape 3 has no finite error: its fourth moment is
        // infinite. So what is above the 99.9 % quantile counts as that, here and in theory; the
        // tail beyond is the table's, which has separate tests.
        let (cut_mean, cut_sd) = if self.light {
            (0.0, 1.0)
        } else {
            let cap = self.cap();
            x.iter_mut().for_each(|v| *v = v.min(cap));
            self.cut_moments(cap)
        };
        let (m, s) = moments(&x);
        let fourth = x.iter().map(|v| (v - m).powi(4)).sum::<f64>() / n;
        let error = ((fourth - s.powi(4)) / n).sqrt() / (2.0 * s);
        let off = (s - cut_sd).abs();
        println!(
            "{name}: {n} delays, mean off by {:.3} %, sd by {:.3} %, KS distance {d:.4}",
            100.0 * got * sd / mean,
            100.0 * (s / cut_sd - 1.0)
        );
        assert!(
            off < ERRORS * error,
            "{name}: sd {s} for {cut_sd}, error {error}"
        );
        assert!(
            !self.light || off < 0.01 * cut_sd,
            "{name}: sd {s} for {cut_sd}"
        );
        assert!(
            (m - cut_mean).abs() < ERRORS * cut_sd / n.sqrt(),
            "{name}: cut mean {m}"
        );
    }
}
