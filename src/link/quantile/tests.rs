// SPDX-License-Identifier: GPL-2.0-only
//! Against numbers from elsewhere and by methods other than the ones tested.

use super::*;
use crate::profile::{Delay, Jitter, Reorder};

const ALL: [Distribution; 4] = [
    Distribution::Uniform,
    Distribution::Normal,
    Distribution::Pareto,
    Distribution::ParetoNormal,
];

fn delay(distribution: Distribution, mean_ns: u64, sd_ns: f64) -> Delay {
    let jitter = Jitter { sd_ns, distribution, reorder: Reorder::Never, coherence_ns: None };
    Delay { mean_ns, jitter: Some(jitter) }
}

/// The table read as the classifier does: linear between the points.
fn look_up(table: &[u64], x: f64) -> f64 {
    let position = ((x + 8.0) * 256.0).clamp(0.0, 4095.999_999);
    let i = position as usize;
    let (a, b) = (table[i] as f64, table[i + 1] as f64);
    a + (b - a) * (position - i as f64)
}

/// Mean and sd by the trapezium rule over x: neither weights nor nodes of the fit.
fn integrated(value: impl Fn(f64) -> f64) -> (f64, f64) {
    let steps = 1 << 18;
    let h = 16.0 / f64::from(steps);
    let sum = |power: i32, about: f64| -> f64 {
        (0..=steps)
            .map(|k| -8.0 + f64::from(k) * h)
            .map(|x| h * density(x) * (value(x) - about).powi(power))
            .sum()
    };
    let mean = sum(1, 0.0);
    (mean, sum(2, mean).sqrt())
}

fn assert_near(got: f64, want: f64, tolerance: f64, what: &str) {
    assert!((got - want).abs() <= tolerance, "{what}: got {got}, want {want}");
}

#[test]
fn normal_cdf_has_the_published_values() {
    // 40-digit arithmetic, rounded to doubles.
    for (x, p) in NORMAL_CDF {
        assert_near(normal_cdf(x) / p, 1.0, 1e-13, &format!("cdf({x})"));
        assert_near(normal_quantile(p), x, 2e-14 * x.abs().max(1.0), &format!("quantile({p})"));
    }
}

const NORMAL_CDF: [(f64, f64); 6] = [
    (-8.0, 6.220_960_574_271_784e-16),
    (-5.0, 2.866_515_718_791_939e-7),
    (-3.0, 1.349_898_031_630_094_6e-3),
    (-1.959_963_984_540_054, 0.025),
    (0.0, 0.5),
    (1.0, 0.841_344_746_068_542_9),
];

#[test]
fn quantiles_are_standardised() {
    for distribution in ALL {
        let (mean, sd) = integrated(|x| quantile(distribution, x));
        // The trapezium rule is exact to rounding here; a pareto's tail beyond x = 8 holds
        // 3 (6.2e-16)^(1/3) of 3/4 of the variance: 3.4e-5, half of it in the sd.
        let tail = if distribution == Distribution::Pareto { 2e-5 } else { 1e-9 };
        if distribution != Distribution::ParetoNormal {
            assert_near(mean, 0.0, 1e-9, distribution.word());
            assert_near(sd, 1.0, tail, distribution.word());
        }
    }
}

#[test]
fn closed_forms_at_known_probabilities() {
    // x = 1 is the probability 0.8413...; the upper tail of it is 0.1586...
    let above: f64 = 0.158_655_253_931_457_05;
    let root3 = 3f64.sqrt();
    assert_near(quantile(Distribution::Uniform, 1.0), root3 * (1.0 - 2.0 * above), 1e-14, "u");
    assert_near(quantile(Distribution::Normal, 1.0), 1.0, 0.0, "normal");
    let r = 1.0 / above.cbrt();
    assert_near(quantile(Distribution::Pareto, 1.0), (r - 1.5) / 0.75f64.sqrt(), 1e-13, "pareto");
    // The minimum of a pareto: (1 - 3/2) / sqrt(3/4) = -1/sqrt(3).
    assert_near(quantile(Distribution::Pareto, -8.0), -1.0 / root3, 1e-13, "minimum");
}
