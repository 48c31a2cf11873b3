// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delay and loss of a direction over time, for plots of a profile and for means.

use crate::profile::quantile::{delay_table, table_moments};
use crate::profile::{Link, LinkState, Loss, Profile, TraceRow, TraceSource};

/// Maximum number of points of a curve.
const POINTS: usize = 2000;
/// Points of a ramp.
const RAMP: u32 = 50;

/// (s, value), each from its moment on.
pub type Steps = Vec<(f64, f64)>;

/// A figure of a link: what a ramp changes, and what follows from that, or from what a row says;
/// `None`: from the link's own.
type Figure<'a> = (f64, Box<dyn Fn(Option<f64>) -> f64 + 'a>);

/// Returns a direction's mean delay of all packets by time, in ns.
pub fn delays(profile: &Profile, direction: u32) -> Steps {
    let of_link = |link: &Link| -> Figure<'_> {
        let (delay, own) = (&link.delay, link.delay.mean_ns as f64);
        let table = delay.max_ns.and_then(|_| delay_table(delay).ok());
        let cut = table.map_or(0.0, |table| table_moments(&table).0 - own);
        let share = delay.share.unwrap_or(1.0);
        let mean = move |ns: Option<f64>| share * (ns.unwrap_or(own) + cut);
        (own, Box::new(mean))
    };
    steps(profile, direction, &of_link, &delay_of_row)
}

/// Returns the key `mean` of a direction's delay by time, in ns.
pub fn means(profile: &Profile, direction: u32) -> Steps {
    let of_link = |link: &Link| -> Figure<'_> {
        let own = link.delay.mean_ns as f64;
        (own, Box::new(move |ns| ns.unwrap_or(own)))
    };
    steps(profile, direction, &of_link, &delay_of_row)
}

fn delay_of_row(row: &TraceRow) -> Option<f64> {
    row.delay_ns.map(|ns| ns as f64)
}

/// Returns the share of packets that a direction loses by time; of a bit-error rate those of `frame` bytes.
pub fn losses(profile: &Profile, direction: u32, frame: u32) -> Steps {
    let of_link = |link: &Link| -> Figure<'_> {
        let (state, max_run) = (link.state, link.loss.max_run);
        let own = link.loss.share_of(frame);
        let independent = move |probability: f64| Loss {
            max_run,
            ..probability.into()
        };
        let share = move |loss: Option<f64>| match (state, loss) {
            // Whatever the rows of a ramp say of the link.
            (LinkState::Down, _) => 1.0,
            (LinkState::Up, None) => own,
            (LinkState::Up, Some(loss)) => independent(loss).share_of(frame),
        };
        (link.loss.probability(), Box::new(share))
    };
    steps(profile, direction, &of_link, &|row: &TraceRow| row.loss)
}

fn steps<'a>(
    profile: &'a Profile,
    direction: u32,
    of_link: &dyn Fn(&'a Link) -> Figure<'a>,
    of_row: &dyn Fn(&TraceRow) -> Option<f64>,
) -> Steps {
    let link = profile.direction(direction);
    let (mut before, own) = of_link(link);
    if let Some(trace) = &link.trace {
        let TraceSource::Rows { rows, .. } = &trace.source else {
            return vec![(0.0, own(None))];
        };
        let point = |row: &TraceRow| (row.at_ns as f64 / 1e9, own(of_row(row)));
        return rows.iter().map(point).collect();
    }
    let phases = &profile.phases;
    if let (true, Some(last)) = (phases.repeat, phases.list.last()) {
        before = of_link(last.direction(direction)).0;
    }
    let (mut steps, mut at_s) = (Vec::new(), 0.0);
    for (place, for_ns) in phases.shown(profile.seed.unwrap_or(0)) {
        let phase = &phases.list[place];
        let (now, shown) = of_link(phase.direction(direction));
        let for_s = for_ns as f64 / 1e9;
        let parts = if phase.ramp { RAMP } else { 1 };
        for i in 0..parts {
            let part = |place: f64| place / f64::from(parts);
            // Each has the value of its middle, as the rows that the classifier reads.
            let between = before + (now - before) * part(f64::from(i) + 0.5);
            let value = shown((phase.ramp && before != now).then_some(between));
            steps.push((at_s + for_s * part(f64::from(i)), value));
        }
        (at_s, before) = (at_s + for_s, now);
        if phase.ramp {
            steps.push((at_s, shown(None)));
        }
    }
    if steps.is_empty() {
        steps.push((0.0, own(None)));
    }
    steps
}

/// Returns the highest of as many as one can see, for a plot: what is short and bad must not go away. Means
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

    /// A ramp starts at the link's own loss, as in the rows that the classifier reads.
    #[test]
    fn an_outage_is_no_loss_to_begin_a_ramp_with() {
        let down = "state = \"down\"\n[[phase]]\nfor = \"1s\"\nramp = true\n";
        let outage = |ramp: &str, last: &str| {
            let text = format!(
                "[link]\nloss = \"2%\"\n[[phase]]\nfor = \"1s\"\n{down}{ramp}[[phase]]\n{last}"
            );
            losses(&profile(&text), 0, 1514)
        };
        let stays = outage("", "");
        assert_eq!(stays[0], (0.0, 1.0));
        assert!(stays[1..].iter().all(|s| s.1 == 0.02), "{stays:?}");
        let rises = outage("loss = \"12%\"\n", "state = \"down\"\n");
        assert!((rises[1].1 - 0.021).abs() < 1e-12 && (rises[50].1 - 0.119).abs() < 1e-12);
        assert_eq!(rises.last(), Some(&(2.0, 1.0)));
        let falls = outage("loss = \"12%\"\nstate = \"down\"\n", "");
        assert!(falls[..52].iter().all(|s| s.1 == 1.0), "{falls:?}");
    }

    /// p (1 - p^n) / (1 - p^(n+1)), of rows and of the links of ramps.
    #[test]
    fn the_longest_run_is_that_of_rows_too() {
        let loss = "loss = { probability = 0, max-run = 1 }\n";
        let rows = "trace = { rows = \"time_s,loss_%;0,50;1,100;2,0\" }";
        let of_rows = losses(&profile(&format!("[link]\n{loss}{rows}")), 0, 1514);
        for ((_, share), want) in of_rows.iter().zip([1.0 / 3.0, 0.5, 0.0]) {
            assert!((share - want).abs() < 1e-12, "{share} {want}");
        }
        let ramp = losses(
            &profile(
                "[link]\n[[phase]]\nfor = \"1s\"\nramp = true\n\
                 loss = { probability = \"100%\", max-run = 1 }",
            ),
            0,
            1514,
        );
        assert!((ramp[49].1 - 0.99 / 1.99).abs() < 1e-12, "{ramp:?}");
    }

    /// 50 ms of half the packets; a uniform 0 to 100 ms that is cut at 50 ms has a mean of 37.5 ms.
    #[test]
    fn the_mean_delay_is_that_of_all_packets() {
        let half = profile(
            "[link]\ndelay = { mean = \"50ms\", share = \"50%\" }\n\
             trace = { rows = \"time_s,delay_ms;0,50;1,90\" }",
        );
        assert_eq!(delays(&half, 0), [(0.0, 25e6), (1.0, 45e6)]);
        assert_eq!(means(&half, 0), [(0.0, 50e6), (1.0, 90e6)]);
        let cut = profile(
            "[link]\n[[phase]]\n\
             delay = { mean = \"50ms\", jitter = \"50ms\", max = \"50ms\", share = \"50%\" }",
        );
        let [(_, mean)] = delays(&cut, 0)[..] else {
            panic!()
        };
        assert!((mean / 18.75e6 - 1.0).abs() < 1e-3, "{mean}");
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
