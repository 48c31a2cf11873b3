// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots runs of losses as SVG: the share of runs of n packets or more.

use plotters::coord::Shift;
use plotters::prelude::*;

const LINE: RGBColor = RGBColor(168, 60, 31);
/// The smallest share on the axis.
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

pub fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: &RunsPanel,
) -> Result<(), Box<dyn std::error::Error>> {
    let longest = panel.at_least.len().max(4) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 17))
        .margin(10)
        .margin_right(26)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(1.0..longest + 1.0, (LOWEST..1.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("n, packets")
        .y_desc("share of runs of n or more")
        .x_label_formatter(&|n| match n.fract() {
            0.0 => n.to_string(),
            _ => String::new(),
        })
        .light_line_style(BLACK.mix(0.04))
        .bold_line_style(BLACK.mix(0.14))
        .label_style(("sans-serif", 13))
        .draw()?;
    let lengths = (1..).map(f64::from);
    let steps = lengths.zip(&panel.at_least);
    let corners = steps.flat_map(|(n, share)| [(n, *share), (n + 1.0, *share)]);
    let end = panel.at_least.len() as f64 + 1.0;
    let all = corners.chain([(end, LOWEST)]);
    chart.draw_series(LineSeries::new(all, LINE.stroke_width(2)))?;
    Ok(())
}
