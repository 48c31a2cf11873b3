// SPDX-License-Identifier: MIT OR Apache-2.0
//! Against numbers from elsewhere and by methods other than the ones tested.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::profile::{Delay, Jitter, Shape, Word};

const ALL: [Distribution; 4] = [
    Distribution::Uniform,
    Distribution::Normal,
    Distribution::Pareto,
    Distribution::ParetoNormal,
];

fn delay(distribution: Distribution, mean_ns: u64, sd_ns: f64) -> Delay {
    let jitter = Jitter {
        sd_ns,
        distribution: distribution.into(),
        ..Jitter::default()
    };
    Delay {
        mean_ns,
        jitter: Some(jitter),
        ..Delay::default()
    }
}

/// The table read as the classifier does: linear between the points.
fn look_up(table: &[u64], x: f64) -> f64 {
    let position = ((x + 8.0) * 256.0).clamp(0.0, 4_095.999_999);
    let i = position as usize;
    let (a, b) = (table[i] as f64, table[i + 1] as f64);
    a + (b - a) * (position - i as f64)
}

/// Mean and sd by the trapezium rule over x: neither weights nor nodes of the fit.
fn integrated(value: impl Fn(f64) -> f64) -> (f64, f64) {
    let steps = 1 << 15;
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
    assert!(
        (got - want).abs() <= tolerance,
        "{what}: got {got}, want {want}"
    );
}

#[test]
fn normal_cdf_has_the_published_values() {
    // 40-digit arithmetic, rounded to doubles.
    for (x, p) in NORMAL_CDF {
        assert_near(normal_cdf(x) / p, 1.0, 1e-13, &format!("cdf({x})"));
        assert_near(
            normal_quantile(p),
            x,
            2e-14 * x.abs().max(1.0),
            &format!("quantile({p})"),
        );
    }
}

#[test]
fn normal_quantile_far_out() {
    // 40-digit arithmetic.
    for (p, x) in [
        (1e-300, -37.047_096_299_361_2),
        (1e-100, -21.273_453_560_965_324),
        (1e-20, -9.262_340_089_798_408),
        (1e-5, -4.264_890_793_922_825),
        (0.02, -2.053_748_910_631_823),
        (0.3, -0.524_400_512_708_040_8),
        (0.45, -0.125_661_346_855_074),
        (0.499, -0.002_506_630_899_571_766),
        (0.6, 0.253_347_103_135_799_7),
        (0.99, 2.326_347_874_040_841),
    ] {
        assert_near(
            normal_quantile(p),
            x,
            4e-16 * x.abs().max(1.0) * 4.0,
            &format!("{p}"),
        );
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
    for (distribution, tolerance) in [
        (Distribution::Uniform, 1e-9),
        (Distribution::Normal, 1e-9),
        // Beyond x = 8 are 3 (6.2e-16)^(1/3) of 3/4, 3.4e-5 of the variance: half of it in the sd.
        (Distribution::Pareto, 2e-5),
    ] {
        let (mean, sd) = integrated(|x| quantile(distribution, x));
        assert_near(mean, 0.0, 1e-9, distribution.word());
        assert_near(sd, 1.0, tolerance, distribution.word());
    }
}

#[test]
fn closed_forms_at_known_probabilities() {
    // x = 1 is the probability 0.8413...; the upper tail of it is 0.1586...
    let above: f64 = 0.158_655_253_931_457_05;
    let root3 = 3f64.sqrt();
    assert_near(
        quantile(Distribution::Uniform, 1.0),
        root3 * (1.0 - 2.0 * above),
        1e-14,
        "u",
    );
    assert_near(quantile(Distribution::Normal, 1.0), 1.0, 0.0, "normal");
    let r = 1.0 / above.cbrt();
    assert_near(
        quantile(Distribution::Pareto, 1.0),
        (r - 1.5) / 0.75f64.sqrt(),
        1e-13,
        "pareto",
    );
    // The minimum of a pareto: (1 - 3/2) / sqrt(3/4) = -1/sqrt(3).
    assert_near(
        quantile(Distribution::Pareto, -8.0),
        -1.0 / root3,
        1e-13,
        "minimum",
    );
}

#[test]
fn paretonormal_at_known_points() {
    // The sum's CDF integrated over the pareto (the code integrates over the normal), in 30-digit
    // arithmetic, and solved for the quantile.
    for (x, q) in [
        (-8.0, -2.984_470_219_096_934_3),
        (-6.0, -2.334_237_214_658_113_2),
        (-3.0, -1.334_700_096_331_320_2),
        (-1.0, -0.613_791_754_069_743_9),
        (0.0, -0.183_920_680_043_870_16),
        (1.0, 0.482_733_253_953_351_16),
        (3.0, 8.288_942_370_245_755),
        (6.0, 1_098.743_881_991_799_8),
        (8.0, 128_321.446_209_484_01),
    ] {
        let got = quantile(Distribution::ParetoNormal, x);
        assert_near(
            got,
            q,
            1e-9 * q.abs().max(1.0),
            &format!("paretonormal({x})"),
        );
        let i = ((x + 8.0) * 256.0) as usize;
        let tabled = standard(Distribution::ParetoNormal)[i];
        assert_near(tabled, q, 1e-8 * q.abs().max(1.0), &format!("table({x})"));
    }
}

#[test]
fn tables_have_the_asked_mean_and_sd_and_never_fall() {
    use Distribution::*;
    const MS: f64 = 1e6;
    for (distribution, mean, sd) in [
        (Normal, 198.0, 69.296),
        (Normal, 12.5, 6.364), // 2.5 % would be negative
        (Normal, 10.0, 14.6),  // close to the bound
        (Uniform, 200.0, 50.0 / 3f64.sqrt()),
        (Uniform, 20.0, 20.0 / 3f64.sqrt()), // the bound
        (Pareto, 18.86, 15.853),
        (Pareto, 20.0, 20.0 * 3f64.sqrt()), // the bound
        (ParetoNormal, 100.0, 20.0),
        (ParetoNormal, 29.69, 29.204), // cut off below
        (Normal, 3_600_000.0, 1_000.0),
        (Normal, 50.0, 0.01),
    ] {
        let asked = delay(distribution, (mean * MS) as u64, sd * MS);
        let table = delay_table(&asked).unwrap();
        assert_eq!(table.len(), TABLE_LEN);
        assert!(table.is_sorted());
        let (got_mean, got_sd) = integrated(|x| look_up(&table, x));
        let what = format!("{distribution:?} {mean} {sd}");
        assert_near(got_mean / (mean * MS), 1.0, 1e-6, &what);
        // Whole nanoseconds move an sd by a ns at most.
        assert_near(got_sd, sd * MS, (1e-6 * sd * MS).max(1.0), &what);
    }
}

#[test]
fn samples_have_the_asked_mean_and_sd() {
    // One value in the middle of each of a million equal shares of probability.
    let table = delay_table(&delay(Distribution::Normal, 12_500_000, 6_364_000.0)).unwrap();
    let n = 1_000_000;
    let values: Vec<f64> = (0..n)
        .map(|k| (f64::from(k) + 0.5) / f64::from(n))
        .map(|p| look_up(&table, normal_quantile(p)))
        .collect();
    let mean = values.iter().sum::<f64>() / f64::from(n);
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(n);
    // What the strata miss of the tails: below 1e-5 of the sd for a normal distribution.
    assert_near(mean, 12_500_000.0, 10.0, "mean");
    assert_near(variance.sqrt(), 6_364_000.0, 64.0, "sd");
    assert_eq!(table[0], 0, "this one is cut off at zero");
}

#[test]
fn without_jitter_the_table_is_flat() {
    let constant = Delay {
        mean_ns: 50_000_000,
        ..Delay::default()
    };
    assert_eq!(delay_table(&constant).unwrap(), vec![50_000_000; TABLE_LEN]);
    assert_eq!(
        delay_table(&delay(Distribution::Normal, 7, 0.0)).unwrap(),
        vec![7; TABLE_LEN]
    );
}

#[test]
fn a_spread_too_wide_is_refused() {
    for distribution in ALL {
        let largest = largest_sd_ns(distribution, 10_000_000);
        assert!(delay_table(&delay(distribution, 10_000_000, largest)).is_ok());
        let error = delay_table(&delay(distribution, 10_000_000, largest * 1.0001)).unwrap_err();
        assert_eq!(error.largest_sd_ns, largest);
        assert!(delay_table(&delay(distribution, 0, 1.0)).is_err());
        assert!(delay_table(&delay(distribution, 10_000_000, f64::NAN)).is_err());
        assert!(delay_table(&delay(distribution, 10_000_000, -1.0)).is_err());
    }
    // Half a normal distribution, cut at its peak: sd/mean = sqrt(pi - 1).
    let normal = largest_sd_ns(Distribution::Normal, 1_000_000);
    assert_near(
        normal,
        1e6 * (std::f64::consts::PI - 1.0).sqrt(),
        1.0,
        "normal bound",
    );
    let skewed = largest_sd_ns(Distribution::ParetoNormal, 1_000_000);
    assert_near(
        skewed,
        2.19e6,
        1e4,
        "the paretonormal bound of the documentation",
    );
}

fn shaped(shape: Shape, mean_ns: u64, sd_ns: f64) -> Delay {
    let jitter = Jitter {
        sd_ns,
        distribution: shape,
        ..Jitter::default()
    };
    Delay {
        mean_ns,
        jitter: Some(jitter),
        ..Delay::default()
    }
}

#[test]
fn lognormal_has_the_asked_mean_and_sd() {
    for (mean, sd) in [(100e6, 1e6), (50e6, 20e6), (10e6, 10e6), (10e6, 30e6)] {
        let table = delay_table(&shaped(Shape::LogNormal, mean as u64, sd)).unwrap();
        let (got_mean, got_sd) = integrated(|x| look_up(&table, x));
        assert_near(got_mean / mean, 1.0, 1e-6, "mean");
        // Interpolation, and beyond x = 8.
        assert_near(got_sd / sd, 1.0, 1e-5, "sd");
        // The median is mean / sqrt(1 + (sd/mean)^2).
        let median = mean / (1.0 + (sd / mean).powi(2)).sqrt();
        assert_near(look_up(&table, 0.0) / median, 1.0, 1e-5, "median");
    }
    assert!(delay_table(&shaped(Shape::LogNormal, 1_000_000, 3.1e6)).is_err());
}

#[test]
fn a_table_is_cut_off_at_zero_and_keeps_mean_and_sd() {
    // From -1 to 3 of the spread, with 50 values: a third below zero at this mean.
    let values: Vec<f64> = (0..50).map(|k| f64::from(k * k) / 625.0 - 1.0).collect();
    let (m, s) = moments_of(&values);
    let table = Table::new(&values).unwrap();
    assert_near(table.mean(), m, 1e-4, "mean");
    assert_near(table.sd(), s, 1e-4, "sd");
    let shape = Shape::Table(table.into());
    let (mean, sd) = (8e6, 10e6);
    let delays = delay_table(&shaped(shape.clone(), mean as u64, sd)).unwrap();
    assert_eq!(delays[1024], 0, "cut off");
    let (got_mean, got_sd) = integrated(|x| look_up(&delays, x));
    assert_near(got_mean / (mean + sd * m / s), 1.0, 1e-4, "mean");
    assert_near(got_sd / sd, 1.0, 1e-4, "sd");
    let largest = largest_sd_ns(shape.clone(), mean as u64);
    assert!(delay_table(&shaped(shape.clone(), mean as u64, largest)).is_ok());
    assert!(delay_table(&shaped(shape, mean as u64, 1.01 * largest)).is_err());
}

#[test]
fn samples_are_possible_at_their_own_mean_and_sd() {
    let mostly = |n: usize, low: f64, high: f64, share: usize| -> Vec<f64> {
        let value = |k| if k * 100 < share * n { low } else { high };
        (0..n).map(value).collect()
    };
    let one = |n: usize| -> Vec<f64> { (0..n).map(|k| if k == 0 { 200e6 } else { 1e6 }).collect() };
    for values in [
        mostly(10, 0.0, 10e6, 60),
        mostly(10, 0.0, 100e6, 90),
        mostly(100, 0.0, 100e6, 90),
        mostly(1000, 0.0, 100e6, 90),
        one(10),
        one(1000),
        one(100_000),
        (0..20).map(|k| f64::from(k) * 1e6).collect(),
    ] {
        let (mean, sd) = moments_of(&values);
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let standard: Vec<_> = values.iter().map(|v| (v - mean) / sd).collect();
        let table = Table::from_text(&Table::new(&standard).unwrap().to_text()).unwrap();
        let largest = largest_sd_ns(Shape::Table(table.clone().into()), mean.round() as u64);
        assert!(sd <= largest, "{mean} {sd}: {largest}");
        let delays = delay_table(&shaped(Shape::Table(table.into()), mean.round() as u64, sd));
        let delays = delays.unwrap();
        let what = format!("{} values, {mean} {sd}", values.len());
        assert_near(delays[0] as f64, least, 1e-4 * sd + 1.0, &what);
        let (got_mean, got_sd) = integrated(|x| look_up(&delays, x));
        assert_near(got_mean, mean, 1e-3 * sd, &what);
        assert_near(got_sd / sd, 1.0, 1e-3, &what);
    }
}

#[test]
fn a_tables_text_is_the_table() {
    let values: Vec<f64> = (0..3000)
        .map(|k| f64::from(k * 7919 % 3001).sqrt())
        .collect();
    let table = Table::new(&values).unwrap();
    let text = table.to_text();
    assert_eq!(Table::from_text(&text), Ok(table));
    assert!(text.len() < 25_000, "{}", text.len());
    for wrong in [
        "",
        "x",
        "1",
        "1 2",
        "0 1x4095",
        "0 1x4097",
        "0 1x99999999999",
        "2147483647 1x4096",
    ] {
        assert_eq!(Table::from_text(wrong), Err(TableError::Text), "{wrong}");
    }
    assert_eq!(Table::from_text("5 0x4096"), Err(TableError::Flat));
}

#[test]
fn normal_values_are_more_correlated_than_delays() {
    let uniform = delay_table(&delay(Distribution::Uniform, 20_000_000, 5e6)).unwrap();
    let normal = delay_table(&delay(Distribution::Normal, 100_000_000, 5e6)).unwrap();
    let far = delay_table(&delay(Distribution::Normal, 60_000_000_000, 5e3)).unwrap();
    for r in [0.1, 0.25, 0.5, 0.9, 0.99] {
        // Of normal values correlated by r, the uniform ones are by 6/pi asin(r/2).
        let of_uniform = 6.0 / std::f64::consts::PI * (r / 2.0f64).asin();
        assert_near(normal_correlation(&uniform, of_uniform), r, 2e-4, "uniform");
        assert_near(normal_correlation(&normal, r), r, 1e-5, "normal");
        assert_near(normal_correlation(&far, r), r, 1e-4, "a minute and 5 us");
        // exp(s x) with s^2 = ln(1 + c^2): ln(1 + r c^2) / s^2.
        let log_normal = delay_table(&shaped(Shape::LogNormal, 20_000_000, 10e6)).unwrap();
        let of_log_normal = (r * 0.25f64.ln_1p()).exp_m1() / 0.25;
        assert_near(
            normal_correlation(&log_normal, of_log_normal),
            r,
            2e-4,
            "lognormal",
        );
    }
}

#[test]
fn a_steeper_table_needs_a_longer_coherence() {
    let normal = delay_table(&delay(Distribution::Normal, 100_000_000, 5e6)).unwrap();
    let coherence = coherence_ns(&normal) / 5e6;
    assert!((3.0..4.0).contains(&coherence), "{coherence}");
    // Two levels 20 ms apart, one at each half: z falls below 0 in a quarter of all coherence
    // times, and is held back for 20 ms less the time in which z crosses a step of the table:
    // 0.3 % of the time are 0.25 * 20 ms less 0.3989 / 2 / 256 of it.
    let levels: Vec<u64> = (0..TABLE_LEN)
        .map(|i| if i < 2048 { 10_000_000 } else { 30_000_000 })
        .collect();
    let expected = 20e6 * 0.25 / (0.003 + 0.398_942 / 512.0);
    assert_near(coherence_ns(&levels) / expected, 1.0, 0.02, "two levels");
}

#[test]
#[ignore = "a timing: run alone, in release"]
fn compiles_in_time() {
    let start = std::time::Instant::now();
    delay_table(&delay(Distribution::ParetoNormal, 29_690_000, 29_204_000.0)).unwrap();
    let first = start.elapsed();
    let start = std::time::Instant::now();
    delay_table(&delay(Distribution::ParetoNormal, 29_690_000, 29_204_000.0)).unwrap();
    println!("first {first:?}, again {:?}", start.elapsed());
    assert!(first.as_millis() < 50);
}

/// Delays up to the longest are those of the whole distribution; beyond it all are the longest.
#[test]
fn the_longest_delay_cuts_the_table() {
    for shape in [
        Distribution::Uniform.into(),
        Distribution::Pareto.into(),
        Shape::LogNormal,
    ] {
        let whole = shaped(shape, 50_000_000, 20e6);
        let cut = Delay {
            max_ns: Some(60_000_000),
            ..whole.clone()
        };
        let [whole, cut] = [&whole, &cut].map(|delay| delay_table(delay).unwrap());
        let expected: Vec<u64> = whole.iter().map(|ns| (*ns).min(60_000_000)).collect();
        assert_eq!(cut, expected);
        assert!(whole.last() > cut.last());
    }
}
