// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots runs of losses as SVG: the share of runs of n packets or more.

use emud::plot::{Area, BROWN, PlotError, chart, grid};
use plotters::prelude::*;

/// The least share that is shown.
const LOWEST: f64 = 1e-4;

/// The panel of a direction.
pub struct RunsPanel {
    pub title: String,
    /// Shares of runs of 1, 2, ... packets or more; `None`: there are no losses, or no run of them
    /// ends.
    pub at_least: Vec<f64>,
    /// Lines of text below the title.
    pub facts: Vec<String>,
}

pub fn draw(area: &Area, panel: &RunsPanel) -> Result<(), PlotError> {
    let longest = panel.at_least.len().max(4) as f64;
    let mut chart = chart(area, &panel.title, 64)
        .build_cartesian_2d(1.0..longest + 1.0, (LOWEST..1.0).log_scale())?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("n, packets")
        .y_desc("share of runs of n or more")
        .x_label_formatter(&|n| match n.fract() {
            0.0 => n.to_string(),
            _ => String::new(),
        });
    grid(&mut mesh)?;
    let lengths = (1..).map(f64::from);
    let steps = lengths.zip(&panel.at_least);
    let corners = steps.flat_map(|(n, share)| [(n, *share), (n + 1.0, *share)]);
    let end = panel.at_least.len() as f64 + 1.0;
    let all = corners.chain([(end, LOWEST)]);
    chart.draw_series(LineSeries::new(all, BROWN.stroke_width(2)))?;
    Ok(())
}
