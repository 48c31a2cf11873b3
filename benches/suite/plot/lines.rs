// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities by the number of links, or by the delay.

use std::error::Error;

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::scale::Scale;
use super::{Area, colours, head, legend, of, picture, split, write};
use crate::case::{Case, cases, is_base};
use crate::figure::Results;
use crate::table::tick;

const PANEL: (u32, u32) = (600, 400);
const COLUMNS: usize = 2;
const HEAD: u32 = 84;

/// At x: the median, the minimum, the maximum.
type Point = (f64, [f64; 3]);

struct Panel {
    title: String,
    x_desc: &'static str,
    y_desc: String,
    log_y: bool,
    sides: Vec<(String, Vec<Point>)>,
}

/// Every metric by the number of links, both axes logarithmic.
pub fn over_links(results: &Results) -> Result<Option<String>> {
    if results.section != "links" {
        return Ok(None);
    }
    let title = "By the number of links";
    draw(results, title, panels(results, "link", "links", |_| true))
}

/// Goodput by delay.
pub fn over_delay(results: &Results) -> Result<Option<String>> {
    let panels = panels(results, "ms", "one-way delay, ms", |unit| unit == "Mbit/s");
    draw(results, "Goodput by delay", panels)
}

/// One per metric and common part of the cases' names.
fn panels(
    results: &Results,
    number_of: &str,
    x_desc: &'static str,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for case in cases(results).iter().filter(|case| wanted(case.unit)) {
        let Some((x, rest)) = split(case.name, number_of) else {
            continue;
        };
        let title = match &*rest {
            "" => case.metric.to_owned(),
            rest => format!("{}: {rest}", case.metric),
        };
        let at = panels.iter().position(|panel| panel.title == title);
        let at = at.unwrap_or_else(|| {
            let added = if case.base().is_some() {
                ", added to bare"
            } else {
                ""
            };
            panels.push(Panel {
                title,
                x_desc,
                y_desc: format!("{}{added}", case.unit),
                log_y: number_of == "link",
                sides: Vec::new(),
            });
            panels.len() - 1
        });
        panels[at].add(case, x);
    }
    panels.retain(|panel| panel.sides.iter().any(|(_, points)| points.len() > 1));
    for (_, points) in panels.iter_mut().flat_map(|panel| &mut panel.sides) {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    panels
}

impl Panel {
    fn add(&mut self, case: &Case, x: f64) {
        for figure in &case.sides {
            let net = case.net(figure);
            // The base of comparisons, and values that a logarithmic axis cannot show.
            let is_zero = case.base().is_some() && is_base(&figure.side);
            if is_zero || x <= 0.0 || self.log_y && net <= 0.0 {
                continue;
            }
            let less = figure.median() - net;
            let (least, most) = figure.spread();
            let point = (x, [net, least - less, most - less]);
            match self.sides.iter_mut().find(|(side, _)| *side == figure.side) {
                Some((_, points)) => points.push(point),
                None => self.sides.push((figure.side.clone(), vec![point])),
            }
        }
    }
}

fn draw(results: &Results, title: &str, panels: Vec<Panel>) -> Result<Option<String>> {
    if panels.is_empty() {
        return Ok(None);
    }
    let columns = COLUMNS.min(panels.len());
    let rows = panels.len().div_ceil(columns);
    let size = (PANEL.0 * columns as u32, HEAD + PANEL.1 * rows as u32);
    let svg = picture(size, |area| {
        let (top, body) = area.split_vertically(HEAD);
        head(&top, title, results)?;
        let sides = panels.iter().flat_map(|panel| &panel.sides);
        let colours = colours(sides.map(|(side, _)| &**side));
        legend(&top, &colours, (16, 66))?;
        for (panel, area) in panels.iter().zip(body.split_evenly((rows, columns))) {
            draw_panel(&area, panel, &colours)?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

fn draw_panel(
    area: &Area,
    panel: &Panel,
    colours: &[(&str, RGBColor)],
) -> Result<(), Box<dyn Error>> {
    let (right, bottom) = (PANEL.0 as i32 - 30, PANEL.1 as i32 - 60);
    let values = panel.sides.iter().flat_map(|(_, points)| points);
    let values = values.flat_map(|(_, v)| *v);
    let Some((y, y_ticks)) = Scale::over(values, panel.log_y, (bottom, 44)) else {
        return Ok(());
    };
    let mut x_ticks: Vec<f64> = (panel.sides.iter().flat_map(|(_, points)| points))
        .map(|(x, _)| *x)
        .collect();
    x_ticks.sort_by(f64::total_cmp);
    x_ticks.dedup();
    let ends = (x_ticks[0], x_ticks[x_ticks.len() - 1]);
    let x = Scale::between(ends, (104, right - 20));
    write(area, &panel.title, (84, 24), HPos::Left, 15, &BLACK)?;
    for at in x_ticks {
        let line = vec![(x.at(at), 44), (x.at(at), bottom)];
        area.draw(&PathElement::new(line, BLACK.mix(0.12)))?;
        write(
            area,
            &tick(at),
            (x.at(at), bottom + 14),
            HPos::Center,
            13,
            &BLACK,
        )?;
    }
    for at in y_ticks {
        let line = vec![(84, y.at(at)), (right, y.at(at))];
        area.draw(&PathElement::new(line, BLACK.mix(0.12)))?;
        write(area, &tick(at), (78, y.at(at)), HPos::Right, 13, &BLACK)?;
    }
    let middle = (84 + right) / 2;
    write(
        area,
        panel.x_desc,
        (middle, bottom + 34),
        HPos::Center,
        13,
        &BLACK,
    )?;
    write(area, &panel.y_desc, (right, 24), HPos::Right, 13, &BLACK)?;
    for (side, points) in &panel.sides {
        draw_side(area, points, (&x, &y), of(colours, side))?;
    }
    Ok(())
}

/// Medians joined, each with its spread.
fn draw_side(
    area: &Area,
    points: &[Point],
    (x, y): (&Scale, &Scale),
    colour: RGBColor,
) -> Result<(), Box<dyn Error>> {
    let line: Vec<_> = points
        .iter()
        .map(|(at, v)| (x.at(*at), y.at(v[0])))
        .collect();
    for point in &line {
        area.draw(&Circle::new(*point, 3, colour.filled()))?;
    }
    area.draw(&PathElement::new(line, colour.stroke_width(2)))?;
    for (at, [_, least, most]) in points {
        let spread = vec![(x.at(*at), y.at(*least)), (x.at(*at), y.at(*most))];
        area.draw(&PathElement::new(spread, colour.stroke_width(1)))?;
    }
    Ok(())
}
