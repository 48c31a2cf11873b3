// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of `emud medium watch`: where the stations are, the range of the selected one, and lines
//! to its neighbours.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use ratatui::text::Line;
use ratatui::widgets::canvas::{Canvas, Circle, Context, Line as Stroke};

use super::draw::{DIM, STRONG};
use crate::experiment::results::{FollowedMedium, FollowedStation};
use crate::text::printable;

/// More names than this would cover each other.
const NAMES: usize = 30;
/// Room beside the outermost stations.
const ROOM: f64 = 1.1;

/// Draws the map.
pub(super) fn draw_map(medium: &FollowedMedium, selected: usize, frame: &mut Frame, area: Rect) {
    let [x, y] = bounds(medium.area_m, area);
    let map = Canvas::default().x_bounds(x).y_bounds(y);
    let map = map.paint(|map| paint(medium, selected, map));
    frame.render_widget(map, area);
}

/// Returns the distance that the map is wide, m.
pub(super) fn across_m(medium: &FollowedMedium, area: Rect) -> f64 {
    let [[left, right], _] = bounds(medium.area_m, area);
    right - left
}

/// Returns the visible range in x and in y. A cell has 2 x 4 dots, and a dot as many metres in both directions.
fn bounds([low, high]: [[f64; 2]; 2], area: Rect) -> [[f64; 2]; 2] {
    let dots = [2.0 * f64::from(area.width), 4.0 * f64::from(area.height)].map(|d| d.max(1.0));
    let needed = [0, 1].map(|axis| (high[axis] - low[axis]) * ROOM / dots[axis]);
    let metres = needed[0].max(needed[1]).max(0.01);
    [0, 1].map(|axis| {
        let middle = (low[axis] + high[axis]) / 2.0;
        let half = metres * dots[axis] / 2.0;
        [middle - half, middle + half]
    })
}

fn paint(medium: &FollowedMedium, selected: usize, map: &mut Context<'_>) {
    let stations = &medium.stations;
    let Some(chosen) = stations.get(selected) else {
        return;
    };
    let [x, y] = chosen.at_m;
    if let Some(range_m) = medium.range_m {
        map.draw(&Circle::new(x, y, range_m, Color::Reset));
    }
    let is_near = |station: &&FollowedStation| chosen.neighbours.contains(&station.node);
    for near in stations.iter().filter(is_near) {
        let [to_x, to_y] = near.at_m;
        map.draw(&Stroke::new(x, y, to_x, to_y, Color::Reset));
    }
    map.layer();
    // What comes later covers what was before.
    for station in stations {
        match stations.len() <= NAMES {
            true => name(station, map, Line::from),
            false => map.print(station.at_m[0], station.at_m[1], Line::styled("o", DIM)),
        }
    }
    for near in stations.iter().filter(is_near) {
        name(near, map, |name| Line::styled(name, STRONG));
    }
    let reversed = STRONG.add_modifier(Modifier::REVERSED);
    name(chosen, map, |name| Line::styled(name, reversed));
}

fn name(station: &FollowedStation, map: &mut Context<'_>, line: impl Fn(String) -> Line<'static>) {
    let [x, y] = station.at_m;
    map.print(x, y, line(printable(&station.node).into_owned()));
}
