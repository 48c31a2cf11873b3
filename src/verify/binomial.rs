// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact confidence interval of a share: C. J. Clopper, E. S. Pearson: "The use of confidence
//! or fiducial limits illustrated in the case of the binomial", Biometrika 26(4), 1934.
//!
//! A log may have 10^9 packets. For such numbers, a truncated continued fraction of the incomplete
//! beta function, or its inversion with steps of a fixed size, is wrong or does not terminate. This
//! code only uses a sum of positive terms, and Newton's method on a concave function, which always
//! converges.

use std::f64::consts::PI;

/// The terms of a tail that are left out sum up to this share of it.
const REST: f64 = 1e-17;
/// Relative precision of the odds. Six to ten steps reach it.
const EXACT: f64 = 1e-13;
const STEPS: usize = 100;

/// Returns the interval of the probability of an event that happened `x` times in `n` trials, with
/// a confidence of at least `1 - alpha`.
pub fn clopper_pearson(x: u64, n: u64, alpha: f64) -> (f64, f64) {
    (least(x, n, alpha / 2.0), most(x, n, alpha / 2.0))
}

/// Returns the probability at which `x` events or more in `n` trials have the probability `tail`.
fn least(x: u64, n: u64, tail: f64) -> f64 {
    share(logit(x, n, tail))
}

/// Returns the probability at which `x` events or fewer in `n` trials have the probability `tail`.
pub fn most(x: u64, n: u64, tail: f64) -> f64 {
    share(-logit(n - x, n, tail))
}

fn share(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Returns ln(p / (1 - p)) of [`least`]: also exact if p is close to 1.
fn logit(x: u64, n: u64, tail: f64) -> f64 {
    if x == 0 {
        return f64::NEG_INFINITY;
    }
    if x == n {
        let ln_p = tail.ln() / n as f64;
        return ln_p - (-ln_p.exp_m1()).ln();
    }
    let mut logit = (x as f64 / (n - x) as f64).ln();
    for _ in 0..STEPS {
        let (p, q) = (share(logit), share(-logit));
        // P(x or more) = P(x) * terms, and its derivative by p is P(x) * x / p.
        let terms = terms(x, n, logit.exp());
        let step = (ln_exactly(x, n, p, q) + terms.ln() - tail.ln()) * terms / (x as f64 * q);
        logit -= step;
        if step.abs() < EXACT {
            break;
        }
    }
    logit
}

/// Returns P(x or more) / P(x), by P(k + 1) / P(k) = (n - k) / (k + 1) * odds.
fn terms(x: u64, n: u64, odds: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in x..n {
        term *= (n - k) as f64 / (k + 1) as f64 * odds;
        sum += term;
        if term < REST * sum {
            break;
        }
    }
    sum
}

/// Returns ln of the probability of exactly x of n, for 0 < x < n. C. Loader: "Fast and accurate
/// computation of binomial probabilities", 2000: avoids the difference of large numbers.
fn ln_exactly(x: u64, n: u64, p: f64, q: f64) -> f64 {
    let (yes, no, all) = (x as f64, (n - x) as f64, n as f64);
    let stirling = stirling(all) - stirling(yes) - stirling(no);
    stirling - deviance(yes, all * p) - deviance(no, all * q)
        + 0.5 * (all / (2.0 * PI * yes * no)).ln()
}

/// Returns the remainder of Stirling's formula for ln(n!).
fn stirling(n: f64) -> f64 {
    if n < 16.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * PI).ln();
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square) / n
}

fn deviance(x: f64, mean: f64) -> f64 {
    let far = (x - mean) / (x + mean);
    if far.abs() > 0.1 {
        return x * (x / mean).ln() + mean - x;
    }
    // ln(x / mean) = 2 artanh(far), as a series.
    let mut power = 2.0 * x * far;
    let mut sum = (x - mean) * far;
    for i in 1..20 {
        power *= far * far;
        sum += power / f64::from(2 * i + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const BILLION: u64 = 1_000_000_000;

    fn near(is: f64, should: f64, what: &str) {
        let off = (is - should).abs();
        assert!(
            off <= 1e-11 * should.abs(),
            "{what}: {is:e}, not {should:e}"
        );
    }

    /// x, n, alpha, and the ends: computed as sums of the probabilities with 40 digits.
    #[allow(clippy::excessive_precision, clippy::unreadable_literal)]
    const REFERENCE: [(u64, u64, f64, f64, f64); 7] = [
        (5, 10, 0.05, 0.18708602844739853, 0.81291397155260147),
        (
            500_000_000,
            BILLION,
            0.05,
            0.49996900974842228,
            0.50003099025157772,
        ),
        (7, 200, 1e-4, 0.0046631444990880382, 0.11468041146377016),
        (
            300,
            100_000,
            1e-4,
            0.0023734443439631858,
            0.0037312229069617207,
        ),
        (
            1,
            BILLION,
            0.05,
            2.531780798396938e-11,
            5.5716433782031153e-9,
        ),
        (
            10,
            BILLION,
            0.05,
            4.7953887062138064e-9,
            1.8390355964866961e-8,
        ),
        (
            123_456,
            BILLION,
            1e-4,
            0.00012209378255952693,
            0.00012482864485648812,
        ),
    ];

    #[test]
    fn none_and_all_have_closed_forms() {
        for (n, alpha) in [
            (10, 0.1),
            (100, 0.05),
            (1_000_000_000, 0.05),
            (1 << 53, 1e-4),
        ] {
            let end = -((alpha / 2.0f64).ln() / n as f64).exp_m1();
            let (low, high) = clopper_pearson(0, n, alpha);
            assert_eq!(low, 0.0);
            near(high, end, "none");
            let (low, high) = clopper_pearson(n, n, alpha);
            assert_eq!(high, 1.0);
            near(low, 1.0 - end, "all");
        }
        assert_eq!(clopper_pearson(0, 0, 0.05), (0.0, 1.0));
    }

    #[test]
    fn an_interval_is_that_of_high_precision() {
        for (x, n, alpha, low, high) in REFERENCE {
            let is = clopper_pearson(x, n, alpha);
            near(is.0, low, &format!("{x} of {n}, low"));
            near(is.1, high, &format!("{x} of {n}, high"));
            let other = clopper_pearson(n - x, n, alpha);
            near(other.0, 1.0 - high, &format!("{} of {n}, low", n - x));
            near(other.1, 1.0 - low, &format!("{} of {n}, high", n - x));
        }
    }
}
