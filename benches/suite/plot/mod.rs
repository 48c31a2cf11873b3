// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as SVG.

mod bars;
mod lines;
mod scale;
mod spans;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::case::{is_base, is_netem};
use crate::figure::Results;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A file.
pub struct Plot {
    pub section: String,
    pub title: String,
    pub file: String,
    pub svg: String,
}

/// Whatever there are results for, one file a section and boot.
pub fn all(all: &[Results]) -> Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for results in all {
        for (what, svg) in [
            ("cost", bars::svg(results)?),
            ("links", lines::over_links(results)?),
            ("goodput", lines::over_delay(results)?),
            ("departure-error", spans::svg(results, "departure error")?),
            ("arrival-error", spans::svg(results, "arrival error")?),
        ] {
            let Some(svg) = svg else { continue };
            let (section, kernel) = (&results.section, &results.machine.kernel);
            let part = if what == section {
                String::new()
            } else {
                format!("-{what}")
            };
            let file = format!(
                "{section}{part}-{kernel}-{}.svg",
                word(&results.machine.place)
            );
            plots.push(Plot {
                section: section.clone(),
                title: format!("{}, Linux {kernel}", what.replace('-', " ")),
                file,
                svg,
            });
        }
    }
    Ok(plots)
}

/// "guest, 1 CPU, 1 ns an instruction": "guest-1-cpu"
fn word(place: &str) -> String {
    let words = place.split([',', ' ']).filter(|w| !w.is_empty());
    words.take(3).collect::<Vec<_>>().join("-").to_lowercase()
}

/// The same side has the same colour in every plot; `nth` distinguishes several of a kind.
fn colour(side: &str, nth: usize) -> RGBColor {
    const NETEM: [RGBColor; 3] = [
        RGBColor(206, 98, 24),
        RGBColor(150, 46, 46),
        RGBColor(222, 164, 40),
    ];
    const GREYS: [RGBColor; 2] = [RGBColor(128, 128, 128), RGBColor(176, 176, 176)];
    const OTHERS: [RGBColor; 4] = [
        RGBColor(112, 70, 150),
        RGBColor(24, 140, 150),
        RGBColor(170, 60, 120),
        RGBColor(110, 120, 30),
    ];
    match side {
        _ if is_base(side) || side.starts_with("bare") => GREYS[nth % GREYS.len()],
        _ if is_netem(side) => NETEM[nth % NETEM.len()],
        "emud" => RGBColor(31, 94, 168),
        "emud hold" => RGBColor(24, 128, 74),
        _ => OTHERS[nth % OTHERS.len()],
    }
}

/// Sides in the order in which they first come, each with its colour.
fn colours<'a>(sides: impl Iterator<Item = &'a str>) -> Vec<(&'a str, RGBColor)> {
    let mut seen: Vec<(&str, RGBColor)> = Vec::new();
    for side in sides {
        if seen.iter().all(|(s, _)| *s != side) {
            let kind = |s: &str| ["bare", "netem", "emud"].map(|kind| s.starts_with(kind));
            let nth = seen.iter().filter(|(s, _)| kind(s) == kind(side)).count();
            seen.push((side, colour(side, nth)));
        }
    }
    seen
}

fn of(colours: &[(&str, RGBColor)], side: &str) -> RGBColor {
    let found = colours.iter().find(|(s, _)| *s == side);
    found.map_or(BLACK, |(_, colour)| *colour)
}

/// Draws into a picture of that size.
fn picture(
    size: (u32, u32),
    draw: impl FnOnce(&Area) -> std::result::Result<(), Box<dyn std::error::Error>>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = root
            .fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| draw(&root));
        drawn.map_err(|e| anyhow!("plot: {e}"))?;
        root.present()?;
    }
    Ok(svg)
}

/// A line of text, by its left or right end and its middle.
fn write(
    area: &Area,
    text: &str,
    at: (i32, i32),
    from: HPos,
    size: i32,
    colour: &RGBColor,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let style = ("sans-serif", size).into_font().color(colour);
    let style = style.pos(Pos::new(from, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))?;
    Ok(())
}

/// The names of the sides in their colours, below one another or in a row; where it ends.
fn legend(
    area: &Area,
    sides: &[(&str, RGBColor)],
    (mut x, y): (i32, i32),
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    for (side, colour) in sides {
        area.draw(&Rectangle::new(
            [(x, y - 5), (x + 12, y + 5)],
            colour.filled(),
        ))?;
        write(area, side, (x + 17, y), HPos::Left, 13, &BLACK)?;
        x += 17 + 8 * side.chars().count() as i32 + 16;
    }
    Ok(())
}

/// What the names to the left of a plot take, at the most.
fn label_width<'a>(names: impl Iterator<Item = &'a str>) -> i32 {
    let longest = names.map(|name| name.chars().count()).max();
    40 + 7 * longest.unwrap_or(0) as i32
}

/// The title, and below it what was measured on.
fn head(
    area: &Area,
    title: &str,
    results: &Results,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let machine = &results.machine;
    let measured_on = format!("Linux {}; {}", machine.kernel, machine.place);
    write(area, title, (16, 20), HPos::Left, 19, &BLACK)?;
    write(area, &measured_on, (16, 42), HPos::Left, 13, &BLACK)
}

/// The number of a case before a unit, and the case without that part:
/// "16 links, forwarded" by "link": 16, "forwarded".
fn split(case: &str, unit: &str) -> Option<(f64, String)> {
    let mut number = None;
    let mut rest = Vec::new();
    for part in case.split(", ") {
        match number.is_none().then(|| before(part, unit)).flatten() {
            Some(found) => number = Some(found),
            None => rest.push(part),
        }
    }
    Some((number?, rest.join(", ")))
}

fn before(part: &str, unit: &str) -> Option<f64> {
    let words: Vec<&str> = part.split(' ').collect();
    let is_unit = |word: &str| word == unit || word.strip_suffix('s') == Some(unit);
    let at = words.iter().position(|word| is_unit(word))?;
    words[at.checked_sub(1)?].replace(',', "").parse().ok()
}
