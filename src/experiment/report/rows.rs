// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a published experiment as rows, each relative to its tolerance, as SVG. plot.css has
//! each colour for dark pages.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::experiment::reproduce::{Figure, FigureVerdict, Tolerance};
use crate::plot::{Area, BLUE, BROWN, GREEN, GREY, PlotError, RED, VIOLET, letters, svg, write};
use crate::text::Word;

/// That of a phone: letters are as large there as drawn.
const WIDTH: i32 = 400;
const MARGIN: i32 = 16;
const ROW: i32 = 38;
/// Of a row, above its middle line.
const MIDDLE: i32 = 26;
const BAND: i32 = 7;
/// Half the size of a mark.
const MARK: i32 = 5;
const AXIS: i32 = 20;
/// Letters of a name that fit.
const LETTERS: usize = 62;
/// What is farther away, in widths of the tolerance to one side, is at the end of the row.
const END: f64 = 3.0;

/// Where values are relative to a tolerance: at -1 is its lower limit, at 1 the upper one.
struct Scale {
    middle: f64,
    half: f64,
    /// There is no upper limit.
    open: bool,
}

impl Scale {
    /// Returns the scale of a figure; `None`: there is no value to compare with, or none is expected.
    fn of(figure: &Figure) -> Option<Self> {
        let (middle, half) = match figure.tolerance {
            Tolerance::Absolute(most) => (figure.expected()?, most),
            Tolerance::Share(share) => (figure.expected()?, share * figure.expected()?.abs()),
            Tolerance::Any => return None,
            Tolerance::Range(from, to) => ((from + to) / 2.0, (to - from) / 2.0),
            Tolerance::AtLeast(least) => match least.abs() {
                0.0 => (1.0, 1.0),
                size => (least + size, size),
            },
        };
        let open = matches!(figure.tolerance, Tolerance::AtLeast(_));
        Some(Self { middle, half, open })
    }

    fn at(&self, value: f64) -> f64 {
        match value - self.middle {
            0.0 => 0.0,
            // Nothing else is within a tolerance of 0.
            away => away / self.half,
        }
    }
}

/// Draws a row for each.
///
/// # Errors
/// They cannot be drawn: a fault of emud's.
pub fn draw(figures: &[Figure]) -> Result<String, PlotError> {
    let height = ROW * figures.len() as i32 + AXIS;
    svg((WIDTH as u32, height as u32), |area| {
        for (n, figure) in figures.iter().enumerate() {
            draw_row(area, figure, ROW * n as i32)?;
        }
        for at in [-END, -1.0, 0.0, 1.0, END] {
            centred(area, &at.to_string(), (x(at), height - AXIS + 4), GREY)?;
        }
        Ok(())
    })
}

/// Draws the mark of each verdict that has one.
///
/// # Errors
/// They cannot be drawn: a fault of emud's.
pub fn legend() -> Result<String, PlotError> {
    let verdicts = FigureVerdict::WORDS.iter();
    let unmarked = [FigureVerdict::Missing, FigureVerdict::Reported];
    let marked = verdicts.filter(|(_, verdict)| !unmarked.contains(verdict));
    let marked: Vec<_> = marked.collect();
    svg((WIDTH as u32, 20 * marked.len() as u32), |area| {
        for (n, (word, verdict)) in marked.iter().enumerate() {
            let y = 20 * n as i32 + 10;
            mark(area, *verdict, (MARGIN, y))?;
            write(area, word, (MARGIN + 16, y - 7), 15)?;
        }
        Ok(())
    })
}

fn draw_row(area: &Area, figure: &Figure, top: i32) -> Result<(), PlotError> {
    let y = top + MIDDLE;
    write(area, &shortened(&figure.figure), (MARGIN, top + 2), 15)?;
    let Some(scale) = Scale::of(figure) else {
        let why = match figure.tolerance {
            Tolerance::Any => "not judged",
            _ => "no theory, not published",
        };
        let text = format!("{}: {why}", figure.verdict.word());
        area.draw(&Text::new(text, (MARGIN, y - 7), letters(14, GREY)))?;
        return Ok(());
    };
    let upper = if scale.open { END } else { 1.0 };
    let band = [(x(-1.0), y - BAND), (x(upper), y + BAND)];
    area.draw(&Rectangle::new(band, GREY.mix(0.22).filled()))?;
    line(area, (x(-END), y), (x(END), y), GREY)?;
    let inside = |value: Option<f64>| {
        let at = value.map(|value| scale.at(value));
        at.filter(|at| at.abs() <= END).map(x)
    };
    if let Some(x) = inside(figure.expected()) {
        line(area, (x, y - BAND), (x, y + BAND), BLACK)?;
    }
    if let (Some(_), Some(x)) = (figure.theory, inside(figure.published)) {
        centred(area, "p", (x, y + 2), GREY)?;
    }
    let Some(measured) = figure.measured else {
        let text = match figure.verdict {
            FigureVerdict::Missing => "not measured".to_owned(),
            other => format!("{}: not measured", other.word()),
        };
        return centred(area, &text, (x(2.0), y - 7), GREY);
    };
    let at = scale.at(measured);
    if at.abs() > END {
        let end = END.copysign(at);
        let (arrow, x) = match at > 0.0 {
            true => (">", x(end) + 11),
            false => ("<", x(end) - 11),
        };
        centred(area, arrow, (x, y - 7), BLACK)?;
    }
    mark(area, figure.verdict, (x(at), y))
}

/// Draws the mark of a verdict. Each has a shape, since not all readers see the colours.
fn mark(area: &Area, verdict: FigureVerdict, at: (i32, i32)) -> Result<(), PlotError> {
    let (x, y) = at;
    let [left, right, above, below] = [x - MARK, x + MARK, y - MARK, y + MARK];
    match verdict {
        FigureVerdict::Within => area.draw(&Circle::new(at, MARK, GREEN.filled()))?,
        FigureVerdict::Explained => {
            area.draw(&TriangleMarker::new(at, MARK + 2, BLUE.filled()))?;
        }
        FigureVerdict::Deviates => area.draw(&Cross::new(at, MARK, RED.stroke_width(3)))?,
        FigureVerdict::Contended => {
            let corners = [(left, above), (right, above), (right, below), (left, below)];
            outline(area, corners, BROWN)?;
        }
        FigureVerdict::Invalid => {
            outline(
                area,
                [(left, y), (x, above), (right, y), (x, below)],
                VIOLET,
            )?;
        }
        FigureVerdict::Missing | FigureVerdict::Reported => {}
    }
    Ok(())
}

fn outline(area: &Area, corners: [(i32, i32); 4], colour: RGBColor) -> Result<(), PlotError> {
    let closed = corners.into_iter().chain([corners[0]]);
    area.draw(&PathElement::new(
        closed.collect::<Vec<_>>(),
        colour.stroke_width(2),
    ))?;
    Ok(())
}

fn line(area: &Area, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<(), PlotError> {
    area.draw(&PathElement::new([from, to], colour.stroke_width(1)))?;
    Ok(())
}

fn centred(area: &Area, text: &str, at: (i32, i32), colour: RGBColor) -> Result<(), PlotError> {
    let style = letters(14, colour).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw(&Text::new(text.to_owned(), at, style))?;
    Ok(())
}

/// Returns the position of a value; one beyond an end is at the end.
fn x(at: f64) -> i32 {
    let half = f64::from(WIDTH / 2 - MARGIN - MARK);
    WIDTH / 2 + (at.clamp(-END, END) / END * half).round() as i32
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
