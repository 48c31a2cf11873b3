// SPDX-License-Identifier: MIT OR Apache-2.0
//! What repeats say of a figure: its mean, and how sure that is.

use super::Quantity;
use crate::verify::moments;
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// From this number of runs on, their standard deviation stands for that of all possible runs.
pub const MANY: usize = 30;

/// Up to this share of the largest mean, a difference comes from the rounding of sums: the mean of n equal values is
/// not always that value.
const ROUNDING: f64 = 1e-12;

/// A figure over runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Number of runs.
    #[schemars(range(min = 1))]
    pub n: usize,
    /// Mean of the runs.
    pub mean: f64,
    /// Standard deviation of the runs (n - 1); null: a single run.
    pub sd: Option<f64>,
    /// Confidence interval of the mean (Student's t); null: a single run.
    pub interval: Option<[f64; 2]>,
}

/// A test of two means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TTest {
    /// Confidence interval of the difference.
    pub interval: [f64; 2],
    /// Probability that runs of two identical experiments differ by at least this much.
    #[schemars(range(min = 0, max = 1))]
    pub p: f64,
}

impl Estimate {
    /// Estimates the mean of values; `None`: there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let (mean, sd) = moments(values);
        let sd = (n > 1).then_some(sd);
        let interval = sd.and_then(|sd| {
            let half = t_quantile((n - 1) as f64)? * sd / (n as f64).sqrt();
            Some([mean - half, mean + half])
        });
        Some(Self {
            n,
            mean,
            sd,
            interval,
        })
    }

    /// Returns the mean as text, with half of its interval if it has one.
    pub fn text(&self, quantity: Quantity) -> String {
        let mean = quantity.text(self.mean);
        match self.interval {
            Some([low, high]) => format!("{mean} ± {}", quantity.text((high - low) / 2.0)),
            None => mean,
        }
    }

    /// Returns the same, marked if it is of fewer runs than the others.
    pub(super) fn text_of(&self, quantity: Quantity, runs: usize) -> String {
        let text = self.text(quantity);
        match self.n {
            n if n >= runs => text,
            1 => format!("{text} (of 1 run)"),
            n => format!("{text} (of {n} runs)"),
        }
    }

    fn variance_of_mean(&self) -> Option<f64> {
        self.sd.map(|sd| sd * sd / self.n as f64)
    }
}

/// Returns a difference of means, or its error, without what comes from rounding.
pub(super) fn without_rounding(difference: f64, means: impl IntoIterator<Item = f64>) -> f64 {
    let largest = means.into_iter().map(f64::abs).fold(0.0, f64::max);
    if difference.abs() <= ROUNDING * largest {
        return 0.0;
    }
    difference
}

/// Returns mean of b minus mean of a.
pub(super) fn mean_difference(a: &Estimate, b: &Estimate) -> f64 {
    without_rounding(b.mean - a.mean, [a.mean, b.mean])
}

/// Tests whether b differs from a, variances not assumed equal; `None`: one of them is a single run.
pub fn welch(a: &Estimate, b: &Estimate) -> Option<TTest> {
    let (of_a, of_b) = (a.variance_of_mean()?, b.variance_of_mean()?);
    let difference = mean_difference(a, b);
    let variance = of_a + of_b;
    let error = without_rounding(variance.sqrt(), [a.mean, b.mean]);
    if error == 0.0 {
        return TTest::of(difference, 0.0, 1.0);
    }
    let part = |of: f64, n: usize| of * of / (n - 1) as f64;
    let freedom = variance * variance / (part(of_a, a.n) + part(of_b, b.n));
    TTest::of(difference, error, freedom)
}

/// As [`welch`] with the normal distribution, a Z test; none: one of them has fewer than [`MANY`] runs.
pub fn z(a: &Estimate, b: &Estimate) -> Option<TTest> {
    if a.n < MANY || b.n < MANY {
        return None;
    }
    let error = (a.variance_of_mean()? + b.variance_of_mean()?).sqrt();
    let error = without_rounding(error, [a.mean, b.mean]);
    let normal = Normal::new(0.0, 1.0).ok()?;
    TTest::by(&normal, mean_difference(a, b), error)
}

/// Returns p of one of several tests, corrected by Bonferroni: below 0.05 at least one of them finds a
/// difference in runs of two identical experiments with a probability of 0.05 at most.
pub fn bonferroni(p: f64, tests: usize) -> f64 {
    (p * tests as f64).min(1.0)
}

/// Tests whether the values of pairs are the same; `None`: fewer than two pairs.
pub fn paired(pairs: &[(f64, f64)]) -> Option<TTest> {
    let differences = pairs.iter().map(|(a, b)| without_rounding(b - a, [*a, *b]));
    let e = Estimate::of(&differences.collect::<Vec<_>>())?;
    let error = e.variance_of_mean()?.sqrt();
    let values = pairs.iter().flat_map(|(a, b)| [*a, *b]);
    let error = without_rounding(error, values);
    TTest::of(e.mean, error, (e.n - 1) as f64)
}

impl TTest {
    pub(super) fn of(difference: f64, error: f64, freedom: f64) -> Option<Self> {
        Self::by(&StudentsT::new(0.0, 1.0, freedom).ok()?, difference, error)
    }

    /// Tests a difference. `of_error`: its distribution if there is none, in standard errors.
    fn by(of_error: &impl ContinuousCDF<f64, f64>, difference: f64, error: f64) -> Option<Self> {
        if error == 0.0 {
            // Without any variance a few runs do not show how far chance reaches: of 2 and 2 runs with 1 loss of 100
            // packets, one in 17 has 1, 1 and 2, 2.
            let interval = [difference; 2];
            return (difference == 0.0).then_some(Self { interval, p: 1.0 });
        }
        let half = of_error.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)) * error;
        Some(Self {
            interval: [difference - half, difference + half],
            p: (2.0 * of_error.cdf(-difference.abs() / error)).min(1.0),
        })
    }
}

/// Returns the two-sided quantile of Student's t for [`CONFIDENCE`].
fn t_quantile(freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64) {
        assert!(
            (got - expected).abs() < 1e-3 * expected.abs().max(1e-3),
            "{got} {expected}"
        );
    }

    #[test]
    fn the_interval_is_students() {
        // t(0.975; 4) = 2.776, sd = sqrt(2.5).
        let e = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        close(e.mean, 3.0);
        close(e.sd.unwrap(), 1.5811);
        close(e.interval.unwrap()[0], 3.0 - 2.7764 * 0.5f64.sqrt());
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[7.0]).unwrap().interval, None);
    }

    /// t = 5.375 with 7.770 degrees of freedom; t(0.975) = 2.3179; p by numeric integration.
    #[test]
    fn welch_is_that_of_the_textbook() {
        let a = Estimate::of(&[20.1, 19.8, 20.4, 20.0, 19.9]).unwrap();
        let b = Estimate::of(&[21.0, 20.6, 21.3, 20.9, 20.7]).unwrap();
        let w = welch(&a, &b).unwrap();
        close(w.interval[0], 0.86 - 2.3179 * 0.16);
        close(w.interval[1], 0.86 + 2.3179 * 0.16);
        close(w.p, 7.3358e-4);
        assert_eq!(welch(&a, &Estimate::of(&[1.0]).unwrap()), None);
    }

    /// Differences 1, 2, 3: t = 2 / (1 / sqrt(3)) with 2 degrees of freedom, for which
    /// p = 1 - t / sqrt(t^2 + 2) and t(0.975) = 4.3027.
    #[test]
    fn pairs_are_tested_by_their_differences() {
        let t = paired(&[(5.0, 6.0), (1.0, 3.0), (-2.0, 1.0)]).unwrap();
        close(t.p, 1.0 - (12.0f64 / 14.0).sqrt());
        close(t.interval[0], 2.0 - 4.3027 / 3f64.sqrt());
        assert_eq!(paired(&[(0.0, 1.0)]), None);
        // Two pairs by two apart say nothing of chance.
        assert_eq!(paired(&[(0.0, 2.0), (1.0, 3.0)]), None);
    }

    /// Means 10 and 10.5 of 36 and 49 runs with a standard deviation of 1.2 and 1.4: an error of
    /// sqrt(0.04 + 0.04), z = 1.76777; tables of the normal distribution have p = 0.0771, and 1.95996 for
    /// 95 %.
    #[test]
    fn many_runs_have_a_z_test() {
        let of = |n, mean, sd| Estimate {
            n,
            mean,
            sd: Some(sd),
            interval: None,
        };
        let (a, b) = (of(36, 10.0, 1.2), of(49, 10.5, 1.4));
        let test = z(&a, &b).unwrap();
        close(test.p, 0.077_100);
        close(test.interval[0], 0.5 - 1.959_96 * 0.08f64.sqrt());
        close(test.interval[1], 0.5 + 1.959_96 * 0.08f64.sqrt());
        // The t-test is wider.
        assert!(welch(&a, &b).unwrap().p > test.p);
        assert_eq!(z(&of(29, 10.0, 1.2), &b), None);
        assert_eq!(z(&b, &of(29, 10.0, 1.2)), None);
    }

    #[test]
    fn several_tests_are_stricter_than_one() {
        close(bonferroni(0.01, 4), 0.04);
        assert_eq!(bonferroni(0.4, 4), 1.0);
    }

    #[test]
    fn runs_that_do_not_vary_say_nothing_of_chance() {
        let same = Estimate::of(&[2.0, 2.0]).unwrap();
        let other = Estimate::of(&[3.0, 3.0]).unwrap();
        assert_eq!(welch(&same, &same).unwrap().p, 1.0);
        assert_eq!(welch(&same, &other), None);
    }

    /// The means of 3, 10, 28, 30 and 40 times 3 / 1999 differ in their last digit.
    #[test]
    fn rounding_is_no_difference() {
        let of = |value: f64, n| Estimate::of(&vec![value; n]).unwrap();
        let same = |n| of(3.0 / 1999.0, n);
        let none = Some(TTest {
            interval: [0.0; 2],
            p: 1.0,
        });
        assert_eq!(welch(&same(3), &same(10)), none);
        assert_eq!(welch(&same(30), &same(28)), none);
        assert_eq!(z(&same(30), &same(40)), none);
        // 0.1 + 0.2 is not 0.3.
        let pair = (0.3, 0.1 + 0.2);
        assert_eq!(paired(&[pair; 3]), none);
        assert_eq!(paired(&[pair, (0.5, 0.5)]), none);
        assert_eq!(paired(&[(0.3, 0.4), (0.1, 0.2)]), None);
        let other = of(3.001 / 1999.0, 40);
        assert_eq!(welch(&same(30), &other), None);
        assert_eq!(z(&same(30), &other), None);
    }
}
