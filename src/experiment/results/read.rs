// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log as a stream: each line is read once, and what it says goes where it belongs.

use std::collections::HashMap;
use std::path::Path;

use emud_monitor::log::{
    AskedFor, ClassSample, HostSample, LinkEvent, MetricLine, OutputLine, PhaseLine, PhaseName,
    Run as About, Sample, StationSample,
};

use super::kept::shorten;
use super::line::{Line, Start};
use super::run::is_measurement;
use super::totals::{fingerprint, of_link};
use super::{
    Change, ClassTrack, HostTally, HostTrack, Metric, Point, Run, Series, StationTrack, Tally,
    Track,
};

/// Of a track: link, direction, class.
type Key = (String, String, Option<String>);

struct Reading {
    run: Run,
    tracks: HashMap<Key, usize>,
    measured_from: Option<u64>,
    measured_until: Option<u64>,
}

/// The lines of a host's log read so far.
#[derive(Default)]
pub struct Part {
    start: Option<Start>,
    reading: Option<Reading>,
}

impl Part {
    /// Of a log that begins with this line.
    pub fn begun(start: Start) -> Self {
        Self {
            start: Some(start),
            reading: None,
        }
    }

    /// # Errors
    /// The problem of the line.
    pub fn take(&mut self, path: &Path, line: Line) -> Result<(), &'static str> {
        match (line, &mut self.reading) {
            (Line::Run { time, run }, None) => {
                let start = self.start.as_ref();
                let start = start.ok_or("an experiment before the start of its log")?;
                self.reading = Some(Reading::new(path, start, time, *run));
            }
            (Line::Run { .. }, Some(_)) => return Err("a second experiment in one log"),
            (line, Some(reading)) => reading.take(line),
            (Line::Start(start), None) => {
                self.start.get_or_insert(start);
            }
            // Hooks, and alarms of the time before the experiment.
            (_, None) => {}
        }
        Ok(())
    }

    /// Returns the run; `None`: the log has no experiment. `notes`: on the log itself.
    pub fn finish(self, notes: Vec<String>) -> Option<Run> {
        self.reading.map(|reading| reading.finish(notes))
    }
}

impl Reading {
    fn new(path: &Path, start: &Start, time: String, about: About) -> Self {
        let notes = start.notes.iter().chain(&about.notes).cloned().collect();
        let run = Run {
            path: path.to_owned(),
            time,
            version: start.version.clone(),
            host: start.host.clone(),
            in_fleet: None,
            stations: stations(&about),
            about,
            phases: Vec::new(),
            changes: Default::default(),
            alarms: Default::default(),
            tracks: Vec::new(),
            classes: Vec::new(),
            host_track: HostTrack::default(),
            outputs: Default::default(),
            exits: Default::default(),
            failed: Default::default(),
            artefacts: Default::default(),
            metrics: Default::default(),
            lost_output_lines: 0,
            lost_samples: 0,
            first_mono_ns: start.mono_ns,
            last_mono_ns: start.mono_ns,
            end: None,
            notes,
        };
        Self {
            run,
            tracks: HashMap::new(),
            measured_from: None,
            measured_until: None,
        }
    }

    fn take(&mut self, line: Line) {
        let run = &mut self.run;
        match line {
            Line::Phase(line) => self.phase(line),
            Line::Sample(line) => self.sample(*line),
            Line::Class(line) => self.class(&line),
            Line::Station(line) => self.station(&line),
            Line::Host(line) => self.host(&line),
            Line::Output(line) => self.output(line),
            Line::Link(line) => {
                run.saw(line.mono_ns);
                // Each link is attached and detached, too: of many links these would leave no room.
                if line.event == LinkEvent::Changed {
                    run.changes.push(Change {
                        mono_ns: line.mono_ns,
                        link: line.link,
                        phase: line.phase,
                        by_hand: line.toml.is_some(),
                    });
                }
            }
            Line::Exit(line) => {
                run.saw(line.mono_ns);
                if line.phase == PhaseName::Measurement && line.failed() {
                    run.failed.push(line.clone());
                }
                run.exits.push(line);
            }
            Line::Artefact(line) => run.artefacts.push(line),
            Line::Metric(line) => self.metric(line),
            Line::Lost(line) => {
                run.lost_output_lines = run.lost_output_lines.saturating_add(line.output_lines);
                run.lost_samples = run.lost_samples.saturating_add(line.samples);
            }
            Line::Alarm(line) => {
                run.saw(line.mono_ns);
                run.alarms.push(line);
            }
            Line::Clear(line) => {
                let mut alarms = run.alarms.items.iter_mut().rev();
                if let Some(alarm) = alarms.find(|a| a.episode == line.episode) {
                    alarm.until_mono_ns = Some(line.until_mono_ns);
                    if !line.shares.is_empty() {
                        alarm.shares = line.shares;
                    }
                }
            }
            Line::End(mono_ns, ending) => {
                run.saw(mono_ns);
                run.end = ending.map(|ending| *ending);
            }
            // A second start has no meaning.
            Line::Start(_) | Line::Run { .. } | Line::Other => {}
        }
    }

    fn metric(&mut self, line: MetricLine) {
        self.run.saw(line.mono_ns);
        let metrics = &mut self.run.metrics;
        let same = |m: &&mut Metric| (&m.name, &m.unit) == (&line.name, &line.unit);
        if let Some(metric) = metrics.items.iter_mut().find(same) {
            metric.count += 1;
            metric.sum += line.value;
            metric.min = metric.min.min(line.value);
            metric.max = metric.max.max(line.value);
            return;
        }
        let MetricLine {
            name, unit, value, ..
        } = line;
        metrics.push(Metric {
            name,
            unit,
            count: 1,
            sum: value,
            min: value,
            max: value,
        });
    }

    fn phase(&mut self, line: PhaseLine) {
        self.run.saw(line.mono_ns);
        if is_measurement(&line) {
            self.measured_from = Some(line.mono_ns);
        } else if self.measured_from.is_some() {
            self.measured_until = self.measured_until.or(Some(line.mono_ns));
        }
        self.run.phases.push(line);
    }

    fn output(&mut self, mut line: OutputLine) {
        self.run.saw(line.mono_ns);
        shorten(&mut line.text);
        self.run
            .outputs
            .entry(line.node.clone())
            .or_default()
            .push(line);
    }

    fn sample(&mut self, sample: Sample) {
        self.run.saw(sample.mono_ns);
        let measured = self.is_measured(sample.mono_ns, sample.interval_ns);
        let mut tally = Tally::from(&sample);
        let whole_ns = self.run.about.sample_ns.unwrap_or_default();
        if sample.interval_ns < whole_ns / 2 {
            tally = tally.without_peak();
        }
        let at = self.track(&sample);
        let track = &mut self.run.tracks[at];
        track.series.push(&tally);
        if measured {
            track.measured.add(&tally);
            track.samples += 1;
            track.fingerprint = fingerprint(track.fingerprint, &of_link(&sample.counted));
        }
    }

    /// Returns whether the middle of an interval belongs to the measured phase.
    fn is_measured(&self, until_ns: u64, interval_ns: u64) -> bool {
        let middle = until_ns.saturating_sub(interval_ns / 2);
        self.measured_from.is_some_and(|from| middle >= from)
            && self.measured_until.is_none_or(|until| middle < until)
    }

    fn class(&mut self, sample: &ClassSample) {
        self.run.saw(sample.mono_ns);
        let measured = self.is_measured(sample.mono_ns, sample.interval_ns);
        let classes = &mut self.run.classes;
        let found = classes.iter().position(|class| class.is_of(sample));
        let at = found.unwrap_or_else(|| {
            classes.push(ClassTrack::of(sample));
            classes.len() - 1
        });
        if measured {
            classes[at].add(sample);
        }
    }

    fn station(&mut self, sample: &StationSample) {
        self.run.saw(sample.mono_ns);
        let measured = self.is_measured(sample.mono_ns, sample.interval_ns);
        let mut stations = self.run.stations.iter_mut();
        let Some(station) = stations.find(|station| station.is_of(sample)) else {
            return;
        };
        station.moved(sample);
        if measured {
            station.add(sample);
        }
    }

    fn host(&mut self, sample: &HostSample) {
        self.run.saw(sample.mono_ns);
        let tally = HostTally::from(sample);
        if self.is_measured(sample.mono_ns, sample.interval_ns) {
            self.run.host_track.measured.add(&tally);
        }
        self.run.host_track.series.push(&tally);
    }

    /// Returns where the sample belongs; new with the first one.
    fn track(&mut self, s: &Sample) -> usize {
        let key: Key = (s.link.clone(), s.direction.clone(), s.class.clone());
        let tracks = &mut self.run.tracks;
        let about = &self.run.about;
        *self.tracks.entry(key).or_insert_with(|| {
            tracks.push(Track {
                link: s.link.clone(),
                direction: s.direction.clone(),
                class: s.class.clone(),
                asked: asked(about, s),
                series: Series::default(),
                measured: Tally::default(),
                samples: 0,
                fingerprint: 0,
            });
            tracks.len() - 1
        })
    }

    fn finish(self, notes: Vec<String>) -> Run {
        let mut run = self.run;
        let place = |track: &Track| {
            let links = &run.about.links;
            links
                .iter()
                .position(|l| l.name == track.link)
                .unwrap_or(links.len())
        };
        // "up" before "down".
        run.tracks.sort_by_cached_key(|t| {
            let down = t.direction != "up";
            (place(t), t.link.clone(), down, t.class.clone())
        });
        run.notes.extend(notes);
        run.notes.extend(run.shortcomings());
        run
    }
}

impl Run {
    fn saw(&mut self, mono_ns: u64) {
        self.last_mono_ns = self.last_mono_ns.max(mono_ns);
    }

    /// Returns sentences on what the log lacks.
    fn shortcomings(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.lost_output_lines > 0 || self.lost_samples > 0 {
            notes.push(format!(
                "the log could not take {} lines of output and {} samples: disk or reader was too slow",
                self.lost_output_lines, self.lost_samples
            ));
        }
        let Some(end) = &self.end else {
            notes
                .push("the log has no verdict at its end; contention is that of the alarms".into());
            if self.alarms.left_out > 0 {
                notes.push(format!(
                    "{} more alarms are not a part of the contention shown",
                    self.alarms.left_out
                ));
            }
            return notes;
        };
        if let Some(error) = &end.error {
            notes.push(format!("the monitor failed: {error}"));
        }
        if end.lines_lost > 0 {
            notes.push(format!("{} lines of the log were lost", end.lines_lost));
        }
        let unknown: Vec<_> = end.unknown().collect();
        if !unknown.is_empty() {
            notes.push(format!(
                "could not be watched all the time: {}",
                unknown.join(", ")
            ));
        }
        if end.judgement.measured_mono_ns.is_none() {
            notes.push("the measured phase was never reached".to_owned());
        }
        notes
    }
}

/// Returns all stations of all media, in their order.
fn stations(about: &About) -> Vec<StationTrack> {
    let pairs = (about.media.iter()).flat_map(|m| m.stations.iter().map(move |s| (m, s)));
    pairs
        .map(|(medium, station)| StationTrack::at_start(medium, station, about.mono_ns))
        .collect()
}

fn asked(about: &About, sample: &Sample) -> Option<AskedFor> {
    let link = about.links.iter().find(|link| link.name == sample.link)?;
    let (up, down) = match &sample.class {
        None => (link.up, link.down),
        Some(name) => {
            let class = link.classes.iter().find(|class| class.name == *name)?;
            (class.up, class.down)
        }
    };
    match sample.direction.as_str() {
        "up" => up,
        "down" => down,
        _ => None,
    }
}
