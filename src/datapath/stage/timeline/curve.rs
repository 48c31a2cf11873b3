// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the rate of a link is by time, to print and to plot it.

use super::{OPPORTUNITY, Rate, Step, phase_steps};
use crate::profile::{Profile, TraceRow, TraceSource};

/// Maximum number of points of a curve.
const POINTS: usize = 2000;

/// Returns a direction's rate by time: (s, bit/s; infinite: no limit) and its end, s; one point if the rate
/// does not change. Many rows, and opportunities, are means over some time.
pub fn rates(profile: &Profile, direction: u32) -> (Vec<(f64, f64)>, f64) {
    let link = profile.direction(direction);
    let own = link.rate.map_or(f64::INFINITY, |bits| bits as f64);
    let (steps, end_ns) = match &link.trace {
        Some(trace) => match &trace.source {
            TraceSource::Rows { rows, period_ns } => {
                let step = |row: &TraceRow| Step::of_trace(row, None, None);
                (rows.iter().map(step).collect(), *period_ns)
            }
            TraceSource::Mahimahi(ms) => return of_opportunities(ms),
            TraceSource::InForce(_) => (Vec::new(), 0),
        },
        None => {
            let sequence = profile.phases.shown(profile.seed.unwrap_or(0));
            let steps = phase_steps(profile, direction, &sequence);
            let all: u64 = sequence.iter().map(|(_, ns)| ns).sum();
            // The last one, for ever, is shown for a while.
            let last = steps.last().map_or(0, |s| s.at_ns);
            (steps, all.max(last + last / 10).max(1))
        }
    };
    let points: Vec<_> = steps
        .iter()
        .map(|step| {
            let rate = match step.rate {
                Rate::Own => own,
                Rate::Unlimited => f64::INFINITY,
                Rate::Bits(bits) => bits as f64,
            };
            (step.at_ns as f64 / 1e9, rate)
        })
        .collect();
    match points.len() {
        0 => (vec![(0.0, own)], 1.0),
        _ => (thinned(points, end_ns as f64 / 1e9), end_ns as f64 / 1e9),
    }
}

fn of_opportunities(ms: &[u32]) -> (Vec<(f64, f64)>, f64) {
    let end_ms = ms.last().copied().unwrap_or(1).max(1);
    let bin_ms = end_ms.div_ceil(POINTS as u32).max(100);
    // What is left over at the end is the last one's: a bin of a few ms would be noise.
    let bins = (end_ms / bin_ms).max(1);
    let mut counts = vec![0u32; bins as usize];
    for at in ms {
        // Of the time up to it: the last of all is at the very end.
        let bin = (at.saturating_sub(1) / bin_ms).min(bins - 1);
        counts[bin as usize] += 1;
    }
    let points = (0..).zip(counts).map(|(i, n): (u32, u32)| {
        let start = i * bin_ms;
        let end = if i + 1 == bins {
            end_ms
        } else {
            start + bin_ms
        };
        let bits = f64::from(n) * OPPORTUNITY as f64 * 8.0;
        (f64::from(start) / 1e3, bits * 1e3 / f64::from(end - start))
    });
    (points.collect(), f64::from(end_ms) / 1e3)
}

/// Means over equal times, where there are too many points.
fn thinned(points: Vec<(f64, f64)>, end_s: f64) -> Vec<(f64, f64)> {
    if points.len() <= POINTS {
        return points;
    }
    let width = end_s / POINTS as f64;
    let mut bins = vec![0.0; POINTS];
    let ends = points.iter().skip(1).map(|p| p.0).chain([end_s]);
    let bin = |s: f64| ((s / width) as usize).min(POINTS - 1);
    for ((at, rate), end) in points.iter().zip(ends) {
        // By whole numbers: (k * width) / width may be less than k.
        let first = bin(*at);
        for (i, mean) in (first..).zip(&mut bins[first..=bin(end)]) {
            let (from, to) = (at.max(i as f64 * width), end.min((i + 1) as f64 * width));
            if to > from {
                *mean += rate * (to - from) / width;
            }
        }
    }
    let at = |i: usize| i as f64 * width;
    (0..POINTS).map(at).zip(bins).collect()
}
