// SPDX-License-Identifier: MIT OR Apache-2.0
//! A direction of a link, or the host, over time, in a bounded number of points.

use super::Tally;

/// More than a plot's pixels would show apart.
const POINTS: usize = 400;

/// Samples added up.
pub trait Point: Clone {
    /// Adds a later interval.
    fn add(&mut self, later: &Self);
    /// From the beginning of the first interval to the end of the last, ns of CLOCK_MONOTONIC.
    fn span_ns(&self) -> (u64, u64);
}

impl Point for Tally {
    fn add(&mut self, later: &Self) {
        Self::add(self, later);
    }

    fn span_ns(&self) -> (u64, u64) {
        (self.from_ns, self.until_ns)
    }
}

/// Each point is as many samples together as it takes for `POINTS` to be enough.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<T = Tally> {
    points: Vec<T>,
    /// Samples a point has.
    each: u64,
    /// Samples of the last point.
    of_last: u64,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            each: 1,
            of_last: 0,
        }
    }
}

impl<T: Point> Series<T> {
    pub(crate) fn push(&mut self, sample: &T) {
        match self.points.last_mut() {
            Some(last) if self.of_last < self.each => {
                last.add(sample);
                self.of_last += 1;
            }
            _ => {
                if self.points.len() == POINTS {
                    self.halve();
                }
                self.points.push(sample.clone());
                self.of_last = 1;
            }
        }
    }

    fn halve(&mut self) {
        let pairs = self.points.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            pair[1..].iter().for_each(|more| sum.add(more));
            sum
        });
        self.points = pairs.collect();
        self.each *= 2;
    }

    /// Returns the points in the order of time.
    pub fn points(&self) -> &[T] {
        &self.points
    }

    /// Samples that a point has, at most.
    pub fn samples_each(&self) -> u64 {
        self.each
    }
}

#[cfg(test)]
mod tests {
    use emud_monitor::log::Counted;

    use super::*;

    #[test]
    fn nothing_is_lost_when_points_are_joined() {
        let mut series = Series::default();
        for second in 0..100_000 {
            series.push(&Tally {
                from_ns: second * 1_000,
                until_ns: (second + 1) * 1_000,
                interval_ns: 1_000,
                counted: Counted {
                    packets: 3,
                    ..Counted::default()
                },
                ..Tally::default()
            });
        }
        let points = series.points();
        assert!((POINTS / 2..=POINTS).contains(&points.len()));
        assert_eq!(
            points.iter().map(|p| p.counted.packets).sum::<u64>(),
            300_000
        );
        assert!(points.windows(2).all(|p| p[0].until_ns == p[1].from_ns));
        assert!(
            points
                .iter()
                .all(|p| p.counted.packets <= 3 * series.samples_each())
        );
    }
}
