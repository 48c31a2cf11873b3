// SPDX-License-Identifier: MIT OR Apache-2.0
//! M: how long a chain of nodes one host carries, and whether the monitor alarms in time.

use emud_monitor::log::RunVerdict;

use super::counts::{Counts, but_contended};
use super::criterion::{Cell, Criterion, NODES, cell, worst};
use super::live::{Variant, lacks};
use super::m_contention::{self, thresholds};
use super::search::{Seen, first, next};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, m_manet, ping};
use crate::experiment::traffic::Transferred;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m-chain",
    description: "Routers of 100 Mbit/s and radios of 11 Mbit/s in a row until TCP deviates by 5 %, and the alarm before it, \
                  as table 4.2",
    source: m_contention::EXPERIMENT.source,
    method: "a TCP transfer of 20 s (--quick: 5 s) through longer and longer chains: of routers of the scenario m-chain, of \
             radios without a MAC and with babeld of the scenario m-adhoc, and again four times as long where TCP deviates \
             before any alarm; judged by the published thresholds, whatever --monitor says",
    scenarios: &["m-chain", "m-adhoc"],
    thresholds: m_contention::EXPERIMENT.thresholds,
    measure,
};

/// Of the result, from which on it is wrong.
const DEVIATION: f64 = 0.05;
const PORT: u16 = 6001;
/// The client and the server are nodes of the source's chains, too.
const ENDS: u32 = 2;
/// The shortest chain.
const LEAST: f64 = 1.0 + ENDS as f64;
/// How many times as long a chain runs again in which TCP deviates before any alarm: a host that is too slow stays so.
const LONGER: u32 = 4;
const START: &str = "TCP needs long to start here: in a run four times as long it does not deviate";
/// Seven overloaded routers raised 2,017 alarms in 5 s. Of one beyond the limit the time is unknown, so it can be
/// explained by nothing.
const ALARMS: u32 = 100_000;
const TWICE: &str = "a frame passes two devices for each hop: engine hold's TAP besides the veth";
/// Half of the hops are 4 routers, so 6 nodes; less by the tolerance.
const FROM_TWICE: f64 = 5.0;

/// A row of the table.
struct Chain {
    /// In front of the name of each figure.
    title: &'static str,
    scenario: &'static str,
    /// Numbers of routers, ascending: packets begin with a TTL of 64, and the 64th router drops them (`ip_forward()`).
    routers: &'static [u32],
    /// Goodput of TCP, bytes/s.
    expected: f64,
    /// With how many nodes results deviated.
    published: f64,
    /// The smallest published number of nodes with an alarm.
    first_alarm: f64,
    /// With how many nodes each criterion raised an alarm.
    cells: &'static [Cell],
    /// How many of the cells are looked for until they are found.
    sought: usize,
}

/// The number of nodes depends on the machine; that it is not before the alarm does not.
const ANY: Tolerance = Tolerance::Any;

const WIRED: Chain = Chain {
    title: "",
    scenario: "m-chain",
    routers: &[1, 2, 4, 6, 8, 9, 10, 11, 12, 16, 24, 32, 48, 63],
    // 100 Mbit/s without what frames and headers take.
    expected: 12.5e6 * 1448.0 / 1538.0,
    published: 12.0,
    first_alarm: 11.0,
    cells: &[
        Cell {
            // 1 Gbit/s of internal devices is reached with 10 hops of 100 Mbit/s, so with 9 routers.
            theory: Some(11.0),
            known: Some((FROM_TWICE, 11.0, TWICE)),
            ..cell(Criterion::Network, 11.0, Tolerance::Absolute(1.0))
        },
        Cell {
            may_be_silent: true,
            ..cell(Criterion::Cpu, 34.0, ANY)
        },
    ],
    sought: 1,
};

const AD_HOC: Chain = Chain {
    title: "ad hoc, ",
    scenario: "m-adhoc",
    routers: &[1, 8, 16, 32, 48, 63],
    // A relay also sends an acknowledgement of 52 bytes for two segments. There are no headers of frames.
    expected: 11e6 / 8.0 * 2896.0 / 3052.0,
    published: 29.0,
    first_alarm: 3.0,
    cells: &[
        Cell {
            may_be_silent: true,
            ..cell(Criterion::Cpu, 27.0, ANY)
        },
        Cell {
            may_be_silent: true,
            ..cell(Criterion::PageIn, 3.0, ANY)
        },
        Cell {
            may_be_silent: true,
            ..cell(Criterion::Disk, 3.0, ANY)
        },
    ],
    sought: 0,
};

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let mut figures = WIRED.measure(bench)?;
    let needed = [("babeld", m_manet::LACKS), ("ping", ping::LACKS)];
    let missing = needed.into_iter().find(|(program, _)| lacks(program));
    figures.extend(match missing {
        Some((_, remedy)) => {
            let figure = Figure::new(AD_HOC.deviation(true), NODES);
            vec![figure.published(AD_HOC.published).lacking(remedy)]
        }
        None => AD_HOC.measure(bench)?,
    });
    Ok(figures)
}

/// What a chain shows: TCP deviates, packets left late while the host lacked nothing, any criterion of the source alarms, and
/// from then on that of each cell.
const SHOWN: usize = 6;
const DEVIATES: usize = 0;
const LATE: usize = 1;
const ALARMED: usize = 2;
const FIRST_CELL: usize = 3;

/// The smallest numbers of nodes.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    by: [Option<f64>; SHOWN],
    /// The longest chain that was tried.
    longest: u32,
}

impl Found {
    fn of(seen: &Seen<SHOWN>) -> Self {
        let nodes = |what| first(seen, what).map(|routers| f64::from(routers + ENDS));
        Self {
            by: std::array::from_fn(nodes),
            longest: seen.keys().next_back().map_or(0, |routers| routers + ENDS),
        }
    }

    /// Returns with how many nodes TCP deviates, if no criterion alarms by then.
    fn unannounced(&self) -> Option<f64> {
        let alarmed = self.by[ALARMED];
        self.by[DEVIATES].filter(|at| alarmed.is_none_or(|alarm| alarm > *at))
    }
}

impl Chain {
    fn measure(&self, bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
        let seconds = if bench.quick { 5 } else { 20 };
        let (mut shortest, mut seen, mut runs) = (None, Seen::new(), vec![]);
        while let Some(routers) = next(self.routers, &seen, &self.until()) {
            let counts = self.run(bench, routers, seconds)?;
            runs.push(verdict(&counts));
            let rate = counts.transferred_to(PORT).map(rate);
            shortest = shortest.or(rate);
            let mut shown = [false; SHOWN];
            shown[DEVIATES] = rate.is_some_and(|rate| self.deviates(rate));
            shown[LATE] = counts.only_late;
            shown[ALARMED] = !counts.contention.is_empty();
            for (shown, cell) in shown[FIRST_CELL..].iter_mut().zip(self.cells) {
                *shown = cell.criterion.alarms(&counts.contention);
            }
            seen.insert(routers, shown);
        }
        let found = Found::of(&seen);
        let of_start = match found.unannounced() {
            Some(nodes) => {
                let counts = self.run(bench, nodes as u32 - ENDS, LONGER * seconds)?;
                let rate = counts.transferred_to(PORT).map(rate);
                let valid = but_contended(verdict(&counts)) == RunVerdict::Clean;
                valid && rate.is_some_and(|rate| !self.deviates(rate))
            }
            None => false,
        };
        Ok(self.figures(shortest, found, of_start, &runs))
    }

    fn run(&self, bench: &Bench<'_>, routers: u32, seconds: u32) -> Result<Counts, ReproduceError> {
        let mut config = thresholds(false);
        config.alarms.limit = ALARMS;
        let variant = Variant {
            title: &format!("{routers} routers, {seconds} s"),
            scenario: self.scenario,
            nodes: Some(routers),
            env: &[("TIME", format!("{seconds}s"))],
            ..Variant::default()
        };
        bench.overloaded(&variant, &config)
    }

    fn deviates(&self, rate: f64) -> bool {
        (rate / self.expected - 1.0).abs() > DEVIATION
    }

    /// Returns what is looked for.
    fn until(&self) -> Vec<usize> {
        let cells = FIRST_CELL..FIRST_CELL + self.sought;
        std::iter::once(DEVIATES).chain(cells).collect()
    }

    /// A chain without a deviation has none up to the longest one that was tried. An alarm is what is measured,
    /// but a chain in which the emulation failed may deviate for that.
    fn figures(
        &self,
        shortest: Option<f64>,
        found: Found,
        of_start: bool,
        runs: &[RunVerdict],
    ) -> Vec<Figure> {
        let (run, title, longest) = (worst(runs), self.title, f64::from(found.longest));
        let [deviates, late, alarmed] = [DEVIATES, LATE, ALARMED].map(|what| found.by[what]);
        // Within its tolerance, too, it is not that of a clean run. Contention may explain late packets.
        let alarm = match [alarmed, late].contains(&Some(LEAST)) {
            true => ", with an alarm",
            false => "",
        };
        let rate = Figure::new(format!("{title}1 router{alarm}: TCP"), "Mbit/s");
        let rate = rate.theory(self.expected * 8e-6);
        let rate = rate.measured(shortest.map(|rate| rate * 8e-6), worst(&runs[..1]));
        let from = Figure::new(self.deviation(deviates.is_some()), NODES);
        let from = from
            .published(self.published)
            .within(ANY)
            .measured(shortest.and(deviates.or(Some(longest))), run);
        let cells = self.cells.iter().zip(&found.by[FIRST_CELL..]);
        let cells = cells.map(|(cell, fewest)| {
            let name = cell.criterion.name();
            let titles = [
                format!("{title}nodes from which the {name} criterion alarms"),
                format!("{title}nodes up to which the {name} criterion does not alarm"),
            ];
            cell.judged(titles, *fewest, longest, runs)
        });
        // Depends on the machine, and need not be at all.
        let emulator = late.map(|late| {
            let name = format!("{title}nodes from which packets leave late without contention");
            let figure = Figure::new(name, NODES).within(ANY);
            figure.measured(Some(late), run)
        });
        let after = self.first_alarm(&found, of_start, run);
        let figures = [rate, from].into_iter().chain(cells);
        figures.chain(emulator).chain(after).collect()
    }

    /// Packets that leave late are no criterion of the source, and a host can make some late without a load.
    fn first_alarm(
        &self,
        found: &Found,
        of_start: bool,
        run: Option<RunVerdict>,
    ) -> Option<Figure> {
        let [deviates, alarmed] = [DEVIATES, ALARMED].map(|what| found.by[what]);
        let longest = f64::from(found.longest);
        // Without both there is nothing to compare.
        let at = deviates.or(alarmed.map(|_| longest))?;
        let name = format!(
            "{}first alarm of a criterion after the deviation",
            self.title
        );
        let (name, first) = match alarmed {
            // The next longer chain may have one.
            None if of_start => (format!("{name}, at the earliest"), Some(longest + 1.0)),
            alarmed => (name, alarmed),
        };
        let longest_of_all = f64::from(self.routers[self.routers.len() - 1] + ENDS);
        let tolerance = match deviates {
            Some(_) => Tolerance::Range(-longest_of_all, 0.0),
            // Any alarm is before a deviation that no chain has.
            None => Tolerance::Any,
        };
        let figure = Figure::new(name, NODES).published(self.first_alarm - self.published);
        let figure = match of_start {
            true => figure.known(0.0, longest_of_all, START),
            false => figure,
        };
        let figure = figure.within(tolerance);
        Some(figure.measured(first.map(|first| first - at), run))
    }

    fn deviation(&self, is_found: bool) -> String {
        let which = match is_found {
            true => "from which TCP deviates",
            false => "up to which TCP does not deviate",
        };
        format!("{}nodes {which} by 5 %", self.title)
    }
}

/// An alarm for late packets is one of the monitor as any other, and overload is what is looked for.
fn verdict(counts: &Counts) -> RunVerdict {
    match counts.only_late {
        true => RunVerdict::Contended,
        false => counts.verdict,
    }
}

/// Returns the rate of the acknowledged data, bytes/s: in the first round trip there is none. In 5 s over 20 radios, whose
/// queues make it 0.1 s long, this is 2 %.
fn rate(transferred: &Transferred) -> f64 {
    let mean_ns = transferred.rtt_ns.map_or(0, |[_, mean, _]| mean);
    transferred.bytes as f64 * 1e9 / transferred.duration_ns.saturating_sub(mean_ns) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::reproduce::FigureVerdict;

    /// TCP deviates from 25 routers on, and the first alarm comes with 31: six nodes late.
    #[test]
    fn the_numbers_are_exact() {
        let mut seen = Seen::new();
        while let Some(routers) = next(WIRED.routers, &seen, &WIRED.until()) {
            assert!(seen.len() < 30);
            let alarms = routers >= 31;
            let shown = [routers >= 25, false, alarms, alarms, false, false];
            assert!(seen.insert(routers, shown).is_none(), "{routers} again");
        }
        let found = Found::of(&seen);
        let by = [Some(27.0), None, Some(33.0), Some(33.0), None, None];
        assert_eq!((found.by, found.longest), (by, 34));
    }

    fn found(deviates: Option<f64>, alarms: Option<f64>) -> Found {
        Found {
            by: [deviates, None, alarms, alarms, None, None],
            longest: 65,
        }
    }

    fn figures(found: Found, runs: &[RunVerdict]) -> Vec<Figure> {
        WIRED.figures(Some(WIRED.expected), found, false, runs)
    }

    fn verdict(deviates: Option<f64>, alarms: Option<f64>) -> FigureVerdict {
        let all = figures(found(deviates, alarms), &[RunVerdict::Contended]);
        all[all.len() - 1].verdict
    }

    /// Two devices for each hop double the load, and no more.
    #[test]
    fn an_early_alarm_of_the_network_is_explained_from_half_of_the_hops_on() {
        use FigureVerdict::{Deviates, Explained, Within};
        let of = |nodes: f64| {
            let found = found(Some(12.0), Some(nodes));
            figures(found, &[RunVerdict::Contended])[2].verdict
        };
        let verdicts = [4.0, 5.0, 9.0, 11.0].map(of);
        assert_eq!(verdicts, [Deviates, Explained, Explained, Within]);
    }

    #[test]
    fn an_alarm_is_never_after_the_deviation() {
        assert_eq!(verdict(Some(12.0), Some(11.0)), FigureVerdict::Within);
        assert_eq!(verdict(Some(12.0), Some(12.0)), FigureVerdict::Within);
        assert_eq!(verdict(Some(12.0), Some(13.0)), FigureVerdict::Deviates);
        assert_eq!(verdict(None, Some(13.0)), FigureVerdict::Reported);
        assert_eq!(verdict(Some(12.0), None), FigureVerdict::Missing);
        let neither = figures(found(None, None), &[RunVerdict::Clean]);
        assert!(
            neither
                .iter()
                .all(|figure| !figure.figure.contains("first alarm"))
        );
    }

    /// The ad hoc chain of 61 nodes, in which acknowledgements wait behind data.
    #[test]
    fn a_start_that_takes_long_explains_a_deviation_without_an_alarm() {
        use FigureVerdict::{Deviates, Explained, Missing};
        let of = |alarms, of_start| {
            let found = found(Some(61.0), alarms);
            let runs = [RunVerdict::Clean];
            let all = AD_HOC.figures(Some(AD_HOC.expected), found, of_start, &runs);
            let last = &all[all.len() - 1];
            (
                last.figure.ends_with("at the earliest"),
                last.measured,
                last.verdict,
            )
        };
        assert_eq!(of(None, true), (true, Some(5.0), Explained));
        assert_eq!(of(None, false), (false, None, Missing));
        assert_eq!(of(Some(63.0), true), (false, Some(2.0), Explained));
        assert_eq!(of(Some(63.0), false), (false, Some(2.0), Deviates));
        let of = |deviates, alarms| found(deviates, alarms).unannounced();
        assert_eq!(of(Some(61.0), None), Some(61.0));
        assert_eq!(of(Some(61.0), Some(63.0)), Some(61.0));
        for alarms in [Some(3.0), Some(61.0)] {
            assert_eq!(of(Some(61.0), alarms), None);
        }
        assert_eq!(of(None, None), None);
    }

    #[test]
    fn what_no_chain_shows_is_not_one_of_the_longest_chain() {
        let of = |deviates| {
            let all = figures(found(deviates, None), &[RunVerdict::Contended]);
            let row = |figure: &Figure| (figure.figure.clone(), figure.measured);
            [row(&all[1]), row(&all[3])]
        };
        let named = |name: &str, nodes| (name.to_owned(), Some(nodes));
        let cpu = named("nodes up to which the cpu criterion does not alarm", 65.0);
        let at = named("nodes from which TCP deviates by 5 %", 12.0);
        assert_eq!(of(Some(12.0)), [at, cpu.clone()]);
        let up_to = named("nodes up to which TCP does not deviate by 5 %", 65.0);
        assert_eq!(of(None), [up_to, cpu]);
    }

    #[test]
    fn a_chain_that_failed_says_nothing() {
        use FigureVerdict::{Invalid, Reported, Within};
        let of = |runs: [RunVerdict; 2]| {
            let figures = figures(found(Some(12.0), Some(11.0)), &runs);
            figures.iter().map(|f| f.verdict).collect::<Vec<_>>()
        };
        let (clean, contended) = (RunVerdict::Clean, RunVerdict::Contended);
        let judged = [Within, Reported, Within, Reported, Within];
        assert_eq!(of([clean, contended]), judged);
        let late = of([clean, RunVerdict::Invalid]);
        assert_eq!(late, [Within, Invalid, Invalid, Invalid, Invalid]);
        assert_eq!(of([RunVerdict::Invalid, contended]), [Invalid; 5]);
    }

    /// They are no criterion of the source, but no figure hides them.
    #[test]
    fn late_packets_have_a_row_and_mark_the_baseline() {
        let of = |late: Option<f64>| {
            let mut found = found(Some(12.0), Some(11.0));
            found.by[LATE] = late;
            let figures = figures(found, &[RunVerdict::Contended]);
            let row = |figure: &Figure| (figure.figure.clone(), figure.measured);
            figures.iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(of(None).len(), 5);
        let from_two_on = of(Some(4.0));
        assert_eq!(from_two_on[0].0, "1 router: TCP");
        let emulator = "nodes from which packets leave late without contention";
        assert_eq!(from_two_on[4], (emulator.to_owned(), Some(4.0)));
        assert_eq!(from_two_on[5].1, Some(-1.0));
        assert_eq!(of(Some(3.0))[0].0, "1 router, with an alarm: TCP");
    }

    /// Table 4.2 of the source, as it is.
    #[test]
    fn all_cells_are_there() {
        let of = |chain: &Chain| {
            let cells = chain.cells.iter();
            let cells = cells.map(|cell| (cell.criterion.name(), cell.published));
            cells.collect::<Vec<_>>()
        };
        assert_eq!(of(&WIRED), [("network", 11.0), ("cpu", 34.0)]);
        assert_eq!(
            of(&AD_HOC),
            [("cpu", 27.0), ("page-in", 3.0), ("disk", 3.0)]
        );
        assert!(
            [WIRED, AD_HOC]
                .iter()
                .all(|chain| chain.cells.len() <= SHOWN - FIRST_CELL)
        );
    }
}
