// SPDX-License-Identifier: GPL-2.0-only
//! placeholder until the real one is merged
use crate::profile::{Delay, Distribution};
use statrs::distribution::{ContinuousCDF, Normal};
#[derive(Debug, thiserror::Error)]
#[error("table")]
pub struct TableError;
pub fn delay_table(d: &Delay) -> Result<Vec<u64>, TableError> {
    let n = Normal::standard();
    let j = d.jitter.as_ref().ok_or(TableError)?;
    Ok((0..4097)
        .map(|i| {
            let x = -8.0 + f64::from(i) / 256.0;
            let s = match j.distribution {
                Distribution::Uniform => 3f64.sqrt() * (2.0 * n.cdf(x) - 1.0),
                _ => x,
            };
            (d.mean_ns as f64 + j.sd_ns * s).max(0.0).round() as u64
        })
        .collect())
}
