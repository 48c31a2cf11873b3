// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots the figures of a direction over time as SVG, one panel below the other.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use super::Failure;
use super::failure::EX_CANTCREAT;

const PANEL: (u32, u32) = (1000, 300);
/// Height of a line of text.
const NOTE: u32 = 30;
const LINE: RGBColor = RGBColor(31, 94, 168);

/// A figure of a direction: (s, value), each from its time on.
pub struct TimePanel {
    pub title: String,
    /// Name of the figure, with its unit.
    pub what: &'static str,
    pub steps: Vec<(f64, f64)>,
    pub end_s: f64,
}

/// Writes the panels to an SVG file, and notes below them.
///
/// # Errors
/// They cannot be drawn or written.
pub fn write(path: &Path, panels: &[TimePanel], note: Option<&str>) -> Result<(), Failure> {
    let cannot = |e: &dyn std::fmt::Display| {
        Failure::new(EX_CANTCREAT, format!("cannot plot {}: {e}", path.display()))
    };
    let text = svg(panels, note).map_err(|e| cannot(&e))?;
    std::fs::write(path, text).map_err(|e| cannot(&e))
}

fn svg(panels: &[TimePanel], note: Option<&str>) -> Result<String, Box<dyn Error>> {
    let rows = panels.len().max(1);
    let mut text = String::new();
    {
        let height = PANEL.1 * rows as u32;
        let below = if note.is_some() { NOTE } else { 0 };
        let size = (PANEL.0, height + below);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)?;
        let (charts, last) = root.split_vertically(height);
        if let Some(note) = note {
            let style = ("sans-serif", 14).into_font().color(&BLACK);
            last.draw(&Text::new(note.to_owned(), (74, 0), style))?;
        }
        for (panel, area) in panels.iter().zip(charts.split_evenly((rows, 1))) {
            let high = panel.steps.iter().map(|s| s.1).fold(0.0, f64::max) * 1.05;
            let mut chart = ChartBuilder::on(&area)
                .caption(&panel.title, ("sans-serif", 17))
                .margin(10)
                .margin_right(26)
                .x_label_area_size(40)
                .y_label_area_size(64)
                .build_cartesian_2d(0.0..panel.end_s.max(1e-9), 0.0..high.max(1e-9))?;
            chart
                .configure_mesh()
                .x_desc("time, s")
                .y_desc(panel.what)
                .light_line_style(BLACK.mix(0.04))
                .bold_line_style(BLACK.mix(0.14))
                .label_style(("sans-serif", 13))
                .draw()?;
            let line = LineSeries::new(corners(panel), LINE.stroke_width(2));
            chart.draw_series(line)?;
        }
        root.present()?;
    }
    Ok(text)
}

/// Each step holds until the next.
fn corners(panel: &TimePanel) -> Vec<(f64, f64)> {
    let ends = panel.steps.iter().skip(1).map(|s| s.0);
    let ends = ends.chain([panel.end_s]);
    let sides = panel.steps.iter().zip(ends);
    sides
        .flat_map(|((at, rate), end)| [(*at, *rate), (end, *rate)])
        .collect()
}
