// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots the figures of a direction over time as SVG, one panel below the other.

use std::path::Path;

use emud::plot::{BLUE, PlotError, chart, grid, svg, write as write_text};
use plotters::prelude::*;

use super::Failure;
use super::plot::save;

const PANEL: (u32, u32) = (1000, 300);
/// Height of a line of text.
const NOTE: u32 = 30;

/// A figure of a direction: (s, value), each from its time on.
pub struct TimePanel {
    pub title: String,
    /// Name of the figure, with its unit.
    pub what: &'static str,
    pub steps: Vec<(f64, f64)>,
    pub end_s: f64,
}

/// Writes the panels to an SVG file, and notes below them.
pub fn write(path: &Path, panels: &[TimePanel], note: Option<&str>) -> Result<(), Failure> {
    save(path, draw(panels, note))
}

fn draw(panels: &[TimePanel], note: Option<&str>) -> Result<String, PlotError> {
    let rows = panels.len().max(1);
    let height = PANEL.1 * rows as u32;
    let below = if note.is_some() { NOTE } else { 0 };
    svg((PANEL.0, height + below), |root| {
        let (charts, last) = root.split_vertically(height);
        if let Some(note) = note {
            write_text(&last, note, (74, 0), 14)?;
        }
        for (panel, area) in panels.iter().zip(charts.split_evenly((rows, 1))) {
            let high = panel.steps.iter().map(|s| s.1).fold(0.0, f64::max) * 1.05;
            let mut chart = chart(&area, &panel.title, 64)
                .build_cartesian_2d(0.0..panel.end_s.max(1e-9), 0.0..high.max(1e-9))?;
            let mut mesh = chart.configure_mesh();
            grid(mesh.x_desc("time, s").y_desc(panel.what))?;
            let line = LineSeries::new(corners(panel), BLUE.stroke_width(2));
            chart.draw_series(line)?;
        }
        Ok(())
    })
}

/// Returns the corners of the curve: each step holds until the next.
fn corners(panel: &TimePanel) -> Vec<(f64, f64)> {
    let ends = panel.steps.iter().skip(1).map(|s| s.0);
    let ends = ends.chain([panel.end_s]);
    let sides = panel.steps.iter().zip(ends);
    sides
        .flat_map(|((at, rate), end)| [(*at, *rate), (end, *rate)])
        .collect()
}
