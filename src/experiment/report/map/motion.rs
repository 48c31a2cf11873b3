// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values over time, as SMIL has them.

use super::scale::Scale;
use crate::experiment::results::StationPosition;

/// A map shows a run in this time at most, s.
const LONGEST_S: f64 = 24.0;
/// Largest distance of a point from a straight line, px.
const OFF: f64 = 0.4;

/// Returns how long a map shows a run of a duration, s.
pub fn shown(end_s: f64) -> f64 {
    end_s.clamp(1.0, LONGEST_S)
}

/// Values of the attributes `keyTimes` and `values`.
pub struct Motion {
    pub times: String,
    pub values: String,
}

impl Motion {
    /// Returns the motion along these positions; `None`: the station does not move.
    pub fn of_places(
        places: &[(f64, &StationPosition)],
        end_s: f64,
        scale: &Scale,
    ) -> Option<Self> {
        let points = places
            .iter()
            .map(|(at_s, place)| (*at_s, scale.px(place.at_m)));
        let points: Vec<_> = points.collect();
        if points.windows(2).all(|pair| pair[0].1 == pair[1].1) {
            return None;
        }
        let text = |[x, y]: [f64; 2]| format!("{x},{y}");
        let points = straight(&points).into_iter();
        Self::of(points.map(|(at_s, px)| (at_s / end_s, text(px))).collect())
    }

    /// Opacities; none: always 1.
    pub fn of_changes(changes: &[(f64, bool)], end_s: f64) -> Option<Self> {
        if let [(_, true)] = changes {
            return None;
        }
        let value = |is: bool| if is { "1" } else { "0" }.to_owned();
        let values = changes.iter();
        let values = values.map(|(at_s, is)| (at_s / end_s.max(1e-9), value(*is)));
        Self::of(values.collect())
    }

    /// The first time of SMIL is 0, and the last one of a motion 1.
    fn of(mut values: Vec<(f64, String)>) -> Option<Self> {
        let (first, last) = (values.first()?.1.clone(), values.last()?.1.clone());
        if values.first().is_some_and(|(at, _)| *at > 0.0) {
            values.insert(0, (0.0, first));
        }
        if values.last().is_some_and(|(at, _)| *at < 1.0) {
            values.push((1.0, last));
        }
        let times: Vec<String> = values.iter().map(|(at, _)| key_time(*at)).collect();
        let values: Vec<String> = values.into_iter().map(|(_, value)| value).collect();
        Some(Self {
            times: times.join(";"),
            values: values.join(";"),
        })
    }
}

fn key_time(share: f64) -> String {
    let text = format!("{:.4}", share.clamp(0.0, 1.0));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() { "0" } else { text }.to_owned()
}

/// Leaves out the points of straight lines at constant speed.
fn straight(points: &[(f64, [f64; 2])]) -> Vec<(f64, [f64; 2])> {
    let mut kept: Vec<usize> = vec![0];
    for next in 2..points.len() {
        let from = kept.last().copied().unwrap_or(0);
        let ((t0, a), (t1, b)) = (points[from], points[next]);
        let is_near = |(t, p): &(f64, [f64; 2])| {
            let share = (t - t0) / (t1 - t0).max(1e-9);
            (0..2).all(|axis| (a[axis] + share * (b[axis] - a[axis]) - p[axis]).abs() < OFF)
        };
        if !points[from + 1..next].iter().all(is_near) {
            kept.push(next - 1);
        }
    }
    kept.push(points.len() - 1);
    kept.dedup();
    kept.into_iter().map(|n| points[n]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_ways_need_their_ends_only() {
        let mut points: Vec<_> = (0..=100)
            .map(|s| (f64::from(s), [f64::from(s) * 3.0, 7.0]))
            .collect();
        points.extend((101..=200).map(|s| (f64::from(s), [300.0, f64::from(s) - 93.0])));
        let kept: Vec<f64> = straight(&points).iter().map(|(s, _)| *s).collect();
        assert_eq!(kept, [0.0, 100.0, 200.0]);
        assert_eq!(straight(&points[..1]).len(), 1);
    }

    #[test]
    fn times_begin_with_0_and_end_with_1() {
        let motion = Motion::of_changes(&[(0.0, false), (30.0, true), (45.0, false)], 60.0);
        let motion = motion.map(|motion| (motion.times, motion.values));
        let want = ("0;0.5;0.75;1".to_owned(), "0;1;0;0".to_owned());
        assert_eq!(motion, Some(want));
        assert!(Motion::of_changes(&[(0.0, true)], 60.0).is_none());
    }
}
