// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost by case.

use std::error::Error;

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Area, colours, head, label_width, legend, of, picture, write};
use crate::case::cases;
use crate::figure::Results;
use crate::table::number;

const BARS: i32 = 540;
/// At the end of the longest bar.
const NUMBERS: i32 = 80;
const HEAD: i32 = 84;
const BAR: i32 = 16;
const GAP: i32 = 12;

/// A case: what each side adds to bare.
type Row<'a> = (&'a str, Vec<(&'a str, f64)>);

pub fn svg(results: &Results) -> Result<Option<String>> {
    if results.section != "cost" {
        return Ok(None);
    }
    let all = cases(results);
    let costs = all.iter().filter(|c| c.unit == "instructions/packet");
    let mut rows: Vec<Row> = costs
        .map(|case| {
            let sides = case.sides.iter();
            let added = sides.filter_map(|f| Some((&*f.side, case.added(f)?)));
            (case.name, added.collect())
        })
        .collect();
    rows.retain(|(_, sides)| !sides.is_empty());
    if rows.is_empty() {
        return Ok(None);
    }
    let height: i32 = rows.iter().map(|(_, s)| s.len() as i32 * BAR + GAP).sum();
    let labels = label_width(rows.iter().map(|(case, _)| *case));
    let size = ((labels + BARS + NUMBERS) as u32, (HEAD + height) as u32);
    picture(size, |area| draw(area, results, &rows, labels)).map(Some)
}

fn draw(area: &Area, results: &Results, rows: &[Row], labels: i32) -> Result<(), Box<dyn Error>> {
    let title = "Instructions a packet, added to the bare path";
    head(area, title, results)?;
    let colours = colours(rows.iter().flat_map(|(_, s)| s).map(|(side, _)| *side));
    legend(area, &colours, (labels, 64))?;
    let values = rows.iter().flat_map(|(_, sides)| sides).map(|(_, v)| *v);
    let scale = f64::from(BARS) / values.fold(1.0, f64::max);
    let mut y = HEAD;
    for (case, sides) in rows {
        let middle = y + sides.len() as i32 * BAR / 2;
        write(area, case, (labels - 10, middle), HPos::Right, 13, &BLACK)?;
        for (side, value) in sides {
            // A negative cost has no bar, only its number.
            let end = labels + (value.max(0.0) * scale) as i32;
            let bar = [(labels, y + 1), (end, y + BAR - 1)];
            area.draw(&Rectangle::new(bar, of(&colours, side).filled()))?;
            let at = (end + 6, y + BAR / 2);
            write(area, &number(*value), at, HPos::Left, 12, &BLACK)?;
            y += BAR;
        }
        y += GAP;
    }
    Ok(())
}
