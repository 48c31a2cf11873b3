// SPDX-License-Identifier: MIT OR Apache-2.0
//! M: how long a chain of routers one host carries, and whether the monitor alarms in time.

use emud_monitor::event::Resource;
use emud_monitor::log::RunVerdict;

use super::live::Variant;
use super::m_contention::{self, thresholds, worst};
use super::search::{Seen, first, next};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m-chain",
    description: "Routers of 100 Mbit/s in a row until TCP deviates by 5 %, and the alarm before it, as table 4.2",
    source: m_contention::EXPERIMENT.source,
    method: "a TCP transfer of 20 s (--quick: 5 s) through longer and longer chains of the scenario m-chain, judged by the \
             published thresholds, whatever --monitor says",
    scenarios: &["m-chain"],
    measure,
};

/// 100 Mbit/s without what frames and headers take, bytes/s.
const EXPECTED: f64 = 12.5e6 * 1448.0 / 1538.0;
/// Of the result, from which on it is wrong.
const DEVIATION: f64 = 0.05;
const PORT: u16 = 6001;
/// Packets begin with a TTL of 64, and the 64th router drops them (`ip_forward()`).
const ROUTERS: [u32; 14] = [1, 2, 4, 6, 8, 9, 10, 11, 12, 16, 24, 32, 48, 63];
/// Of the source; the client and the server are two of them.
const PUBLISHED_DEVIATION: f64 = 12.0;
const PUBLISHED_ALARM: f64 = 11.0;
/// Of what a chain shows, in the order of [`Found`].
const DEVIATES: usize = 0;
const NETWORK: usize = 3;
/// 1 Gbit/s of internal devices is reached with 10 hops of 100 Mbit/s, so with 9 routers.
const MOST_HOPS: f64 = 10.0;
const ENDS: f64 = 2.0;
/// Seven overloaded routers raised 2,017 alarms in 5 s. Of one beyond the limit the time is unknown, so it can be
/// explained by nothing.
const ALARMS: u32 = 100_000;
const TWICE: &str = "a frame passes two devices for each hop: engine hold's TAP besides the veth";

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let time = if bench.quick { "5s" } else { "20s" };
    let mut config = thresholds(false);
    config.alarms.limit = ALARMS;
    let (mut shortest, mut seen, mut runs) = (None, Seen::new(), vec![]);
    while let Some(routers) = next(&ROUTERS, &seen, &[DEVIATES, NETWORK]) {
        let counts = bench.overloaded(
            &Variant {
                title: &format!("{routers} routers"),
                scenario: "m-chain",
                nodes: Some(routers),
                env: &[("TIME", time.to_owned())],
                ..Variant::default()
            },
            &config,
        )?;
        runs.push(match counts.only_late {
            // An alarm of the monitor as any other one, and overload is what is looked for.
            true => RunVerdict::Contended,
            false => counts.verdict,
        });
        let rate = counts.goodput(PORT);
        shortest = shortest.or(rate);
        let wrong = rate.is_some_and(|rate| (rate / EXPECTED - 1.0).abs() > DEVIATION);
        let shown = [
            wrong,
            counts.only_late,
            counts.only_late || !counts.contended.is_empty(),
            counts.contended.contains(&Resource::Network),
        ];
        seen.insert(routers, shown);
    }
    Ok(figures(shortest, Found::of(&seen), &runs))
}

/// Smallest numbers of nodes.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// With which TCP deviates.
    deviates: Option<f64>,
    /// In which packets left late while the host lacked nothing.
    late: Option<f64>,
    /// With which any criterion alarms.
    alarms: Option<f64>,
    /// With which that of the network alarms.
    network: Option<f64>,
}

impl Found {
    fn of(seen: &Seen<4>) -> Self {
        let nodes = |what| first(seen, what).map(|routers| f64::from(routers) + ENDS);
        Self {
            deviates: nodes(DEVIATES),
            late: nodes(1),
            alarms: nodes(2),
            network: nodes(NETWORK),
        }
    }
}

/// A chain without a deviation has none up to the longest one that was tried. An alarm is what is measured,
/// but a chain in which the emulation failed may deviate for that.
fn figures(shortest: Option<f64>, found: Found, runs: &[RunVerdict]) -> Vec<Figure> {
    let run = worst(runs);
    let longest = f64::from(ROUTERS[ROUTERS.len() - 1]) + ENDS;
    // Within its tolerance, too, it is not that of a clean run. Contention may explain late packets.
    let name = match found.alarms == Some(1.0 + ENDS) {
        true => "1 router, with an alarm: TCP",
        false => "1 router: TCP",
    };
    let rate = Figure::new(name, "Mbit/s").theory(EXPECTED * 8e-6);
    let rate = rate.measured(shortest.map(|rate| rate * 8e-6), worst(&runs[..1]));
    // The number depends on the machine; that it is not before the alarm does not.
    let name = match found.deviates {
        Some(_) => "nodes from which TCP deviates by 5 %",
        None => "nodes up to which TCP does not deviate by 5 %",
    };
    let from = Figure::new(name, "nodes");
    let from = from
        .published(PUBLISHED_DEVIATION)
        .within(Tolerance::AtLeast(1.0 + ENDS))
        .measured(shortest.and(found.deviates.or(Some(longest))), run);
    let alarm = Figure::new("nodes from which the network criterion alarms", "nodes");
    let alarm = alarm
        .published(PUBLISHED_ALARM)
        .theory(MOST_HOPS - 1.0 + ENDS)
        .within(Tolerance::Absolute(1.0))
        .known(1.0 + ENDS, MOST_HOPS - 1.0 + ENDS, TWICE)
        .measured(found.network, run);
    let after = |alarms: f64| alarms - found.deviates.unwrap_or(longest);
    let late = Figure::new("first alarm after the deviation", "nodes");
    let late = late
        .published(PUBLISHED_ALARM - PUBLISHED_DEVIATION)
        .within(Tolerance::Range(-longest, 0.0))
        .measured(found.alarms.map(after), run);
    // Depends on the machine, and need not be at all.
    let emulator = Figure::new(
        "nodes from which packets leave late without contention",
        "nodes",
    );
    let emulator = emulator
        .within(Tolerance::AtLeast(1.0 + ENDS))
        .measured(found.late, run);
    let emulator = found.late.map(|_| emulator);
    let figures = [rate, from, alarm].into_iter().chain(emulator);
    figures.chain([late]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::reproduce::FigureVerdict;

    /// TCP deviates from 25 routers on, and the first alarm comes with 31: six nodes late.
    #[test]
    fn the_numbers_are_exact() {
        let mut seen = Seen::new();
        while let Some(routers) = next(&ROUTERS, &seen, &[DEVIATES, NETWORK]) {
            assert!(seen.len() < 30);
            let alarms = routers >= 31;
            let shown = [routers >= 25, false, alarms, alarms];
            assert!(seen.insert(routers, shown).is_none(), "{routers} again");
        }
        let found = Found::of(&seen);
        assert_eq!((found.deviates, found.alarms), (Some(27.0), Some(33.0)));
    }

    fn verdict(deviates: Option<f64>, alarms: Option<f64>) -> FigureVerdict {
        let found = Found {
            deviates,
            alarms,
            network: alarms,
            late: None,
        };
        let [.., late] = &figures(Some(EXPECTED), found, &[RunVerdict::Contended])[..] else {
            panic!()
        };
        late.verdict
    }

    #[test]
    fn an_alarm_is_never_after_the_deviation() {
        assert_eq!(verdict(Some(12.0), Some(11.0)), FigureVerdict::Within);
        assert_eq!(verdict(Some(12.0), Some(12.0)), FigureVerdict::Within);
        assert_eq!(verdict(Some(12.0), Some(13.0)), FigureVerdict::Deviates);
        assert_eq!(verdict(None, Some(13.0)), FigureVerdict::Within);
        assert_eq!(verdict(Some(12.0), None), FigureVerdict::Missing);
    }

    #[test]
    fn no_deviation_is_not_one_of_the_longest_chain() {
        let of = |deviates| {
            let found = Found {
                deviates,
                ..Found::default()
            };
            let figure = figures(Some(EXPECTED), found, &[RunVerdict::Contended]).swap_remove(1);
            (figure.figure, figure.measured)
        };
        let named = |name: &str, nodes| (name.to_owned(), Some(nodes));
        assert_eq!(
            of(Some(12.0)),
            named("nodes from which TCP deviates by 5 %", 12.0)
        );
        assert_eq!(
            of(None),
            named("nodes up to which TCP does not deviate by 5 %", 65.0)
        );
    }

    #[test]
    fn a_chain_that_failed_says_nothing() {
        use FigureVerdict::{Invalid, Within};
        let found = Found {
            deviates: Some(12.0),
            alarms: Some(11.0),
            network: Some(11.0),
            late: None,
        };
        let of = |runs: [RunVerdict; 2]| {
            let figures = figures(Some(EXPECTED), found, &runs);
            figures.iter().map(|f| f.verdict).collect::<Vec<_>>()
        };
        let (clean, contended) = (RunVerdict::Clean, RunVerdict::Contended);
        assert_eq!(of([clean, contended]), [Within; 4]);
        let late = of([clean, RunVerdict::Invalid]);
        assert_eq!(late, [Within, Invalid, Invalid, Invalid]);
        assert_eq!(of([RunVerdict::Invalid, contended]), [Invalid; 4]);
    }

    /// Late packets are a sign as any other alarm, but no figure hides them.
    #[test]
    fn late_packets_have_a_row_and_mark_the_baseline() {
        let of = |late| {
            let found = Found {
                deviates: Some(12.0),
                late,
                alarms: late.or(Some(11.0)),
                network: Some(11.0),
            };
            let figures = figures(Some(EXPECTED), found, &[RunVerdict::Contended]);
            let row = |figure: &Figure| (figure.figure.clone(), figure.measured);
            figures.iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(of(None).len(), 4);
        let from_two_on = of(Some(4.0));
        assert_eq!(from_two_on[0].0, "1 router: TCP");
        let emulator = "nodes from which packets leave late without contention";
        assert_eq!(from_two_on[3], (emulator.to_owned(), Some(4.0)));
        assert_eq!(from_two_on[4].1, Some(-8.0));
        assert_eq!(of(Some(3.0))[0].0, "1 router, with an alarm: TCP");
    }
}
