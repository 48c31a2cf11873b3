// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effect of independent losses on the rate of a stream: the number of slots between two
//! packets that arrive is geometric.
//!
//! The slope of a line through the times of n arrivals is a mean of the n - 1 gaps with weights 6 j
//! (n - j) / (n (n^2 - 1)), j = 1..n-1: the least-squares slope, summed by gaps. The deviation of a
//! weighted sum of independent values is bounded by H. Chernoff: "A measure of asymptotic
//! efficiency for tests of a hypothesis based on the sum of observations", Annals of Mathematical
//! Statistics 23(4), 1952.

/// More weights than these add no information; each of them stands for several gaps.
const WEIGHTS: usize = 1000;
/// A ternary search over a range of e^30 is then exact to a billionth.
const STEPS: usize = 60;

/// Returns the slots per packet that arrives: between these values with confidence 1 - alpha, if the
/// probability of a loss is between `lost.0` and `lost.1`. More losses make gaps longer, so each
/// bound follows from one end.
pub fn slots(came: usize, lost: (f64, f64), alpha: f64) -> (f64, f64) {
    let tail = (2.0 / alpha).ln();
    let gaps = Gaps::of(came);
    (gaps.least(lost.0, tail), gaps.most(lost.1, tail))
}

/// Returns the standard deviation of that mean, as a share of it.
pub fn relative_sd(came: usize, lost: f64) -> f64 {
    // A gap's variance is q / p^2, its mean 1 / p; the squares of the weights add up to 6 / (5 n).
    (lost * 1.2 / came.max(1) as f64).sqrt()
}

struct Gaps {
    weights: Vec<f64>,
    /// Gaps that each weight stands for.
    each: f64,
}

impl Gaps {
    fn of(came: usize) -> Self {
        let n = came.max(2) as f64;
        let count = (came.max(2) - 1).min(WEIGHTS);
        let each = (n - 1.0) / count as f64;
        let weight = |i: usize| {
            let j = (i as f64 + 0.5) * each + 0.5;
            6.0 * j * (n - j) / (n * (n * n - 1.0))
        };
        let weights = (0..count).map(weight).collect();
        Self { weights, each }
    }

    /// Returns ln of the mean of e^(theta x), x being the weighted sum.
    fn cumulants(&self, lost: f64, theta: f64) -> f64 {
        let gap = |w: &f64| {
            let s = theta * w;
            (-lost).ln_1p() + s - (-lost * s.exp()).ln_1p()
        };
        self.each * self.weights.iter().map(gap).sum::<f64>()
    }

    fn most(&self, lost: f64, tail: f64) -> f64 {
        if lost <= 0.0 {
            return 1.0;
        }
        if lost >= 1.0 {
            return f64::INFINITY;
        }
        // The mean is infinite beyond it.
        let heaviest = self.weights.iter().copied().fold(0.0, f64::max);
        let end = (-lost.ln() / heaviest).ln() - 1e-9;
        let bound = |theta: f64| (self.cumulants(lost, theta) + tail) / theta;
        smallest((end - 30.0, end), |x| bound(x.exp()))
    }

    fn least(&self, lost: f64, tail: f64) -> f64 {
        if lost <= 0.0 {
            return 1.0;
        }
        let lost = lost.min(1.0 - f64::EPSILON);
        let squares: f64 = self.weights.iter().map(|w| w * w).sum();
        let sd = (lost * self.each * squares).sqrt() / (1.0 - lost);
        // The optimum if the sum were normal.
        let about = ((2.0 * tail).sqrt() / sd).ln();
        let bound = |theta: f64| (self.cumulants(lost, -theta) + tail) / theta;
        // No gap is shorter than a slot.
        (-smallest((about - 15.0, about + 15.0), |x| bound(x.exp()))).max(1.0)
    }
}

/// Returns the minimum of a function that falls and then rises. Every value of a Chernoff bound is a valid
/// bound, so an inexact search only widens it.
fn smallest((mut low, mut high): (f64, f64), of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        if of(low + third) < of(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    of(f64::midpoint(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_losses_every_slot_brings_a_packet() {
        assert_eq!(slots(166, (0.0, 0.0), 1e-4), (1.0, 1.0));
    }

    #[test]
    fn of_two_packets_it_is_the_chernoff_bound_of_one_gap() {
        // P(gap >= x) = q^(x - 1); Markov's inequality loses less than a factor of e x.
        let (_, most) = slots(2, (0.1, 0.1), 2e-4);
        let chance = 0.1f64.powf(most - 1.0);
        assert!(chance <= 1e-4 && chance > 1e-4 / 20.0, "{most}");
    }

    #[test]
    fn many_gaps_are_as_far_off_as_normal_ones() {
        // Chernoff's bound of a normal value is sqrt(2 ln(2/alpha)) standard deviations. With few
        // gaps, their skewness is visible.
        for (n, near) in [(200_000, 0.03), (900, 0.15)] {
            let (low, high) = slots(n, (0.1, 0.1), 1e-4);
            let far = (2.0 * 2e4f64.ln()).sqrt() * relative_sd(n, 0.1);
            let (low, high) = (1.0 - 0.9 * low, 0.9 * high - 1.0);
            assert!((low / far - 1.0).abs() < near, "{n}: {low} {far}");
            assert!((high / far - 1.0).abs() < near, "{n}: {high} {far}");
        }
    }
}
