// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots distribution functions of delays as SVG, one panel per direction.

use std::path::Path;

use emud::plot::{Area, BLUE, GREY, PlotError, chart, grid, letters, svg, write as write_text};
use emud::verify::Cdf;
use plotters::prelude::*;

use super::Failure;
use super::failure::EX_CANTCREAT;
use super::plot_runs::{self, RunsPanel};

const PANEL: (u32, u32) = (620, 400);
const FACTS: u32 = 20;
/// Points of a curve: more than a panel has pixels.
const POINTS: usize = 1000;
/// The end of the axis as a share; a long tail would compress the rest.
const LAST_SHARE: f64 = 0.9985;

/// Points (ms, share) that never fall.
pub struct Curve {
    name: &'static str,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// The panel of a direction.
pub struct Panel {
    pub title: String,
    /// Lines of text below the title.
    pub facts: Vec<String>,
    pub curves: Vec<Curve>,
}

/// Returns a distribution function, shifted by the time of serialisation.
pub fn asked(cdf: &Cdf, serialisation_ns: f64) -> Curve {
    let share = |i: usize| (i as f64 + 0.5) / POINTS as f64;
    let point = |i| {
        let ns = cdf.quantile(share(i)) + serialisation_ns;
        (ns / 1e6, share(i))
    };
    Curve {
        name: "requested",
        colour: GREY,
        points: (0..POINTS).map(point).collect(),
    }
}

/// Returns the distribution function of sorted delays in ns.
pub fn measured(sorted: &[f64]) -> Curve {
    let n = sorted.len();
    let step = n.div_ceil(POINTS).max(1);
    let points = sorted.iter().enumerate().step_by(step);
    Curve {
        name: "measured",
        colour: BLUE,
        points: points
            .map(|(i, ns)| (ns / 1e6, (i + 1) as f64 / n as f64))
            .collect(),
    }
}

/// Writes the panels to an SVG file.
pub fn write(path: &Path, panels: &[Panel]) -> Result<(), Failure> {
    save(path, draw_all(panels, &[]))
}

/// Writes the panels with runs of losses below them.
pub fn write_with(path: &Path, panels: &[Panel], runs: &[RunsPanel]) -> Result<(), Failure> {
    save(path, draw_all(panels, runs))
}

/// Writes an image.
///
/// # Errors
/// It was not drawn, or cannot be written.
pub fn save(path: &Path, drawn: Result<String, PlotError>) -> Result<(), Failure> {
    let cannot = |e: &dyn std::fmt::Display| {
        Failure::new(EX_CANTCREAT, format!("cannot plot {}: {e}", path.display()))
    };
    std::fs::write(path, drawn.map_err(|e| cannot(&e))?).map_err(|e| cannot(&e))
}

fn draw_all(panels: &[Panel], runs: &[RunsPanel]) -> Result<String, PlotError> {
    let columns = panels.len().max(runs.len()).max(1);
    let above = PANEL.1 + header(panels.iter().map(|p| &p.facts));
    let below = match runs.is_empty() {
        true => 0,
        false => PANEL.1 + header(runs.iter().map(|p| &p.facts)),
    };
    svg((PANEL.0 * columns as u32, above + below), |root| {
        let (delays, losses) = root.split_vertically(above);
        for (panel, area) in panels.iter().zip(delays.split_evenly((1, columns))) {
            let (chart, facts) = area.split_vertically(PANEL.1);
            draw(&chart, panel)?;
            write_facts(&facts, &panel.facts)?;
        }
        for (panel, area) in runs.iter().zip(losses.split_evenly((1, columns))) {
            let (chart, facts) = area.split_vertically(PANEL.1);
            plot_runs::draw(&chart, panel)?;
            write_facts(&facts, &panel.facts)?;
        }
        Ok(())
    })
}

/// Returns the height of the lines of text.
fn header<'a>(facts: impl Iterator<Item = &'a Vec<String>>) -> u32 {
    FACTS * facts.map(Vec::len).max().unwrap_or(0) as u32
}

fn write_facts(area: &Area, facts: &[String]) -> Result<(), PlotError> {
    let mut lines = (0..).zip(facts);
    lines.try_for_each(|(i, fact)| write_text(area, fact, (64, i * FACTS as i32), 14))
}

fn draw(area: &Area, panel: &Panel) -> Result<(), PlotError> {
    let (low, high) = range(panel);
    let mut chart = chart(area, &panel.title, 54).build_cartesian_2d(low..high, 0.0..1.0)?;
    let mut mesh = chart.configure_mesh();
    grid(mesh.x_desc("delay, ms").y_desc("share of packets up to it"))?;
    for (i, curve) in (0..).zip(&panel.curves) {
        let mut points = vec![(low, 0.0)];
        if let Some((first, _)) = curve.points.first() {
            points.push((*first, 0.0));
        }
        points.extend(curve.points.iter().filter(|p| p.0 <= high));
        points.push((high, points.last().map_or(0.0, |p| p.1)));
        chart.draw_series(LineSeries::new(points, curve.colour.stroke_width(2)))?;
        let at = (PANEL.0 as i32 - 110, 290 + 20 * i);
        area.draw(&Text::new(curve.name, at, letters(14, curve.colour)))?;
    }
    Ok(())
}

/// Returns the range of the axis of delays, slightly larger than that of the curves.
fn range(panel: &Panel) -> (f64, f64) {
    let all = || panel.curves.iter().flat_map(|c| &c.points);
    let shown = || all().filter(|p| p.1 <= LAST_SHARE).map(|p| p.0);
    let low = shown().fold(f64::MAX, f64::min);
    let high = shown().fold(0.0, f64::max);
    if low > high {
        return (0.0, 1.0);
    }
    // A constant delay is a step, with space on both sides.
    let room = ((high - low) * 0.05).max(0.02 * high).max(0.1);
    ((low - room).max(0.0), high + room)
}
