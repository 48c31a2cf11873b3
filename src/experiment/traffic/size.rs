// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much data each datagram has.

use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{TrafficError, fits};
use crate::verify::splitmix::Random;

/// Data per datagram, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// The same in all.
    Fixed(usize),
    /// Drawn for each from a normal distribution, rounded, and clamped to what a datagram can have.
    Normal {
        /// Mean of the distribution before it is clamped.
        mean: f64,
        /// Its standard deviation.
        sd: f64,
    },
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let normal = |figures: &str| {
            let (mean, sd) = figures.split_once(',')?;
            let (mean, sd) = (mean.parse::<f64>().ok()?, sd.parse::<f64>().ok()?);
            (mean.is_finite() && sd.is_finite() && sd >= 0.0).then_some(Self::Normal { mean, sd })
        };
        let size = match text.strip_prefix("normal:") {
            Some(figures) => normal(figures),
            None => text.parse().ok().map(Self::Fixed),
        };
        size.ok_or_else(|| {
            "use bytes, such as 1470, or normal:MEAN,SD, such as normal:800,200".to_owned()
        })
    }
}

impl Size {
    /// Returns the size of each datagram in turn, the same for the same seed.
    ///
    /// # Errors
    /// The size or the mean is outside the limits.
    pub(super) fn draw(
        self,
        limits: RangeInclusive<usize>,
        seed: u64,
    ) -> Result<impl Iterator<Item = usize>, TrafficError> {
        let (mean, sd) = match self {
            Self::Fixed(size) => (size as f64, 0.0),
            Self::Normal { mean, sd } => (mean, sd),
        };
        let [least, most] = [*limits.start() as f64, *limits.end() as f64];
        fits(mean, [least, most])?;
        let mut random = Random::new(seed);
        Ok(std::iter::repeat_with(move || {
            let size = if sd > 0.0 {
                mean + sd * random.normal()
            } else {
                mean
            };
            size.round().clamp(least, most) as usize
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let normal = |mean, sd| Ok(Size::Normal { mean, sd });
        assert_eq!("1470".parse(), Ok(Size::Fixed(1470)));
        assert_eq!("normal:800,200.5".parse(), normal(800.0, 200.5));
        for wrong in [
            "",
            "x",
            "-1",
            "normal:",
            "normal:800",
            "normal:800,-1",
            "normal:inf,1",
        ] {
            assert!(
                wrong
                    .parse::<Size>()
                    .unwrap_err()
                    .contains("normal:800,200"),
                "{wrong}"
            );
        }
    }

    /// Of 10,000 draws, mean and standard deviation are within 4.5 standard errors: an error in 1 of 70,000 seeds,
    /// and the seed is constant.
    #[test]
    fn a_normal_distribution_is_clamped_and_repeats() {
        let draw = |mean, sd, seed| {
            let sizes = Size::Normal { mean, sd }.draw(28..=1472, seed).unwrap();
            sizes.take(10_000).collect::<Vec<_>>()
        };
        let sizes = draw(700.0, 100.0, 1);
        let count = sizes.len() as f64;
        let mean = sizes.iter().sum::<usize>() as f64 / count;
        let square = |size: &usize| (*size as f64 - mean).powi(2);
        let sd = (sizes.iter().map(square).sum::<f64>() / count).sqrt();
        assert!((mean - 700.0).abs() < 4.5, "{mean}");
        assert!((sd - 100.0).abs() < 3.2, "{sd}");
        assert_eq!(sizes, draw(700.0, 100.0, 1));
        assert_ne!(sizes, draw(700.0, 100.0, 2));
        let wide = draw(700.0, 700.0, 1);
        assert_eq!(wide.iter().min().zip(wide.iter().max()), Some((&28, &1472)));
        let mut fixed = Size::Fixed(500).draw(16..=1472, 1).unwrap();
        assert_eq!([fixed.next(), fixed.next()], [Some(500); 2]);
        for wrong in [15, 1473] {
            assert!(Size::Fixed(wrong).draw(16..=1472, 1).is_err());
        }
    }
}
