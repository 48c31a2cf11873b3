// SPDX-License-Identifier: MIT OR Apache-2.0
//! A distribution from a file: measured delays, or a table of tc-netem.
//!
//! Kept as whole numbers, so that a profile's text carries it exactly: a file may be gone by the
//! time `emud set` reads back the profile that is in force.

use super::moments::{fit, moments, table_moments};
use super::{TABLE_LEN, normal_cdf, table_x};

/// One unit of spread (jitter, or a standard deviation), 8 times as fine as tc-netem's.
const UNIT: f64 = 65_536.0;

/// An inverse CDF over the standard normal value, never falling, at the points of the delay table.
#[derive(Debug, Clone)]
pub struct Table {
    points: Vec<i32>,
    mean: f64,
    sd: f64,
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.points == other.points
    }
}

/// Why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum TableError {
    #[error("all values are the same")]
    Flat,
    #[error("the values are too far apart")]
    TooWide,
    #[error("it is not {TABLE_LEN} points, the first and how much each is above the one before")]
    Text,
}

impl Table {
    /// Returns the distribution of `values`, which are multiples of the spread; each is as likely.
    ///
    /// Mean and standard deviation stay what they are in `values` to 1e-4 of the latter.
    ///
    /// # Errors
    /// The values do not vary, or one is more than 32,767 units away.
    pub fn new(values: &[f64]) -> Result<Self, TableError> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (mean, sd) = moments_of(&sorted);
        let raw: Vec<f64> = (0..TABLE_LEN).map(|i| at(&sorted, table_x(i))).collect();
        let (raw_mean, raw_sd) = moments(raw.iter().copied());
        if !(sd > 0.0 && raw_sd > 0.0) {
            return Err(TableError::Flat);
        }
        // Lines between the values vary less than the values. Widened, they are cut off at the
        // least value, below which there is none: of delays it may be zero.
        let least = sorted[0];
        let q: Vec<f64> = raw.iter().map(|q| (q - raw_mean) / raw_sd).collect();
        let (shift, scale) = fit(&q, -q[TABLE_LEN - 1], mean - least, sd);
        let points = q
            .iter()
            .map(|q| (least + (shift + scale * q).max(0.0)) * UNIT)
            .map(|q| (q.abs() < f64::from(i32::MAX)).then_some(q.round() as i32))
            .collect::<Option<_>>()
            .ok_or(TableError::TooWide)?;
        Self::from_points(points)
    }

    /// Returns the distribution of a delay table, about its mean. What is more than 32,767 standard deviations away,
    /// less than one packet in 10^9, is there.
    ///
    /// # Errors
    /// The delays do not vary.
    pub fn of_delays(delay_ns: &[u64]) -> Result<Self, TableError> {
        let (mean, sd) = table_moments(delay_ns);
        // A cast ends at the largest value.
        let point = |ns: &u64| ((*ns as f64 - mean) / sd * UNIT).round() as i32;
        Self::from_points(delay_ns.iter().map(point).collect())
    }

    fn from_points(points: Vec<i32>) -> Result<Self, TableError> {
        let (mean, sd) = moments(points.iter().map(|q| f64::from(*q) / UNIT));
        // Of a table that is almost flat only the rounding would be left.
        if sd < 0.01 {
            return Err(TableError::Flat);
        }
        Ok(Self { points, mean, sd })
    }

    /// Returns the mean in units of the spread.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the standard deviation in units of the spread.
    pub fn sd(&self) -> f64 {
        self.sd
    }

    /// Returns the rounding error of a point of [`Self::standard`].
    pub(super) fn rounding(&self) -> f64 {
        1.0 / UNIT / self.sd
    }

    /// Returns the points standardised to mean 0 and standard deviation 1.
    pub(super) fn standard(&self) -> Vec<f64> {
        let standardised = |q: &i32| (f64::from(*q) / UNIT - self.mean) / self.sd;
        self.points.iter().map(standardised).collect()
    }

    /// Returns one line: the first point, then the rise of each over the one before, with `x` and a count
    /// where it repeats.
    pub fn to_text(&self) -> String {
        let mut words = vec![self.points[0].to_string()];
        let mut rises = self
            .points
            .windows(2)
            .map(|w| i64::from(w[1]) - i64::from(w[0]));
        let mut run = rises.next().map(|rise| (rise, 1));
        while let Some((rise, times)) = run {
            let next = rises.next();
            if next == Some(rise) {
                run = Some((rise, times + 1));
                continue;
            }
            words.push(match times {
                1 => rise.to_string(),
                times => format!("{rise}x{times}"),
            });
            run = next.map(|rise| (rise, 1));
        }
        words.join(" ")
    }

    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn from_text(text: &str) -> Result<Self, TableError> {
        let mut words = text.split_ascii_whitespace();
        let first = words.next().and_then(|word| word.parse::<i32>().ok());
        let mut points = vec![first.ok_or(TableError::Text)?];
        for word in words {
            let (rise, times) = word.split_once('x').unwrap_or((word, "1"));
            let (Ok(rise), Ok(times)) = (rise.parse::<u32>(), times.parse::<usize>()) else {
                return Err(TableError::Text);
            };
            for _ in 0..times.min(TABLE_LEN) {
                let last = points[points.len() - 1];
                points.push(last.checked_add_unsigned(rise).ok_or(TableError::Text)?);
            }
            if points.len() > TABLE_LEN {
                return Err(TableError::Text);
            }
        }
        match points.len() {
            TABLE_LEN => Self::from_points(points),
            _ => Err(TableError::Text),
        }
    }
}

/// Returns the mean and standard deviation of values that are equally likely.
pub fn moments_of(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// Returns the quantile of `sorted` at the probability of a standard normal value below `x`: straight
/// between the values, each in the middle of its share of probability.
fn at(sorted: &[f64], x: f64) -> f64 {
    let n = sorted.len();
    // From the nearer end, where the probability is exact.
    let tail = normal_cdf(-x.abs()) * n as f64 - 0.5;
    let index = tail.max(0.0).floor();
    let (near, fraction) = (index as usize, (tail - index).max(0.0));
    let pick = |k: usize| {
        let k = k.min(n - 1);
        if x < 0.0 {
            sorted[k]
        } else {
            sorted[n - 1 - k]
        }
    };
    pick(near) + (pick(near + 1) - pick(near)) * fraction
}
