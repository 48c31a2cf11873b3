// SPDX-License-Identifier: MIT OR Apache-2.0
//! Complementary cumulative distributions, a panel per criterion, both axes logarithmic: the
//! share of values that are at least as large, with the thresholds.

use emud::plot::{Area, BLUE, GREEN, GREY, PlotError, RED, chart, grid, letters, svg, write};
use emud_monitor::calibrate::{Distribution, Measure};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::report::{CalibrationReport, Row};

const COLUMNS: usize = 2;
const PANEL: (u32, u32) = (620, 360);
const HEADER: u32 = 64;

/// Returns the figure as SVG.
///
/// # Errors
/// The drawing library's.
pub fn draw(report: &CalibrationReport) -> Result<String, PlotError> {
    let rows = report.rows.len().div_ceil(COLUMNS).max(1);
    let size = (PANEL.0 * COLUMNS as u32, HEADER + PANEL.1 * rows as u32);
    svg(size, |root| {
        let (header, body) = root.split_vertically(HEADER);
        legend(&header, report)?;
        let panels = body.split_evenly((rows, COLUMNS));
        for (row, area) in report.rows.iter().zip(&panels) {
            panel(area, row)?;
        }
        Ok(())
    })
}

fn legend(area: &Area, report: &CalibrationReport) -> Result<(), PlotError> {
    write(
        area,
        "Share of values that are at least as large",
        (16, 10),
        19,
    )?;
    let contended = report.rows.iter().any(|r| r.contended.is_some());
    let entries = [
        ("good recordings", BLUE, true),
        ("contended recordings", RED, contended),
        ("requested theta", GREY, true),
        ("suggested theta", GREEN, true),
    ];
    let mut x = 16;
    for (name, colour, shown) in entries {
        if !shown {
            continue;
        }
        let line = vec![(x, 48), (x + 28, 48)];
        area.draw(&PathElement::new(line, colour.stroke_width(3)))?;
        write(area, name, (x + 36, 40), 15)?;
        x += 60 + 8 * name.len() as i32;
    }
    Ok(())
}

fn panel(area: &Area, row: &Row) -> Result<(), PlotError> {
    let Some(range) = Range::of(row) else {
        return empty(area, row);
    };
    let mut chart = chart(area, &row.title(), 64).build_cartesian_2d(
        (range.values.0..range.values.1).log_scale(),
        (range.shares..1.0).log_scale(),
    )?;
    let mut mesh = chart.configure_mesh();
    grid(
        mesh.x_labels(7)
            .y_labels(7)
            .x_label_formatter(&|v| row.quantity(v.round() as u64))
            .y_label_formatter(&|share| percent(*share)),
    )?;
    let curves = [(Some(&row.good), BLUE), (row.contended.as_ref(), RED)];
    for (measure, colour) in curves {
        if let Some(measure) = measure {
            let line = steps(row, &measure.total.distribution, range.shares);
            chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
        }
    }
    let current = row.good.total.threshold.map(|t| row.value(t));
    let thetas = [(current, GREY, 0.62), (row.suggestion.theta, GREEN, 0.86)];
    for (theta, colour, height) in thetas {
        let Some(theta) = theta else { continue };
        let x = theta as f64;
        let line = [(x, range.shares), (x, 1.0)];
        chart.draw_series(DashedLineSeries::new(line, 6, 4, colour.stroke_width(2)))?;
        // There is room above and to the right of a falling curve, except at the edge.
        let (low, high) = (range.values.0.ln(), range.values.1.ln());
        let (side, shift) = if (x.ln() - low) / (high - low) < 0.85 {
            (HPos::Left, 5_i32)
        } else {
            (HPos::Right, -5)
        };
        let style = letters(14, colour);
        let text = row.quantity(theta);
        // A curve of the contended recordings may pass behind the text.
        let width = shift.signum() * (8 * text.len() as i32 + 2);
        let ground = [(shift, -9), (shift + width, 9)];
        let label = EmptyElement::at((x, range.shares.powf(1.0 - height)))
            + Rectangle::new(ground, WHITE.mix(0.85).filled())
            + Text::new(text, (shift, 0), style.pos(Pos::new(side, VPos::Center)));
        chart.draw_series([label])?;
    }
    Ok(())
}

fn empty(area: &Area, row: &Row) -> Result<(), PlotError> {
    let (width, height) = area.dim_in_pixel();
    let centre = Pos::new(HPos::Center, VPos::Center);
    let what = match row.watched {
        emud_monitor::event::Watched::Yes => "no value was recorded",
        _ => "unknown: no hook recorded it",
    };
    let caption = letters(17, BLACK).pos(centre);
    area.draw(&Text::new(row.title(), (width as i32 / 2, 24), caption))?;
    let style = letters(15, GREY).pos(centre);
    let middle = (width as i32 / 2, height as i32 / 2);
    area.draw(&Text::new(what, middle, style))?;
    Ok(())
}

/// The range of a panel.
struct Range {
    values: (f64, f64),
    /// The smallest share, below that of the largest value.
    shares: f64,
}

impl Range {
    /// Returns `None` if there is no value.
    fn of(row: &Row) -> Option<Self> {
        let measures: Vec<&Measure> = [Some(&row.good), row.contended.as_ref()]
            .into_iter()
            .flatten()
            .filter(|m| m.total.distribution.count() > 0)
            .collect();
        let largest_count = measures
            .iter()
            .map(|m| m.total.distribution.count())
            .max()?;
        let value = |v: Option<u64>| v.map(|v| row.value(v).max(1) as f64);
        let quantile = |q| {
            let of = move |m: &&Measure| value(m.total.distribution.quantile(q));
            measures.iter().filter_map(of)
        };
        let current = value(row.good.total.threshold);
        let suggested = row.suggestion.theta.map(|t| t as f64);
        let thetas = || current.into_iter().chain(suggested);
        let low = quantile(0.0).chain(thetas()).fold(f64::MAX, f64::min);
        let high = quantile(1.0).chain(thetas()).fold(1.0, f64::max);
        Some(Self {
            values: (decade(low, f64::floor), decade(high * 1.2, f64::ceil)),
            shares: decade(0.5 / largest_count as f64, f64::floor),
        })
    }
}

fn decade(value: f64, round: fn(f64) -> f64) -> f64 {
    10f64.powf(round(value.log10()))
}

/// Returns the steps of the share of values at least as large: it is constant between two values.
fn steps(row: &Row, distribution: &Distribution, floor: f64) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = vec![];
    for (value, share) in distribution.complementary() {
        let x = row.value(value).max(1) as f64;
        if let Some((before, _)) = line.last().copied() {
            line.push((before, share));
        }
        line.push((x, share));
    }
    if let Some((last, _)) = line.last().copied() {
        line.push((last, floor));
    }
    line
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let places = (-percent.log10()).ceil().max(0.0) as usize;
    format!("{percent:.places$} %")
}
