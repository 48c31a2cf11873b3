// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all plots have in common: colours, letters, grid, and the image as SVG.

use std::error::Error;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::TextStyle;

/// The measured or only curve.
pub const BLUE: RGBColor = RGBColor(31, 94, 168);
/// Colour of a second curve.
pub const VIOLET: RGBColor = RGBColor(107, 79, 160);
/// Losses, and a third curve.
pub const BROWN: RGBColor = RGBColor(168, 60, 31);
/// Colour of configured values.
pub const GREY: RGBColor = RGBColor(96, 96, 96);
/// A change, a suggestion.
pub const GREEN: RGBColor = RGBColor(10, 122, 92);
/// Colour of contention.
pub const RED: RGBColor = RGBColor(200, 40, 30);

/// A plot cannot be drawn: a fault of emud's.
pub type PlotError = Box<dyn Error + Send + Sync>;

/// A part of an image.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Returns an image of this width and height on white ground.
pub fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        root.present()?;
    }
    Ok(text)
}

/// Returns letters of this height in pixels.
pub fn letters(height: u32, colour: RGBColor) -> TextStyle<'static> {
    let font: FontDesc<'static> = ("sans-serif", height).into_font();
    font.color(&colour)
}

/// Writes black letters of this height at a position of an area, both in pixels.
///
/// # Errors
/// They cannot be drawn.
pub fn write(area: &Area, text: &str, at: (i32, i32), height: u32) -> Result<(), PlotError> {
    area.draw(&Text::new(text.to_owned(), at, letters(height, BLACK)))?;
    Ok(())
}

/// Begins a chart with a title; `left`: room for the numbers of the vertical axis.
pub fn chart<'a, 'b>(
    area: &'a Area<'b>,
    title: &str,
    left: u32,
) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart
        .caption(title, ("sans-serif", 17))
        .margin(10)
        .margin_right(26)
        .x_label_area_size(40)
        .y_label_area_size(left);
    chart
}

/// Draws the grid of a chart.
pub fn grid<X, Y, XT, YT>(mesh: &mut MeshStyle<'_, '_, X, Y, SVGBackend>) -> Result<(), PlotError>
where
    X: Ranged<ValueType = XT> + ValueFormatter<XT>,
    Y: Ranged<ValueType = YT> + ValueFormatter<YT>,
{
    mesh.light_line_style(BLACK.mix(0.04))
        .bold_line_style(BLACK.mix(0.14))
        .label_style(("sans-serif", 13))
        .draw()?;
    Ok(())
}
