// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs and the links of a run counted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use emud_monitor::log::{
    Counted, MetricLine, OutputLine, OutputStream, PhaseLine, PhaseName, RunVerdict, Sample, Span,
    StationSample,
};
use serde::Deserialize;

use super::echoed::Echoed;
use super::iperf::Iperf;
use crate::experiment::traffic::{BIN_NS, Count, Received, Sent, Stored, Transferred};

/// Rates settle within this time after all have begun to send.
const WARM_UP_NS: u64 = 1_000_000_000;

/// Lines of a log, of which [`crate::experiment::results`] would shorten the output.
pub(super) struct Logged {
    pub outputs: Vec<OutputLine>,
    samples: Vec<Sample>,
    metrics: Vec<MetricLine>,
    phases: Vec<PhaseLine>,
    stations: Vec<StationSample>,
}

impl Logged {
    pub fn read(log: &Path) -> io::Result<Self> {
        Self::parse(&fs::read_to_string(log)?)
    }

    pub fn parse(log: &str) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            r#type: String,
        }
        let (mut outputs, mut samples) = (vec![], vec![]);
        let (mut metrics, mut phases, mut stations) = (vec![], vec![], vec![]);
        for line in log.lines() {
            match &*serde_json::from_str::<Head>(line)?.r#type {
                "output" => outputs.push(serde_json::from_str(line)?),
                "sample" => samples.push(serde_json::from_str(line)?),
                "metric" => metrics.push(serde_json::from_str(line)?),
                "phase" => phases.push(serde_json::from_str(line)?),
                "station" => stations.push(serde_json::from_str(line)?),
                _ => {}
            }
        }
        Ok(Self {
            outputs,
            samples,
            metrics,
            phases,
            stations,
        })
    }
}

/// Counts of the programs of a run.
#[derive(Debug)]
pub(super) struct Counts {
    pub verdict: RunVerdict,
    /// Contention in the measured phase.
    pub contention: Vec<Span>,
    /// It is invalid for nothing but packets that left late.
    pub only_late: bool,
    /// If it is invalid for packets that the engine dropped, and nothing else but such that left late: its verdict
    /// without that.
    pub only_dropped: Option<RunVerdict>,
    /// When the measured phase began, ns of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// Of all stations of media together: the time with a carrier, and the whole time, ns.
    carrier_ns: [u64; 2],
    sent: Vec<Sent>,
    received: Vec<Received>,
    transferred: Vec<Transferred>,
    stored: Vec<Stored>,
    /// Node, point, time in ns of CLOCK_MONOTONIC.
    reached: Vec<(String, String, u64)>,
    echoed: Vec<Echoed>,
    iperf: Vec<Iperf>,
    /// Figures that programs reported.
    metrics: Vec<MetricLine>,
    /// Counters of each direction of each link.
    links: BTreeMap<(String, String), Counted>,
}

impl Counts {
    /// Counts what the log of a run contains.
    ///
    /// # Errors
    /// A program has printed something else.
    pub fn of(verdict: RunVerdict, contention: Vec<Span>, logged: Logged) -> Result<Self, String> {
        let mut phases = logged.phases.iter();
        let began = phases.find(|line| line.phase == PhaseName::Measurement);
        let mut counts = Self {
            verdict,
            contention,
            only_late: false,
            only_dropped: None,
            began_ns: began.map_or(0, |line| line.mono_ns),
            carrier_ns: (logged.stations.iter()).fold([0; 2], |[busy, all], sample| {
                [busy + sample.counted.busy_ns, all + sample.interval_ns]
            }),
            sent: vec![],
            received: vec![],
            transferred: vec![],
            stored: vec![],
            reached: vec![],
            echoed: vec![],
            iperf: vec![],
            metrics: logged.metrics,
            links: BTreeMap::new(),
        };
        let mut others = BTreeMap::<&str, String>::new();
        let mut begun = BTreeMap::<&str, String>::new();
        for line in (logged.outputs.iter()).filter(|line| line.stream == OutputStream::Stdout) {
            let text = begun.entry(&line.node).or_default();
            *text += &line.text;
            // The rest of a long line follows, or the program has ended.
            if line.partial {
                continue;
            }
            let text = std::mem::take(text);
            match serde_json::from_str(&text) {
                Ok(Count::Sent(sent)) => counts.sent.push(sent),
                Ok(Count::Received(received)) => counts.received.push(received),
                Ok(Count::Transferred(transferred)) => counts.transferred.push(transferred),
                Ok(Count::Stored(stored)) => counts.stored.push(stored),
                Ok(Count::Reached(point)) => {
                    let at = (line.node.clone(), point, line.mono_ns);
                    counts.reached.push(at);
                }
                Err(_) => *others.entry(&line.node).or_default() += &format!("{text}\n"),
            }
        }
        for (node, text) in begun {
            *others.entry(node).or_default() += &text;
        }
        others.retain(|_, text| !text.is_empty());
        for (node, output) in others {
            if let Some(echoed) = Echoed::parse(node, &output) {
                counts.echoed.push(echoed);
            } else if let Some(iperf) = Iperf::parse(node, &output) {
                counts.iperf.push(iperf);
            } else {
                return Err(format!("{node}: {}", output.trim_end()));
            }
        }
        // A sample of the default link does not count the packets of named links.
        for sample in logged.samples {
            let of = counts.links.entry((sample.link, sample.direction));
            let sum = of.or_default();
            *sum = sum.plus(&sample.counted);
        }
        Ok(counts)
    }

    /// Returns the result of the receiver that stored from this port.
    pub fn stored(&self, port: u16) -> Option<&Stored> {
        self.stored.iter().find(|stored| stored.port == port)
    }

    /// Returns when a node reached a point for the first time, ns of CLOCK_MONOTONIC.
    pub fn reached(&self, node: &str, point: &str) -> Option<u64> {
        let mut all = self.reached.iter();
        all.find_map(|(at, what, ns)| (at == node && what == point).then_some(*ns))
    }

    /// Counters of one direction of a link; needs [`super::live::Variant::counted`].
    pub fn link(&self, link: &str, direction: &str) -> Option<&Counted> {
        self.links.get(&(link.to_owned(), direction.to_owned()))
    }

    /// Returns the share of the time in which a station of a medium hears a carrier; needs
    /// [`super::live::Variant::counted`].
    pub fn busy(&self) -> Option<f64> {
        let [busy, all] = self.carrier_ns.map(|ns| ns as f64);
        (all > 0.0).then_some(busy / all)
    }

    /// Returns a figure that a program reported.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let mut all = self.metrics.iter();
        all.find_map(|line| (line.name == name).then_some(line.value))
    }

    /// Returns the sum of a figure that this number of programs reported.
    pub fn sum(&self, name: &str, programs: usize) -> Option<f64> {
        let of = |line: &&MetricLine| line.name == name;
        let all: Vec<_> = self
            .metrics
            .iter()
            .filter(of)
            .map(|line| line.value)
            .collect();
        (all.len() == programs).then(|| all.iter().sum())
    }

    /// Packets per second to all ports, from the first to the last one; `None`: none was sent.
    pub fn sending_rate(&self) -> Option<f64> {
        // The times of a sender of nothing are 0.
        let senders = || self.sent.iter().filter(|sent| sent.packets > 0);
        let first = senders().map(|sent| sent.first_ns).min()?;
        let last = senders().map(|sent| sent.last_ns).max()?;
        let [sent, _] = self.packets();
        Some((sent - 1) as f64 * 1e9 / last.saturating_sub(first) as f64)
    }

    /// Packets that arrived at all ports, and had no room in their socket, at most.
    pub fn overflowed(&self) -> u64 {
        (self.received.iter())
            .map(|received| received.overflowed)
            .sum()
    }

    /// Packets that were sent to all ports, and those that arrived.
    pub fn packets(&self) -> [u64; 2] {
        [
            self.sent.iter().map(|sent| sent.packets).sum(),
            self.received.iter().map(|received| received.packets).sum(),
        ]
    }

    pub fn sent(&self, port: u16) -> Option<&Sent> {
        self.sent.iter().find(|sent| sent.port == port)
    }

    pub fn received(&self, port: u16) -> Option<&Received> {
        self.received.iter().find(|received| received.port == port)
    }

    /// Returns the result of the ping in a node.
    pub fn echoed(&self, node: &str) -> Option<&Echoed> {
        self.echoed.iter().find(|echoed| echoed.node == node)
    }

    /// Returns the result of the clients of iperf3 in a node.
    pub fn iperf(&self, node: &str) -> Option<&Iperf> {
        self.iperf.iter().find(|iperf| iperf.node == node)
    }

    pub fn transferred(&self) -> Option<&Transferred> {
        self.transferred.first()
    }

    /// Returns the result of the sender to a port.
    pub fn transferred_to(&self, port: u16) -> Option<&Transferred> {
        self.transferred
            .iter()
            .find(|transferred| transferred.port == port)
    }

    /// Returns the acknowledged data of the transfer to a port, bytes/s.
    pub fn goodput(&self, port: u16) -> Option<f64> {
        self.transferred_to(port).map(Transferred::goodput)
    }

    /// Returns the share of the packets to a port that did not arrive.
    pub fn lost(&self, port: u16) -> Option<f64> {
        let (sent, received) = (self.sent(port)?, self.received(port)?);
        Some((sent.packets as f64 - received.packets as f64) / sent.packets as f64)
    }

    /// Returns the data that arrived at a port while all senders sent, without the first second, bit/s.
    pub fn rate(&self, port: u16) -> Option<f64> {
        let from = self.sent.iter().map(|sent| sent.first_ns).max()? + WARM_UP_NS;
        let to = self.sent.iter().map(|sent| sent.last_ns).min()?;
        let (from, to) = (from.div_ceil(BIN_NS), to / BIN_NS);
        let received = self.received(port)?;
        let bytes = (from..to).filter_map(|bin| {
            let index = bin.checked_sub(received.first_bin)?;
            received.bins.get(usize::try_from(index).ok()?)
        });
        let seconds = to.checked_sub(from).filter(|bins| *bins > 0)? as f64 * BIN_NS as f64 / 1e9;
        Some(bytes.sum::<u64>() as f64 * 8.0 / seconds)
    }
}

/// Returns the verdict of a run in which contention is what is measured, so no reason to reject it.
pub(super) fn but_contended(run: RunVerdict) -> RunVerdict {
    match run {
        RunVerdict::Contended => RunVerdict::Clean,
        other => other,
    }
}

/// Returns the least favourable verdict of several runs: one that is not clean says nothing of their mean.
pub(super) fn worst<'a>(runs: impl IntoIterator<Item = &'a Counts>) -> Option<RunVerdict> {
    runs.into_iter().map(|counts| counts.verdict).max()
}

/// Returns the mean over several runs; `None`: one has no value.
pub(super) fn mean_of(runs: &[Counts], of: impl Fn(&Counts) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(of).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        let second = 1_000_000_000;
        let sent = |port, first_ns, last_ns, packets| Sent {
            port,
            unroutable: 0,
            packets,
            bytes: 0,
            first_ns,
            last_ns,
        };
        let received = |port, first_bin, bins: usize, each| Received {
            port,
            packets: 90,
            first_bin,
            bins: vec![each; bins],
            ..Received::default()
        };
        Counts {
            verdict: RunVerdict::Clean,
            contention: vec![],
            only_late: false,
            only_dropped: None,
            began_ns: 0,
            carrier_ns: [0; 2],
            sent: vec![
                sent(1, 10 * second, 15 * second, 100),
                sent(2, 11 * second, 14 * second, 90),
            ],
            received: vec![received(1, 100, 60, 1000), received(2, 125, 3, 500)],
            transferred: vec![],
            stored: vec![],
            reached: vec![],
            echoed: vec![],
            iperf: vec![],
            metrics: vec![],
            links: BTreeMap::new(),
        }
    }

    #[test]
    fn of_several_runs_the_worst_verdict_and_the_mean() {
        let mut runs = [counts(), counts()];
        assert_eq!(worst(&runs), Some(RunVerdict::Clean));
        assert_eq!(mean_of(&runs, |counts| counts.lost(1)), Some(0.1));
        runs[0].verdict = RunVerdict::Contended;
        assert_eq!(worst(&runs), Some(RunVerdict::Contended));
        runs[1].received.clear();
        assert_eq!(mean_of(&runs, |counts| counts.lost(1)), None);
    }

    #[test]
    fn rates_are_of_the_time_in_which_all_send() {
        let counts = counts();
        assert_eq!(counts.rate(1), Some(80_000.0));
        // 12 s to 14 s; three intervals of it from 12.5 s.
        assert_eq!(counts.rate(2), Some(1500.0 * 8.0 / 2.0));
        assert_eq!(counts.rate(3), None);
        assert_eq!(counts.lost(1), Some(0.1));
        assert_eq!(counts.lost(2), Some(0.0));
        assert_eq!(counts.packets(), [190, 180]);
        assert_eq!(counts.sending_rate(), Some(189.0 / 5.0));
    }

    #[test]
    fn a_sender_of_nothing_has_no_rate() {
        let mut counts = counts();
        let mut none = |n: usize| {
            counts.sent[n].packets = 0;
            (counts.sent[n].first_ns, counts.sent[n].last_ns) = (0, 0);
            counts.sending_rate()
        };
        assert_eq!([none(1), none(0)], [Some(99.0 / 5.0), None]);
    }
}
