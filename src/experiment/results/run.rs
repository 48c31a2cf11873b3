// SPDX-License-Identifier: MIT OR Apache-2.0
//! One experiment, as its log has it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use emud_monitor::log::{
    ArtefactLine, AskedFor, ExitLine, Host, OutputLine, PhaseLine, PhaseName, Run as About,
    RunVerdict, Span,
};

use super::{
    Alarm, ClassTrack, Ending, HostTrack, Kept, Series, StationTrack, Tail, Tally, share, time,
};

/// A run: its settings, measurements and end. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone)]
pub struct Run {
    /// Path of the log.
    pub path: PathBuf,
    /// When it began, UTC.
    pub time: String,
    /// Version of emud that wrote the log.
    pub version: String,
    /// The machine.
    pub host: Host,
    /// The host of a fleet; `None`: the log is that of one host.
    pub in_fleet: Option<InFleet>,
    /// Programs and settings of the run.
    pub about: About,
    /// Starts of preparation, measurement and clean-up.
    pub phases: Vec<PhaseLine>,
    /// Changes of links.
    pub changes: Kept<Change>,
    /// Episodes of contention.
    pub alarms: Kept<Alarm>,
    /// Links in the order of `about`, up before down, the link itself before its classes.
    pub tracks: Vec<Track>,
    /// Classes of bottlenecks, in the order of the log.
    pub classes: Vec<ClassTrack>,
    /// Stations of media, in the order of `about`.
    pub stations: Vec<StationTrack>,
    /// The host; empty: the log has no such lines.
    pub host_track: HostTrack,
    /// Output of the programs, by node.
    pub outputs: BTreeMap<String, Tail<OutputLine>>,
    /// Exits of programs.
    pub exits: Kept<ExitLine>,
    /// Programs under test that failed.
    pub failed: Kept<ExitLine>,
    /// Files that programs left.
    pub artefacts: Kept<ArtefactLine>,
    /// Figures that programs reported, in the order in which they first appear.
    pub metrics: Kept<Metric>,
    /// Lines of output that the log could not store.
    pub lost_output_lines: u64,
    /// Samples that the log could not store.
    pub lost_samples: u64,
    /// The first time in the log.
    pub first_mono_ns: u64,
    /// The last time in the log.
    pub last_mono_ns: u64,
    /// End of the run; `None`: emud was killed.
    pub end: Option<Ending>,
    /// Sentences for people: the monitor's, the run's, and what the log itself lacks.
    pub notes: Vec<String>,
}

/// A part of a run on several hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFleet {
    /// Name of the host.
    pub host: String,
    /// Second 0 of all hosts: the first of them begins to measure.
    pub origin_ns: u64,
}

/// A figure that programs reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name of the figure.
    pub name: String,
    /// Its unit, as reported.
    pub unit: Option<String>,
    /// Number of reports, at least 1.
    pub count: u64,
    /// Sum of the reports.
    pub sum: f64,
    /// The smallest report.
    pub min: f64,
    /// The largest report.
    pub max: f64,
}

impl Metric {
    /// Returns the mean of the reports.
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

/// A link changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub mono_ns: u64,
    /// Name of the link.
    pub link: String,
    /// The phase of its profile that has begun.
    pub phase: Option<String>,
    /// Its profile was changed.
    pub by_hand: bool,
}

/// A direction of a link, or a class of it.
#[derive(Debug, Clone)]
pub struct Track {
    /// Name of the link.
    pub link: String,
    /// "up" or "down".
    pub direction: String,
    /// Named link or class; `None`: the link itself, without packets of named links.
    pub class: Option<String>,
    /// `None`: the configuration is unknown.
    pub asked: Option<AskedFor>,
    /// Samples over time.
    pub series: Series,
    /// The measured phase; a sample belongs to it if its middle does.
    pub measured: Tally,
    /// Samples of the measured phase.
    pub samples: u64,
    /// Hash of the counters of those samples, in order.
    pub(crate) fingerprint: u64,
}

impl Track {
    /// Returns a name such as "access up" or "access down, class mobile".
    pub fn name(&self) -> String {
        let class = self.class.as_ref().map(|c| format!(", class {c}"));
        let class = class.unwrap_or_default();
        format!("{} {}{class}", self.link, self.direction)
    }
}

impl Run {
    /// Returns the name of a link, a node or a medium, of several hosts with that of its host: "b:access".
    pub fn named(&self, name: &str) -> String {
        let host = self.in_fleet.iter().map(|of| format!("{}:", of.host));
        host.collect::<String>() + name
    }

    /// Returns a sentence, in a fleet with the name of the host: "b: its clock is wrong".
    pub fn of_host(&self, text: &str) -> String {
        let host = self.in_fleet.iter().map(|of| format!("{}: ", of.host));
        host.collect::<String>() + text
    }

    /// Returns the verdict; `None`: emud was killed before it could judge.
    pub fn verdict(&self) -> Option<RunVerdict> {
        self.end.as_ref().map(|end| end.judgement.verdict)
    }

    /// Returns whether the verdict of the run is clean.
    pub fn is_clean(&self) -> bool {
        self.verdict() == Some(RunVerdict::Clean)
    }

    /// Returns whether its figures are part of a mean: nothing is known against it. An unwatched run
    /// counts, too: a user who switched all criteria off still wants figures.
    pub fn counts(&self) -> bool {
        self.why_excluded().is_none()
    }

    /// Returns why the run does not count; `None`: it counts.
    pub fn why_excluded(&self) -> Option<String> {
        match self.verdict() {
            Some(RunVerdict::Clean | RunVerdict::Unwatched) => self.why_incomplete(),
            _ => self.why_not_clean(),
        }
    }

    /// Returns which program under test failed; `None`: none did.
    pub fn why_failed(&self) -> Option<String> {
        let first = self.failed.items.first()?;
        let more = match self.failed.items.len() as u64 - 1 + self.failed.left_out {
            0 => String::new(),
            1 => ", and 1 more program failed".to_owned(),
            n => format!(", and {n} more programs failed"),
        };
        let (node, status) = (&first.node, first.status());
        Some(format!("the program of {node} failed with {status}{more}"))
    }

    /// Returns why its programs did not finish; `None`: they did.
    pub fn why_incomplete(&self) -> Option<String> {
        self.why_failed().or_else(|| self.why_cut_short())
    }

    /// Returns which signal ended a run with a good verdict and no failed program; `None`: no signal did.
    /// Programs that emud ended because of a signal have not failed, and still did not do all their work.
    fn why_cut_short(&self) -> Option<String> {
        let said = &self.end.as_ref()?.judgement;
        cut_short(said.verdict, said.exit_code)
    }

    /// Returns which samples the log lacks; `None`: it has all.
    pub fn why_fewer_samples(&self) -> Option<String> {
        let lines = self.end.as_ref().map_or(0, |end| end.lines_lost);
        let log = self.path.display();
        match (self.lost_samples, lines) {
            (0, 0) => None,
            (0, lines) => Some(format!("{lines} lines of {log} were lost")),
            (samples, _) => Some(format!("{samples} samples of {log} were lost")),
        }
    }

    /// Returns a sentence on figures of programs (`emud metric`) that are not kept; `None`: all are.
    pub fn why_fewer_metrics(&self) -> Option<String> {
        let (left_out, kept) = (self.metrics.left_out, self.metrics.items.len());
        (left_out > 0).then(|| {
            format!(
                "{}: only the first {kept} figures of programs are kept; {left_out} reports are of others",
                self.path.display()
            )
        })
    }

    /// Returns why the run is not clean; `None`: it is.
    pub fn why_not_clean(&self) -> Option<String> {
        let Some(end) = &self.end else {
            return Some("the log has no end: emud was killed, so it has no verdict".to_owned());
        };
        match end.judgement.verdict {
            RunVerdict::Clean => None,
            RunVerdict::Unwatched => Some("nothing of the host was watched".to_owned()),
            RunVerdict::Contended => Some(contended(&end.judgement.contention)),
            RunVerdict::Invalid => Some(match &end.judgement.invalid[..] {
                [] => "invalid, for a reason that the log does not have".to_owned(),
                why => why.join("; "),
            }),
        }
    }

    /// Returns the measured phase; as far as the log goes if it has no end.
    pub fn measured(&self) -> Option<(u64, u64)> {
        if let Some(end) = &self.end {
            return end
                .judgement
                .measured_mono_ns
                .map(|[from, until]| (from, until));
        }
        let mut phases = self.phases.iter().skip_while(|p| !is_measurement(p));
        let from = phases.next()?.mono_ns;
        Some((from, phases.next().map_or(self.last_mono_ns, |p| p.mono_ns)))
    }

    /// Returns second 0 of plots and tables: the start of the measured phase; without one, of the log. All hosts
    /// have the same one.
    pub fn origin_ns(&self) -> u64 {
        let measured = || self.measured().map(|(from, _)| from);
        let of_fleet = self.in_fleet.as_ref().map(|of| of.origin_ns);
        of_fleet.or_else(measured).unwrap_or(self.first_mono_ns)
    }

    /// Returns the contention of the measured phase; if the log has no end, all alarms.
    pub fn contention(&self) -> Vec<Span> {
        match &self.end {
            Some(end) => end.judgement.contention.clone(),
            None => self.alarms.items.iter().map(|a| self.span(a)).collect(),
        }
    }

    fn span(&self, alarm: &Alarm) -> Span {
        let last = match alarm.is_moment() {
            true => alarm.mono_ns,
            false => self.last_mono_ns,
        };
        let until = alarm.until_mono_ns.unwrap_or(last);
        Span {
            resource: alarm.resource.clone(),
            what: alarm.what(),
            since_mono_ns: alarm.since_mono_ns,
            until_mono_ns: until,
            duration_ns: until.saturating_sub(alarm.since_mono_ns),
            by: alarm.shares.clone(),
        }
    }
}

pub(super) fn is_measurement(phase: &PhaseLine) -> bool {
    phase.phase == PhaseName::Measurement
}

/// Returns what an exit code adds to a good verdict.
pub(super) fn cut_short(verdict: RunVerdict, exit_code: u8) -> Option<String> {
    match exit_code {
        _ if !matches!(verdict, RunVerdict::Clean | RunVerdict::Unwatched) => None,
        0 => None,
        code @ 129.. => Some(format!("signal {} ended the run", code - 128)),
        code => Some(format!("the run ended with exit code {code}")),
    }
}

/// Returns "clean", "unwatched", "contended", "invalid", or "unfinished".
pub fn verdict_word(verdict: Option<RunVerdict>) -> &'static str {
    match verdict {
        Some(RunVerdict::Clean) => "clean",
        Some(RunVerdict::Unwatched) => "unwatched",
        Some(RunVerdict::Contended) => "contended",
        Some(RunVerdict::Invalid) => "invalid",
        None => "unfinished",
    }
}

/// Returns a name such as "cpu 1" or "network eth0".
pub fn resource_name(resource: &str, what: &str) -> String {
    match what.starts_with(resource) {
        true => what.to_owned(),
        false => format!("{resource} {what}").trim_end().to_owned(),
    }
}

/// Returns a sentence such as "cpu 1 contended for 1.2s (93% stress-ng), and 2 more spans".
fn contended(spans: &[Span]) -> String {
    let Some(longest) = spans.iter().max_by_key(|span| span.duration_ns) else {
        return "contended".to_owned();
    };
    let by = longest.by.first();
    let by = by.map(|b| format!(" ({} {})", share(b.share), b.group));
    let more = match spans.len() - 1 {
        0 => String::new(),
        1 => ", and 1 more span".to_owned(),
        n => format!(", and {n} more spans"),
    };
    format!(
        "{} contended for {}{}{more}",
        resource_name(&longest.resource, &longest.what),
        time(longest.duration_ns as f64),
        by.unwrap_or_default()
    )
}
