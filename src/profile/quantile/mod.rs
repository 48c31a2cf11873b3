// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delays as functions of a standard normal value.
//!
//! For every distribution, the classifier generates a standard normal value x and takes the delay
//! from a table over x. Here are the inverse CDFs behind that table, standardised to mean 0 and
//! standard deviation 1, and the table itself, fitted so that mean and standard deviation are the
//! configured ones although no delay is negative.

mod coherence;
mod correlation;
mod fit;
mod moments;
mod normal;
mod pareto_normal;
mod table;

pub use coherence::coherence_ns;
pub use correlation::normal_correlation;
pub use fit::{SpreadError, delay_table, largest_sd_ns};
pub use moments::table_moments;
pub use normal::{density, normal_cdf, normal_quantile};
pub use table::{Table, TableError, moments_of};

use std::sync::OnceLock;

use crate::profile::Distribution;

/// The table spans x = -8..=8 in steps of 1/256, as `EMUD_TABLE_STEPS` in bpf/abi/general.h.
pub const TABLE_STEPS: usize = 4096;
/// Number of points.
pub const TABLE_LEN: usize = TABLE_STEPS + 1;
/// x at the first point.
pub const TABLE_MIN: f64 = -8.0;
/// Distance of two points.
pub const TABLE_STEP: f64 = 1.0 / 256.0;

/// Returns x at table point `i`, exactly.
pub fn table_x(i: usize) -> f64 {
    TABLE_MIN + i as f64 * TABLE_STEP
}

/// Returns the standardised quantile at the probability of a standard normal value below `x`.
///
/// `x` is taken into [-8, 8], outside of which one packet in 10^15 falls.
pub fn quantile(distribution: Distribution, x: f64) -> f64 {
    let x = x.clamp(TABLE_MIN, -TABLE_MIN);
    match distribution {
        Distribution::Uniform => 3f64.sqrt() * (2.0 * normal_cdf(x) - 1.0),
        Distribution::Normal => x,
        Distribution::Pareto => pareto(x),
        Distribution::ParetoNormal => {
            let nearest = ((x - TABLE_MIN) / TABLE_STEP).round() as usize;
            pareto_normal::refine(x, standard(distribution)[nearest])
        }
    }
}

/// Shape 3 and minimum 1 has mean 3/2 and variance 3/4.
const PARETO_MEAN: f64 = 1.5;
/// sqrt(3/4)
const PARETO_SD: f64 = 0.866_025_403_784_438_6;

fn pareto(x: f64) -> f64 {
    (normal_cdf(-x).powf(-1.0 / 3.0) - PARETO_MEAN) / PARETO_SD
}

/// Returns the standardised quantile at every table point, computed once per process.
fn standard(distribution: Distribution) -> &'static [f64] {
    static TABLES: [OnceLock<Vec<f64>>; 4] = [const { OnceLock::new() }; 4];
    TABLES[distribution as usize].get_or_init(|| match distribution {
        Distribution::ParetoNormal => pareto_normal::table(),
        other => (0..TABLE_LEN)
            .map(|i| quantile(other, table_x(i)))
            .collect(),
    })
}

/// Returns the mean and standard deviation if only a share of the values is not zero.
pub(crate) fn of_share(share: f64, mean: f64, sd: f64) -> (f64, f64) {
    let square = share * (sd.powi(2) + mean.powi(2));
    let mean = share * mean;
    (mean, (square - mean.powi(2)).max(0.0).sqrt())
}

#[cfg(test)]
mod tests;
