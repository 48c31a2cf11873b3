// SPDX-License-Identifier: MIT OR Apache-2.0
//! The theoretical error of a sample.

/// The value below which this share of the values lies.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * sorted.len() as f64) as usize;
    sorted[at.min(sorted.len() - 1)]
}

pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Standard error of the mean of `n` independent values.
pub fn mean_error(sd: f64, n: f64) -> f64 {
    sd / n.sqrt()
}

/// Standard error of the standard deviation of `n` independent values, by the
/// distribution's kurtosis (normal 3, uniform 1.8).
pub fn sd_error(sd: f64, kurtosis: f64, n: f64) -> f64 {
    sd * ((kurtosis - 1.0) / (4.0 * n)).sqrt()
}

/// Standard error of a share of `n` packets with independent fates.
pub fn share_error(p: f64, n: f64) -> f64 {
    (p * (1.0 - p) / n).sqrt()
}

/// The number of independent values that are equivalent to a mean over `duration` of the in-order
/// jitter.
///
/// Each knot's value has a weight in the two intervals around it by c = 2 T integral(w / sqrt(w^2 +
/// (1-w)^2), w = 0..1) = sqrt(2) asinh(1) T, so the variance of the time average over D is D/T c^2
/// / D^2 = 2 asinh(1)^2 T/D. A table that is not linear only lowers the correlation.
pub fn independent_values(duration: f64, coherence: f64) -> f64 {
    duration / (2.0 * 1f64.asinh().powi(2) * coherence)
}

/// Kurtosis of the sum of two independent values of that kurtosis and equal variance.
pub fn kurtosis_of_two(kurtosis: f64) -> f64 {
    3.0 + (kurtosis - 3.0) / 2.0
}

/// Kolmogorov-Smirnov distance of a sample from a distribution function.
pub fn ks_distance(values: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    sorted
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            let at = cdf(x);
            (at - i as f64 / n)
                .abs()
                .max((at - (i + 1) as f64 / n).abs())
        })
        .fold(0.0, f64::max)
}

/// Kolmogorov-Smirnov distance of two samples.
pub fn ks_between(a: &[f64], b: &[f64]) -> f64 {
    let mut sorted = b.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |x: f64| sorted.partition_point(|&y| y <= x) as f64 / sorted.len() as f64;
    ks_distance(a, below)
}

/// The distance that `n` independent values keep within in all but one case in
/// 16,000, which is what 4 standard errors mean elsewhere (Kolmogorov's limit).
pub fn ks_bound(n: f64) -> f64 {
    const P: f64 = 6.3e-5;
    ((2.0 / P).ln() / (2.0 * n)).sqrt()
}

/// Distribution function of `mean +- half_width`.
pub fn uniform_cdf(mean: f64, half_width: f64) -> impl Fn(f64) -> f64 {
    move |x| ((x - mean) / (2.0 * half_width) + 0.5).clamp(0.0, 1.0)
}

/// Distribution function of the normal distribution.
pub fn normal_cdf(mean: f64, sd: f64) -> impl Fn(f64) -> f64 {
    move |x| 0.5 * libm::erfc((mean - x) / (sd * std::f64::consts::SQRT_2))
}
