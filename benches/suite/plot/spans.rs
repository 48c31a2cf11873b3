// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far packets are off: median, 99th percentile and worst of each side.

use std::error::Error;

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::scale::Scale;
use super::{Area, colours, head, label_width, legend, of, picture, write};
use crate::case::cases;
use crate::figure::Results;
use crate::table::tick;

const SPANS: i32 = 560;
const RIGHT: i32 = 40;
const HEAD: i32 = 104;
const FOOT: i32 = 50;
const ROW: i32 = 16;
const GAP: i32 = 12;

/// Below this value the clock is not accurate.
const LEAST_US: f64 = 0.01;

/// Median, 99th percentile, worst, in us.
type Three = [Option<f64>; 3];
type Row<'a> = (&'a str, Vec<(&'a str, Three)>);

/// Of metrics that begin with `error`.
pub fn svg(results: &Results, error: &str) -> Result<Option<String>> {
    let rows = rows(results, error);
    if rows.is_empty() {
        return Ok(None);
    }
    let labels = label_width(rows.iter().map(|(case, _)| *case));
    let width = labels + SPANS + RIGHT;
    let size = (width as u32, (HEAD + height(&rows) + FOOT) as u32);
    picture(size, |area| draw(area, results, &rows, (labels, error))).map(Some)
}

fn height(rows: &[Row]) -> i32 {
    rows.iter().map(|(_, s)| s.len() as i32 * ROW + GAP).sum()
}

fn rows<'a>(results: &'a Results, error: &str) -> Vec<Row<'a>> {
    let mut rows: Vec<Row> = Vec::new();
    for case in cases(results) {
        let (Some(place), Some(scale)) = (which(case.metric, error), us(case.unit)) else {
            continue;
        };
        let at = rows.iter().position(|(name, _)| *name == case.name);
        let at = at.unwrap_or_else(|| {
            rows.push((case.name, Vec::new()));
            rows.len() - 1
        });
        for figure in &case.sides {
            let sides = &mut rows[at].1;
            let found = sides.iter().position(|(side, _)| *side == figure.side);
            let found = found.unwrap_or_else(|| {
                sides.push((&figure.side, [None; 3]));
                sides.len() - 1
            });
            let value = figure.median().abs() * scale;
            sides[found].1[place] = Some(value.max(LEAST_US));
        }
    }
    rows
}

fn which(metric: &str, error: &str) -> Option<usize> {
    let marks = [["median", "p50"], ["99", "p99"], ["worst", "max"]];
    let rest = metric.strip_prefix(error)?;
    marks
        .iter()
        .position(|words| words.iter().any(|word| rest.contains(word)))
}

fn us(unit: &str) -> Option<f64> {
    let units = [
        ("ns", 1e-3),
        ("us", 1.0),
        ("µs", 1.0),
        ("ms", 1e3),
        ("s", 1e6),
    ];
    units.iter().find(|(u, _)| *u == unit).map(|(_, us)| *us)
}

fn draw(
    area: &Area,
    results: &Results,
    rows: &[Row],
    (labels, error): (i32, &str),
) -> Result<(), Box<dyn Error>> {
    let title = format!("How far off: {error}, too early or too late");
    head(area, &title, results)?;
    let sides = || rows.iter().flat_map(|(_, sides)| sides);
    let colours = colours(sides().map(|(side, _)| *side));
    legend(area, &colours, (labels, 64))?;
    let marks = "circle: median, dot: 99th percentile, bar: worst";
    write(area, marks, (labels, 84), HPos::Left, 13, &BLACK)?;
    let values = sides().flat_map(|(_, three)| *three).flatten();
    let Some((x, ticks)) = Scale::over(values, true, (labels, labels + SPANS)) else {
        return Ok(());
    };
    let bottom = HEAD + height(rows);
    for at in ticks {
        let line = vec![(x.at(at), HEAD - 4), (x.at(at), bottom)];
        area.draw(&PathElement::new(line, BLACK.mix(0.14)))?;
        write(
            area,
            &tick(at),
            (x.at(at), bottom + 14),
            HPos::Center,
            13,
            &BLACK,
        )?;
    }
    let middle = labels + SPANS / 2;
    write(area, "us", (middle, bottom + 34), HPos::Center, 13, &BLACK)?;
    let mut y = HEAD;
    for (case, sides) in rows {
        let middle = y + sides.len() as i32 * ROW / 2;
        write(area, case, (labels - 14, middle), HPos::Right, 13, &BLACK)?;
        for (side, three) in sides {
            span(
                area,
                three.map(|v| Some(x.at(v?))),
                y + ROW / 2,
                of(&colours, side),
            )?;
            y += ROW;
        }
        y += GAP;
    }
    Ok(())
}

fn span(
    area: &Area,
    [median, p99, worst]: [Option<i32>; 3],
    y: i32,
    colour: RGBColor,
) -> Result<(), Box<dyn Error>> {
    let known = [median, p99, worst].into_iter().flatten();
    let ends = (known.clone().min(), known.max());
    if let (Some(first), Some(last)) = ends {
        area.draw(&PathElement::new(
            vec![(first, y), (last, y)],
            colour.mix(0.5),
        ))?;
    }
    if let Some(x) = worst {
        let bar = vec![(x, y - 5), (x, y + 5)];
        area.draw(&PathElement::new(bar, colour.stroke_width(2)))?;
    }
    if let Some(x) = p99 {
        area.draw(&Circle::new((x, y), 4, colour.filled()))?;
    }
    if let Some(x) = median {
        area.draw(&Circle::new((x, y), 4, WHITE.filled()))?;
        area.draw(&Circle::new((x, y), 4, colour.stroke_width(2)))?;
    }
    Ok(())
}
