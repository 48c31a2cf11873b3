// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panels below one another with one axis of time, as SVG. plot.css has each colour for dark pages.

use std::ops::Range;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::plot::{Area, GREEN, GREY, PlotError, RED, letters, svg, write};

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

const WIDTH: u32 = 560;
const TITLE: u32 = 24;
const HEIGHT: u32 = 140;
/// Height for the numbers of an axis and its title.
const X_AXIS: u32 = 40;
const Y_AXIS: u32 = 60;
const RIGHT: u32 = 14;
/// Approximate width of a letter.
const LETTER: f64 = 7.0;

/// The axis of time of all panels, with its marks, in seconds.
#[derive(Debug, Clone)]
pub struct Axis {
    pub range: Range<f64>,
    /// The measured phase; `None`: the run ended before it.
    pub measured: Option<Range<f64>>,
    /// Intervals of contention, each with a label.
    pub contention: Vec<(Range<f64>, String)>,
    pub changes: Vec<f64>,
}

/// Curves of one quantity over time.
#[derive(Debug, Clone)]
pub struct Panel {
    pub title: String,
    pub unit: &'static str,
    pub curves: Vec<Curve>,
    /// The configured value.
    pub asked: Option<f64>,
    /// The least that the axis has room for.
    pub least: f64,
}

#[derive(Debug, Clone)]
pub struct Curve {
    pub name: &'static str,
    pub colour: RGBColor,
    /// From, until, value.
    pub steps: Vec<(f64, f64, f64)>,
}

/// Draws them; the first panel has the labels of contention, the last one the axis.
///
/// # Errors
/// They cannot be drawn: a fault of emud's.
pub fn draw(panels: &[Panel], axis: &Axis) -> Result<String, PlotError> {
    let size = (WIDTH, (TITLE + HEIGHT) * panels.len() as u32 + X_AXIS);
    svg(size, |root| {
        let mut rest = root.clone();
        for (i, panel) in panels.iter().enumerate() {
            let last = i + 1 == panels.len();
            let below = if last { X_AXIS } else { 0 };
            let (title, chart, others);
            (title, rest) = rest.split_vertically(TITLE);
            (chart, others) = rest.split_vertically(HEIGHT + below);
            rest = others;
            heading(&title, panel)?;
            draw_panel(&chart, panel, axis, i == 0, last)?;
        }
        Ok(())
    })
}

/// Draws the title on the left, names of curves in their colours on the right.
fn heading(area: &Area, panel: &Panel) -> Result<(), PlotError> {
    write(
        area,
        &format!("{}, {}", panel.title, panel.unit),
        (8, 6),
        15,
    )?;
    let asked = drawn(panel).map(|_| ("configured", GREY));
    let names = panel.curves.iter().map(|c| (c.name, c.colour)).chain(asked);
    let mut right = f64::from(WIDTH - RIGHT);
    for (name, colour) in names.collect::<Vec<_>>().into_iter().rev() {
        let style = letters(13, colour).pos(Pos::new(HPos::Right, VPos::Top));
        area.draw(&Text::new(name, (right as i32, 8), style))?;
        right -= name.len() as f64 * LETTER + 14.0;
    }
    Ok(())
}

fn draw_panel(
    area: &Area,
    panel: &Panel,
    axis: &Axis,
    labelled: bool,
    last: bool,
) -> Result<(), PlotError> {
    let high = highest(panel);
    let mut chart = ChartBuilder::on(area)
        .margin_top(4)
        .margin_right(RIGHT)
        .x_label_area_size(if last { X_AXIS } else { 0 })
        .y_label_area_size(Y_AXIS)
        .build_cartesian_2d(axis.range.clone(), 0.0..high)?;
    shade(&mut chart, axis, high)?;
    let mut mesh = chart.configure_mesh();
    mesh.max_light_lines(0)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.5))
        .label_style(("sans-serif", 13))
        .x_label_formatter(&|v| number(*v))
        .y_label_formatter(&|v| number(*v))
        .x_labels(8)
        .y_labels(5);
    if last {
        let from = if axis.measured.is_some() {
            "of the measured phase"
        } else {
            "of the log"
        };
        mesh.x_desc(format!("time since the start {from}, s"));
    }
    mesh.draw()?;
    if let Some(asked) = drawn(panel) {
        let line = [(axis.range.start, asked), (axis.range.end, asked)];
        let dashed = DashedLineSeries::new(line, 6, 4, GREY.stroke_width(1));
        chart.draw_series(dashed)?;
    }
    for at in &axis.changes {
        let line = [(*at, 0.0), (*at, high)];
        chart.draw_series(DashedLineSeries::new(line, 3, 3, GREEN.stroke_width(2)))?;
    }
    for curve in &panel.curves {
        for steps in curve.steps.chunk_by(|a, b| (a.1 - b.0).abs() < 1e-6) {
            let corners = steps
                .iter()
                .flat_map(|(from, until, v)| [(*from, *v), (*until, *v)]);
            chart.draw_series(LineSeries::new(corners, curve.colour.stroke_width(2)))?;
        }
    }
    if labelled {
        label(&mut chart, axis, high)?;
    }
    Ok(())
}

/// Shades times that were not measured (grey) or contended (red).
fn shade(chart: &mut Chart, axis: &Axis, high: f64) -> Result<(), PlotError> {
    let mut band = |range: &Range<f64>, style: ShapeStyle| {
        let from = range.start.max(axis.range.start);
        let until = range.end.min(axis.range.end);
        if from < until {
            let corners = [(from, 0.0), (until, high)];
            chart.draw_series([Rectangle::new(corners, style)])?;
        }
        Ok::<_, PlotError>(())
    };
    if let Some(measured) = &axis.measured {
        let grey = BLACK.mix(0.07).filled();
        band(&(axis.range.start..measured.start), grey)?;
        band(&(measured.end..axis.range.end), grey)?;
    }
    for (range, _) in &axis.contention {
        // A moment too short for a pixel is seen all the same.
        let least = (axis.range.end - axis.range.start) / f64::from(WIDTH);
        let until = range.end.max(range.start + least);
        band(&(range.start..until), RED.mix(0.22).filled())?;
    }
    Ok(())
}

/// Labels contention where there is room.
fn label(chart: &mut Chart, axis: &Axis, high: f64) -> Result<(), PlotError> {
    let length = axis.range.end - axis.range.start;
    let letter = length * LETTER / f64::from(WIDTH - Y_AXIS - RIGHT);
    let mut free = f64::MIN;
    for (range, label) in &axis.contention {
        let width = label.chars().count() as f64 * letter;
        // Towards the left where it would leave the panel.
        let at = range
            .start
            .max(axis.range.start)
            .min(axis.range.end - width);
        if at < free || at < axis.range.start {
            continue;
        }
        free = at + width + letter;
        let style = letters(13, RED);
        chart.draw_series([Text::new(label.clone(), (at, high * 0.99), style)])?;
    }
    Ok(())
}

/// Returns a number without digits that an axis does not need: "400", "0.05".
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the configured value, unless it is so far above the curves that they would be flat.
fn drawn(panel: &Panel) -> Option<f64> {
    panel.asked.filter(|asked| *asked <= 4.0 * most(panel))
}

fn most(panel: &Panel) -> f64 {
    let values = panel.curves.iter().flat_map(|c| &c.steps).map(|s| s.2);
    values.fold(panel.least, f64::max)
}

fn highest(panel: &Panel) -> f64 {
    // Room for labels above.
    most(panel).max(drawn(panel).unwrap_or(0.0)) * 1.18
}
