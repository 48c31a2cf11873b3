// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a direction of a link did over time: throughput, delay, loss, backlog. The host over time.

use std::ops::Range;

use emud_monitor::log::Span;
use plotters::style::RGBColor;

use super::chart;
use super::chart::{Axis, Curve, Panel};
use super::{PageError, plain};
use crate::experiment::results::HostFigure::{
    BusiestCpu, BusiestDisk, Busy, Iowait, MemoryInUse, Read, Steal, SwapIn, SwapOut, Written,
};
use crate::experiment::results::{HostFigure, Point, Run, Tally, Track, resource_name};
use crate::histogram::Delays;
use crate::plot::{BLUE, BROWN, GREY, VIOLET};

/// Spans closer than this share of the axis become one: a reader cannot distinguish them.
const NEAR: f64 = 1.0 / 500.0;

/// The common axis of all plots of a run.
pub struct Plots<'a> {
    run: &'a Run,
    range: Range<f64>,
    /// Of the host.
    contention: Vec<(Range<f64>, String)>,
    /// Of all hosts: a link's packets also depend on programs of others.
    anywhere: Vec<(Range<f64>, String)>,
}

impl<'a> Plots<'a> {
    /// Prepares the plots of a run. `all`: the parts of all hosts, which have one axis of time.
    pub fn new(run: &'a Run, all: &[Run]) -> Self {
        let spans = all.iter().flat_map(|run| {
            let of_links = run.tracks.iter().flat_map(|t| t.series.points());
            let of_host = run.host_track.series.points().iter();
            of_links
                .map(Point::span_ns)
                .chain(of_host.map(Point::span_ns))
        });
        let (from, until): (Vec<u64>, Vec<u64>) = spans.unzip();
        let (first, last) = (from.into_iter().min(), until.into_iter().max());
        let second = |ns: u64| second(run, ns);
        let start = first.map_or(0.0, second);
        let range = start..last.map_or(1.0, second).max(start + 1e-3);
        let near = (range.end - range.start) * NEAR;
        let mut anywhere: Vec<_> = all.iter().flat_map(|run| contention(run, near)).collect();
        anywhere.sort_by(|(a, _), (b, _)| a.start.total_cmp(&b.start));
        Self {
            run,
            range,
            contention: contention(run, near),
            anywhere,
        }
    }

    /// Returns the plot of a track as SVG; `None`: the track has no samples.
    pub fn of(&self, track: &Track) -> Result<Option<String>, PageError> {
        if track.series.points().is_empty() {
            return Ok(None);
        }
        let axis = self.axis(Some(&track.link));
        draw(&self.panels(track), &axis, self.run.named(&track.name())).map(Some)
    }

    /// Returns the plot of the host as SVG; `None`: the log does not have its state.
    pub fn host(&self) -> Result<Option<String>, PageError> {
        let panels = self.host_panels();
        if panels.is_empty() {
            return Ok(None);
        }
        draw(&panels, &self.axis(None), "the host".to_owned()).map(Some)
    }

    /// Returns the axis with the changes of a link.
    fn axis(&self, link: Option<&str>) -> Axis {
        let second = |ns| second(self.run, ns);
        let changes = self.run.changes.items.iter();
        let changes = changes.filter(|c| link == Some(c.link.as_str()));
        Axis {
            range: self.range.clone(),
            measured: self
                .run
                .measured()
                .map(|(from, until)| second(from)..second(until)),
            contention: match link {
                Some(_) => self.anywhere.clone(),
                None => self.contention.clone(),
            },
            changes: changes.map(|c| second(c.mono_ns)).collect(),
        }
    }

    fn panels(&self, track: &Track) -> Vec<Panel> {
        let points = track.series.points();
        let name = plain(&self.run.named(&track.name()));
        let mut panels = vec![
            self.throughput(track, &name),
            self.delay(track),
            self.loss(track),
        ];
        let backlog = |p: &Tally| p.backlog_bytes.map(|bytes| bytes as f64 / 1e3);
        if points.iter().any(|p| p.backlog_bytes > Some(0)) {
            panels.push(Panel {
                title: "queue".to_owned(),
                unit: "kB",
                curves: vec![self.curve("backlog", BLUE, points, backlog)],
                asked: None,
                least: 1.0,
            });
        }
        panels
    }

    fn throughput(&self, track: &Track, name: &str) -> Panel {
        let points = track.series.points();
        let bit_s = |p: &Tally| p.throughput_bit_s();
        let capacity = |p: &Tally| p.capacity_bit_s();
        let figures = points.iter().flat_map(|p| [bit_s(p), capacity(p)]);
        let most = figures.flatten().fold(0.0, f64::max);
        let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
        let fits = units.into_iter().find(|(factor, _)| most >= *factor);
        let (factor, unit) = fits.unwrap_or((1.0, "bit/s"));
        let asked = track.asked.filter(|a| !a.varies).and_then(|a| a.rate_bit_s);
        let mut curves = vec![];
        if points.iter().any(|p| p.offered_bits.is_some()) {
            // Below what used it.
            let capacity = self.curve("capacity", BROWN, points, |p| Some(capacity(p)? / factor));
            curves.push(capacity);
        }
        curves.push(self.curve("passed", BLUE, points, |p| Some(bit_s(p)? / factor)));
        Panel {
            title: format!("{name}: throughput"),
            unit,
            curves,
            asked: asked.map(|bit_s| bit_s as f64 / factor),
            least: 1.0,
        }
    }

    fn delay(&self, track: &Track) -> Panel {
        let points = track.series.points();
        let highest = |p: &Tally| Some(p.delays.quantile_ns(0.99)?.max(p.delays.mean_ns()?));
        let most = points.iter().filter_map(highest).fold(0.0, f64::max);
        let units = [(1e9, "s"), (1e6, "ms")];
        let fits = units.into_iter().find(|(factor, _)| most >= 2.0 * *factor);
        let (factor, unit) = fits.unwrap_or((1e3, "us"));
        let curve = |name, colour, figure: fn(&Delays) -> Option<f64>| {
            let value = |p: &Tally| figure(&p.delays).map(|ns| ns / factor);
            self.curve(name, colour, points, value)
        };
        let asked = track.asked.filter(|a| !a.varies);
        Panel {
            title: "delay given".to_owned(),
            unit,
            curves: vec![
                curve("p99", BROWN, |d| d.quantile_ns(0.99)),
                curve("p50", VIOLET, |d| d.quantile_ns(0.5)),
                curve("mean", BLUE, Delays::mean_ns),
            ],
            asked: asked.map(|a| a.delay_ns as f64 / factor),
            least: 1.0,
        }
    }

    fn loss(&self, track: &Track) -> Panel {
        let points = track.series.points();
        let asked = track.asked.filter(|a| !a.varies);
        let drops = |p: &Tally| p.drop_share().map(|s| s * 100.0);
        let mut curves = vec![self.curve("lost", BROWN, points, |p| Some(p.loss_share()? * 100.0))];
        if points.iter().any(|p| p.counted.dropped > 0) {
            curves.push(self.curve("dropped by the queue", VIOLET, points, drops));
        }
        Panel {
            title: "loss".to_owned(),
            unit: "% of packets",
            curves,
            asked: asked.map(|a| a.loss * 100.0),
            least: asked.map_or(0.1, |a| (a.loss * 100.0).max(0.1)),
        }
    }

    /// Returns the panels of the known figures.
    fn host_panels(&self) -> Vec<Panel> {
        let points = self.run.host_track.series.points();
        let of = |figure: HostFigure| points.iter().filter_map(move |p| p.mean(figure));
        let most = |figure: HostFigure| of(figure).fold(0.0, f64::max);
        let panel = |title: &str, (factor, unit): (f64, &'static str), least: f64, curves: &[_]| {
            let known = curves
                .iter()
                .filter(|(_, _, figure)| of(*figure).next().is_some());
            let curve = |(name, colour, figure): &(&'static str, RGBColor, HostFigure)| {
                self.curve(name, *colour, points, |p| Some(p.mean(*figure)? / factor))
            };
            let curves: Vec<Curve> = known.map(curve).collect();
            (!curves.is_empty()).then(|| Panel {
                title: title.to_owned(),
                unit,
                curves,
                asked: None,
                least,
            })
        };
        // A curve at 0 would hide the others'.
        let rare = [("iowait", GREY, Iowait), ("steal", BROWN, Steal)];
        let mut cpu = vec![("busiest", VIOLET, BusiestCpu), ("all", BLUE, Busy)];
        cpu.extend(
            rare.into_iter()
                .filter(|(_, _, figure)| most(*figure) > 0.0),
        );
        let memory = points.iter().filter_map(|p| p.memory_bytes).max();
        let rate = |a: HostFigure, b: HostFigure| {
            let units = [(1e9, "GB/s"), (1e6, "MB/s")];
            let fits = units
                .into_iter()
                .find(|(factor, _)| most(a).max(most(b)) >= *factor);
            fits.unwrap_or((1e3, "kB/s"))
        };
        let percent = (0.01, "%");
        let of_fleet = self.run.in_fleet.as_ref();
        let host = of_fleet.map_or_else(|| "host".to_owned(), |of| plain(&of.host));
        let panels = [
            panel(&format!("{host}: CPUs"), percent, 100.0, &cpu),
            panel(
                "memory",
                (1e9, "GB"),
                memory.unwrap_or(0) as f64 / 1e9,
                &[("in use", BLUE, MemoryInUse)],
            ),
            panel(
                "swap",
                rate(SwapIn, SwapOut),
                1.0,
                &[("out", BROWN, SwapOut), ("in", BLUE, SwapIn)],
            ),
            panel(
                "busiest disk",
                percent,
                100.0,
                &[("busy", BLUE, BusiestDisk)],
            ),
            panel(
                "disk with most",
                rate(Read, Written),
                1.0,
                &[("written", BROWN, Written), ("read", BLUE, Read)],
            ),
        ];
        panels.into_iter().flatten().collect()
    }

    fn curve<T: Point>(
        &self,
        name: &'static str,
        colour: RGBColor,
        points: &[T],
        value: impl Fn(&T) -> Option<f64>,
    ) -> Curve {
        let second = |ns| second(self.run, ns);
        let step = |p: &T| {
            let (from, until) = p.span_ns();
            Some((second(from), second(until), value(p)?))
        };
        Curve {
            name,
            colour,
            steps: points.iter().filter_map(step).collect(),
        }
    }
}

fn draw(panels: &[Panel], axis: &Axis, track: String) -> Result<String, PageError> {
    chart::draw(panels, axis).map_err(|source| PageError::Plot { track, source })
}

/// Returns the seconds since second 0 of the run.
pub fn second(run: &Run, mono_ns: u64) -> f64 {
    let origin = run.origin_ns();
    match mono_ns.checked_sub(origin) {
        Some(after) => after as f64 / 1e9,
        None => -((origin - mono_ns) as f64 / 1e9),
    }
}

/// Returns contention in the order of time; intervals nearer than `near` seconds are one.
fn contention(run: &Run, near: f64) -> Vec<(Range<f64>, String)> {
    let mut spans: Vec<Span> = run.contention();
    spans.sort_by_key(|span| span.since_mono_ns);
    let mut joined: Vec<(Range<f64>, String)> = Vec::new();
    for span in spans {
        let from = second(run, span.since_mono_ns);
        let until = second(run, span.until_mono_ns);
        match joined.last_mut() {
            Some((last, _)) if from <= last.end + near => last.end = last.end.max(until),
            _ => joined.push((
                from..until,
                plain(&run.of_host(&resource_name(&span.resource, &span.what))),
            )),
        }
    }
    joined
}
