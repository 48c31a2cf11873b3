// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delay and loss of a direction over time, for plots of a profile and for means.

use crate::profile::{Link, LinkState, Profile, TraceRow, TraceSource};

/// At most so many points of a curve.
const POINTS: usize = 2000;
/// Points of a ramp.
const RAMP: u32 = 50;

/// (s, value), each from its moment on.
pub type Steps = Vec<(f64, f64)>;

/// What a direction's mean delay is by time, in ns.
pub fn delays(profile: &Profile, direction: u32) -> Steps {
    let of_row = |row: &TraceRow| row.delay_ns.map(|ns| ns as f64);
    steps(profile, direction, &|l| l.delay.mean_ns as f64, &of_row)
}

/// The share of packets that a direction loses by time; of a bit-error rate those of `frame` bytes.
pub fn losses(profile: &Profile, direction: u32, frame: u32) -> Steps {
    let of_link = |link: &Link| match link.state {
        LinkState::Down => 1.0,
        LinkState::Up => link.loss.share_of(frame),
    };
    steps(profile, direction, &of_link, &|row: &TraceRow| row.loss)
}

fn steps(
    profile: &Profile,
    direction: u32,
    of_link: &dyn Fn(&Link) -> f64,
    of_row: &dyn Fn(&TraceRow) -> Option<f64>,
) -> Steps {
    let link = profile.direction(direction);
    let own = of_link(link);
    if let Some(trace) = &link.trace {
        let TraceSource::Rows { rows, .. } = &trace.source else {
            return vec![(0.0, own)];
        };
        let point = |row: &TraceRow| (row.at_ns as f64 / 1e9, of_row(row).unwrap_or(own));
        return rows.iter().map(point).collect();
    }
    let phases = &profile.phases;
    let mut before = match (phases.repeat, phases.list.last()) {
        (true, Some(last)) => of_link(last.direction(direction)),
        _ => own,
    };
    let (mut steps, mut at_s) = (Vec::new(), 0.0);
    for (place, for_ns) in phases.shown(profile.seed.unwrap_or(0)) {
        let phase = &phases.list[place];
        let now = of_link(phase.direction(direction));
        let for_s = for_ns as f64 / 1e9;
        let parts = if phase.ramp { RAMP } else { 1 };
        for i in 0..parts {
            let part = |place: f64| place / f64::from(parts);
            // Each has the value of its middle, as the rows that the classifier reads.
            let value = match phase.ramp {
                true => before + (now - before) * part(f64::from(i) + 0.5),
                false => now,
            };
            steps.push((at_s + for_s * part(f64::from(i)), value));
        }
        (at_s, before) = (at_s + for_s, now);
        if phase.ramp {
            steps.push((at_s, now));
        }
    }
    if steps.is_empty() {
        steps.push((0.0, own));
    }
    steps
}

/// The highest of as many as one can see, for a plot: what is short and bad must not go away. Means
/// need all steps.
pub fn thinned(steps: Steps) -> Steps {
    let each = steps.len().div_ceil(POINTS).max(1);
    steps
        .chunks(each)
        .map(|some| {
            let highest = some.iter().map(|s| s.1).fold(f64::MIN, f64::max);
            (some[0].0, highest)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Profile {
        Profile::parse(text, "test").unwrap()
    }

    #[test]
    fn rows_and_phases_have_their_delays_and_losses() {
        let rows = profile(
            "[link]\nloss = \"1%\"\n\
             trace = { rows = \"time_ns,delay_ns;0,5000000;1000000000,9000000\", period = \"2s\" }",
        );
        assert_eq!(delays(&rows, 0), [(0.0, 5e6), (1.0, 9e6)]);
        assert_eq!(losses(&rows, 0, 1514), [(0.0, 0.01), (1.0, 0.01)]);
        let phases = profile(
            "[link]\n[[phase]]\nfor = \"2s\"\ndelay = \"10ms\"\n[[phase]]\nfor = \"1s\"\n\
             state = \"down\"\n[[phase]]\nloss = { model = \"gilbert-elliott\", p = \"10%\", r = \"30%\" }",
        );
        assert_eq!(delays(&phases, 0), [(0.0, 1e7), (2.0, 1e7), (3.0, 0.0)]);
        let loss = losses(&phases, 0, 1514);
        assert_eq!(loss[..2], [(0.0, 0.0), (2.0, 1.0)]);
        assert!((loss[2].1 - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_ramp_goes_from_one_to_the_other() {
        let ramp = profile(
            "[link]\ndelay = \"10ms\"\n[[phase]]\nfor = \"1s\"\nramp = true\ndelay = \"20ms\"\n\
             [[phase]]\ndelay = \"20ms\"",
        );
        let steps = delays(&ramp, 0);
        assert!((steps[0].1 - 10.1e6).abs() < 1.0 && (steps[49].1 - 19.9e6).abs() < 1.0);
        assert_eq!(steps.last(), Some(&(1.0, 20e6)));
    }

    #[test]
    fn what_is_short_stays_to_be_seen() {
        let mut steps: Steps = (0..10_000).map(|i| (f64::from(i), 0.0)).collect();
        steps[4321].1 = 1.0;
        let thin = thinned(steps);
        assert_eq!(thin.len(), POINTS);
        assert_eq!(thin.iter().filter(|s| s.1 == 1.0).count(), 1);
    }
}
