// SPDX-License-Identifier: MIT OR Apache-2.0
//! S: nodes in a ring, each of which sends to the next. Each flow has a separate link, so a load below
//! what the link carries has no loss, and a greedy flow has all of it, whatever the others do:
//! with frames of F bytes for D bytes of data, D / F of the rate, and a fairness of 1.

use emud_monitor::log::RunVerdict;

use super::counts::{Counts, worst};
use super::live::Variant;
use super::netem::Netem;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, s_overhead};
use crate::experiment::results::{Estimate, MANY, anova, jain, z};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s-ring",
    description: "Rings of 5 and 8 nodes, each of which sends to the next, UDP in one and both directions, and TCP",
    source: s_overhead::EXPERIMENT.source,
    method: "packets of UDP at 95.7 % of the rate counted at both ends, TCP transfers counted by their senders, \
             10 runs of 60 s, begun 5 s apart, at 20 Mbit/s instead of 1 Gbit/s; --quick: one run of 5 s, begun \
             1 s apart. With --netem each run again with stock netem, and tests of the rates of TCP as the source \
             has them, Z and ANOVA with Bonferroni's correction, of at least 30 flows of each ring",
    scenarios: &["s-ring"],
    thresholds: None,
    measure,
};

const RATE_KBIT_S: f64 = 20_000.0;
/// Of the source, of its 1 Gbit/s.
const LOAD: f64 = 0.957;
const DATAGRAM: f64 = 1470.0;
/// Data of a segment with time stamps, and its frame.
const SEGMENT: f64 = 1448.0;
const FRAME: f64 = 1538.0;
/// Of the frame, what Ethernet adds to it.
const OVERHEAD: f64 = 24.0;
/// Most loss that the source accepts, %.
const LOSS: f64 = 0.05;
/// Probability below which means differ significantly.
const SIGNIFICANT: f64 = 0.05;
/// Standard deviation of flows that hardly vary, of their mean. Those of a run with netem had 0.0013.
const HARDLY: f64 = 0.005;
/// Most difference of means that has a known reason: netem counts the overhead once for a super-packet of several frames.
const APART: f64 = FRAME / (FRAME - OVERHEAD) - 1.0;
const TINY: &str = "flows hardly vary, so any difference is significant: both means are above";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Load {
    Udp,
    UdpBoth,
    Tcp,
}

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let mut figures = vec![];
    let mut compared = vec![];
    for nodes in [5, 8] {
        for load in [Load::Udp, Load::UdpBoth, Load::Tcp] {
            let (of_ring, rates) = ring(bench, nodes, load)?;
            figures.extend(of_ring);
            compared.extend(rates);
        }
    }
    figures.extend(significance(&compared));
    Ok(figures)
}

/// Rates of the flows of a ring, in % of the link's rate.
struct Rates {
    nodes: u16,
    emud: Vec<f64>,
    netem: Vec<f64>,
    verdict: Option<RunVerdict>,
}

impl Rates {
    /// With emud and with netem; `None`: one of them has none.
    fn estimates(&self) -> Option<[Estimate; 2]> {
        Some([Estimate::of(&self.emud)?, Estimate::of(&self.netem)?])
    }

    /// Returns the figure of a test whether flows with emud and with netem have the same mean.
    fn test(&self, name: String) -> Figure {
        let figure = Figure::new(name, "1").within(Tolerance::AtLeast(SIGNIFICANT));
        match self.estimates() {
            Some(both) if hardly_differ(both) => figure.known(0.0, SIGNIFICANT, TINY),
            _ => figure,
        }
    }
}

fn hardly_differ([emud, netem]: [Estimate; 2]) -> bool {
    let hardly_varies = |of: Estimate| of.sd.is_some_and(|sd| sd <= HARDLY * of.mean);
    let apart = (netem.mean - emud.mean).abs();
    apart <= APART * emud.mean && hardly_varies(emud) && hardly_varies(netem)
}

/// Returns the probabilities that flows with the same mean differ as those with emud and with netem do.
fn significance(compared: &[Rates]) -> Vec<Figure> {
    let mut groups = vec![];
    let mut figures = vec![];
    for rates in compared {
        let Some([emud, netem]) = rates.estimates() else {
            continue;
        };
        let nodes = rates.nodes;
        // Of fewer than 30 flows there is none.
        if let Some(test) = z(&emud, &netem) {
            let figure = rates.test(format!("{nodes} nodes, TCP: emud and netem, p of Z"));
            figures.push(figure.measured(Some(test.p), rates.verdict));
        }
        groups.push((format!("emud, {nodes} nodes"), emud));
        groups.push((format!("netem, {nodes} nodes"), netem));
    }
    let groups: Vec<_> = groups.iter().map(|(name, of)| (&**name, *of)).collect();
    let Some(anova) = anova(&groups) else {
        return figures;
    };
    let verdicts = compared.iter().filter_map(|rates| rates.verdict);
    let verdict = verdicts.max();
    for rates in compared {
        let names = ["emud", "netem"].map(|of| format!("{of}, {} nodes", rates.nodes));
        let pair = anova
            .pairs
            .iter()
            .find(|pair| [&pair.a, &pair.b] == names.each_ref());
        let p = pair.map(|pair| pair.bonferroni);
        let nodes = rates.nodes;
        let figure = rates.test(format!(
            "{nodes} nodes, TCP: emud and netem, p of ANOVA, corrected"
        ));
        figures.push(figure.measured(p, verdict));
    }
    figures
}

fn ring(
    bench: &Bench<'_>,
    nodes: u16,
    load: Load,
) -> Result<(Vec<Figure>, Option<Rates>), ReproduceError> {
    let (seconds, step) = if bench.quick { (5, 1) } else { (60, 5) };
    let times = times(bench, nodes, load);
    let name = match load {
        Load::Udp => "UDP",
        Load::UdpBoth => "UDP in both directions",
        Load::Tcp => "TCP",
    };
    let title = format!("{nodes} nodes, {name}");
    let kbit_s = RATE_KBIT_S * LOAD;
    let packets = kbit_s * 1e3 * f64::from(seconds) / 8.0 / DATAGRAM;
    let text = |is: bool| if is { "1".to_owned() } else { String::new() };
    let variant = Variant {
        title: &title,
        scenario: "s-ring",
        nodes: Some(nodes.into()),
        env: &[
            ("STEP", step.to_string()),
            ("LOAD", seconds.to_string()),
            ("RATE", format!("{kbit_s:.0}")),
            ("PACKETS", format!("{packets:.0}")),
            ("BOTH", text(load == Load::UdpBoth)),
            ("TCP", text(load == Load::Tcp)),
        ],
        ..Variant::default()
    };
    let runs: Result<Vec<_>, _> = (0..times).map(|_| bench.run(&variant)).collect();
    let runs = runs?;
    let stock = match bench.no_gso {
        true => Netem::Segments,
        false => Netem::Exported,
    };
    let netem = (0..times).map(|_| bench.with_netem(&variant, stock));
    let netem: Option<Vec<_>> = netem.collect::<Result<_, _>>()?;
    let netem = netem.unwrap_or_default();
    let verdict = worst(&runs);
    Ok(match load {
        Load::Tcp => {
            let of_flows = |runs: &[Counts]| {
                let rates = of_all(runs, |counts| {
                    let ports = senders(nodes, 6000);
                    ports.map(|port| rate(counts, port)).collect()
                })?;
                let percent = rates.iter().map(|bit_s| bit_s / RATE_KBIT_S / 10.0);
                Some(percent.collect::<Vec<_>>())
            };
            let [rates, by_netem] = [&runs, &netem].map(|runs| of_flows(runs));
            let [percent, netem_percent] = [&rates, &by_netem].map(|of| mean(of.as_deref()));
            let [even, netem_even] = [&rates, &by_netem].map(|of| jain(of.as_deref()?));
            let share =
                Figure::new(format!("{title}: mean data"), "% of the rate").published(94.148);
            let share = share
                .theory(100.0 * SEGMENT / FRAME)
                .within(Tolerance::Share(0.01));
            let fair = Figure::new(format!("{title}: fairness (Jain)"), "1").theory(1.0);
            let fair = fair.within(Tolerance::Absolute(0.001));
            let flows = [&rates, &by_netem].map(|flows| flows.clone().unwrap_or_default());
            let figures = vec![
                share
                    .flows(flows)
                    .netem(netem_percent)
                    .measured(percent, verdict),
                fair.netem(netem_even).measured(even, verdict),
            ];
            let rates = rates.zip(by_netem).map(|(emud, netem)| Rates {
                nodes,
                emud,
                netem,
                verdict,
            });
            (figures, rates)
        }
        _ => {
            let bases: &[u16] = if load == Load::Udp {
                &[6000]
            } else {
                &[6000, 7000]
            };
            let ports = || bases.iter().flat_map(|base| senders(nodes, *base));
            let flows = [&runs, &netem].map(|runs| {
                let lost = of_all(runs, |counts| {
                    ports()
                        .map(|port| Some(100.0 * counts.lost(port)?))
                        .collect()
                });
                lost.unwrap_or_default()
            });
            let [percent, netem_percent] = flows.each_ref().map(|flows| mean(Some(flows)));
            let figure = Figure::new(format!("{title}: mean loss"), "%").theory(0.0);
            let figure = figure.within(Tolerance::Absolute(LOSS));
            let figure = figure.flows(flows).netem(netem_percent);
            (vec![figure.measured(percent, verdict)], None)
        }
    })
}

/// Returns the number of runs: with netem, TCP has as many flows as the Z test needs.
fn times(bench: &Bench<'_>, nodes: u16, load: Load) -> usize {
    let times = if bench.quick { 1 } else { 10 };
    match bench.netem && load == Load::Tcp {
        true => times.max(MANY.div_ceil(nodes.into())),
        false => times,
    }
}

/// Ports to which the nodes send.
fn senders(nodes: u16, base: u16) -> impl Iterator<Item = u16> {
    (1..=nodes).map(move |index| base + index)
}

/// Data of a transfer, bit/s.
fn rate(counts: &Counts, port: u16) -> Option<f64> {
    counts.goodput(port).map(|rate| 8.0 * rate)
}

/// `None`: a run has no value.
fn of_all(runs: &[Counts], of: impl Fn(&Counts) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
    let all: Option<Vec<Vec<f64>>> = runs.iter().map(of).collect();
    Some(all?.concat())
}

fn mean(values: Option<&[f64]>) -> Option<f64> {
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::reproduce::FigureVerdict;
    use crate::experiment::run::Settings;
    use emud_monitor::Config;

    fn rates(nodes: u16, netem: impl Fn(usize) -> f64) -> Rates {
        Rates {
            nodes,
            emud: (0..40).map(|n| 94.0 + 0.01 * (n % 4) as f64).collect(),
            netem: (0..40).map(netem).collect(),
            verdict: Some(RunVerdict::Clean),
        }
    }

    #[test]
    fn rates_are_compared_with_those_of_netem() {
        let same = |nodes| rates(nodes, |n| 94.0 + 0.01 * (3 - n % 4) as f64);
        let figures = significance(&[same(5), same(8)]);
        let names: Vec<_> = figures.iter().map(|figure| &*figure.figure).collect();
        assert_eq!(
            names,
            [
                "5 nodes, TCP: emud and netem, p of Z",
                "8 nodes, TCP: emud and netem, p of Z",
                "5 nodes, TCP: emud and netem, p of ANOVA, corrected",
                "8 nodes, TCP: emud and netem, p of ANOVA, corrected"
            ]
        );
        for figure in figures {
            assert_eq!(figure.verdict, FigureVerdict::Within);
            assert!(figure.measured.unwrap() > 0.99, "{figure:?}");
        }
        let other = rates(8, |n| 94.02 + 0.01 * (n % 4) as f64);
        let verdicts: Vec<_> = significance(&[same(5), other])
            .iter()
            .map(|of| of.verdict)
            .collect();
        let [within, explained] = [FigureVerdict::Within, FigureVerdict::Explained];
        assert_eq!(verdicts, [within, explained, within, explained]);
        let of = |netem: fn(usize) -> f64| {
            let figures = significance(&[same(5), rates(8, netem)]);
            let [z5, z8, anova5, anova8] = &figures[..] else {
                panic!()
            };
            assert_eq!([z5.verdict, anova5.verdict], [within; 2]);
            [z8.verdict, anova8.verdict]
        };
        // 1.3 % more, as measured.
        let more = of(|n| 95.2 + 0.01 * (n % 4) as f64);
        assert_eq!(more, [explained; 2]);
        let far = of(|n| 97.0 + 0.01 * (n % 4) as f64);
        assert_eq!(far, [FigureVerdict::Deviates; 2]);
        let varying = of(|n| 93.9 + 0.7 * (n % 4) as f64);
        assert_eq!(varying, [FigureVerdict::Deviates; 2]);
    }

    #[test]
    fn with_netem_there_are_flows_for_a_z_test() {
        let settings = Settings::quiet(1, Config::default());
        let of = |netem, quick| {
            let bench = Bench {
                netem,
                ..Bench::tests(&settings, quick)
            };
            let all = [(5, Load::Tcp), (8, Load::Tcp), (5, Load::UdpBoth)];
            all.map(|(nodes, load)| times(&bench, nodes, load))
        };
        assert_eq!([of(false, true), of(true, true)], [[1; 3], [6, 4, 1]]);
        assert_eq!([of(false, false), of(true, false)], [[10; 3]; 2]);
    }

    #[test]
    fn without_netem_and_of_few_flows_there_are_fewer_tests() {
        let alone = Rates {
            netem: vec![],
            ..rates(5, |_| 94.0)
        };
        assert_eq!(significance(&[alone]), []);
        let mut few = rates(5, |n| 94.0 + 0.01 * (n % 3) as f64);
        few.emud.truncate(5);
        few.netem.truncate(5);
        assert_eq!(significance(&[few]).len(), 1);
    }
}
