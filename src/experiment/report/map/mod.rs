// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of a radio channel: where its stations were, and who exchanged data with whom. The map
//! moves by SMIL, and a station is chosen by a radio button and CSS: a page has no scripts.

mod motion;
mod scale;

use std::collections::BTreeMap;

use askama::Template;
use emud_monitor::log::RunMedium;

use super::plot::second;
use crate::experiment::results::{Run, StationPosition, StationTrack};
use motion::{Motion, shown};
use scale::Scale;

/// With more stations the map has no rings: there is one for each pair. Chromium took 0.1 s for a
/// frame with 2,000 rings that change.
const RINGED: usize = 64;
const RINGED_MOVING: usize = 20;
/// With more stations only the chosen one has its name.
const NAMED: usize = 60;
/// Pictures beside the map of stations that move.
const FRAMES: usize = 6;
/// Lines of such a picture: with more, nothing could be seen.
const MOST_EDGES: usize = 2_000;
/// The width of the map and of a picture, px.
const WIDTH: f64 = 720.0;
const FRAME_WIDTH: f64 = 340.0;

/// Map of a medium's stations.
#[derive(Template)]
#[template(path = "map.html", whitespace = "minimize")]
pub struct Map<'a> {
    /// Of the elements of this map.
    id: String,
    name: String,
    about: String,
    moving: Option<Axis>,
    width: f64,
    height: f64,
    /// None: no circle shows it.
    range: Option<f64>,
    named: bool,
    stations: Vec<Dot<'a>>,
    /// Lines between neighbours, if nothing moves.
    edges: Vec<Edge>,
    frames: Vec<Frame<'a>>,
    left_out: &'static str,
}

/// The time of a map that moves.
struct Axis {
    shown_s: f64,
    y: f64,
    left: f64,
    right: f64,
    /// Positions and texts.
    ticks: Vec<(f64, String)>,
}

struct Dot<'a> {
    name: &'a str,
    x: f64,
    y: f64,
    /// None: it stands still.
    motion: Option<Motion>,
    rings: Vec<Ring>,
}

/// The station is a neighbour of another one.
struct Ring {
    of: usize,
    /// When it is and when not; none: always.
    when: Option<Motion>,
}

struct Edge {
    /// Numbers of the stations.
    of: [usize; 2],
    from: [f64; 2],
    to: [f64; 2],
}

/// A picture of a moment.
struct Frame<'a> {
    title: String,
    height: f64,
    dots: Vec<(&'a str, [f64; 2])>,
    named: bool,
    edges: Vec<Edge>,
    /// There are more lines than can be drawn.
    crowded: bool,
}

/// A station with its positions by the time in s, the first one at 0.
struct Walk<'a> {
    name: &'a str,
    places: Vec<(f64, &'a StationPosition)>,
}

impl Walk<'_> {
    /// Returns the last position at a time.
    fn at(&self, s: f64) -> Option<&StationPosition> {
        let next = self.places.partition_point(|(at_s, _)| *at_s <= s);
        let place = self.places.get(next.saturating_sub(1));
        place.map(|(_, place)| *place)
    }
}

/// Returns the maps of all media of all hosts, and their rules of style.
pub fn maps(runs: &[Run]) -> (Vec<Map<'_>>, String) {
    let media = (runs.iter()).flat_map(|run| run.about.media.iter().map(move |m| (run, m)));
    let maps: Vec<Map> = (media.enumerate())
        .filter_map(|(n, (run, medium))| map(run, n, medium))
        .collect();
    let style = maps.iter().map(Map::style).collect();
    (maps, style)
}

fn walk<'a>(run: &Run, track: &'a StationTrack) -> Walk<'a> {
    let places = track.places.points().into_iter();
    let places = places.map(|place| (second(run, place.mono_ns).max(0.0), place));
    Walk {
        name: &track.node,
        places: places.collect(),
    }
}

fn map<'a>(run: &'a Run, n: usize, medium: &'a RunMedium) -> Option<Map<'a>> {
    let own = run.stations.iter().filter(|s| s.medium == medium.name);
    let walks: Vec<Walk> = own.map(|track| walk(run, track)).collect();
    let positions = || {
        walks
            .iter()
            .flat_map(|w| w.places.iter().map(|(_, p)| p.at_m))
    };
    let mut apart = positions().map(|at_m| Some(at_m) != positions().next());
    if medium.range_m.is_none() && !apart.any(|apart| apart) {
        // A wired segment, whose stations have no positions.
        return None;
    }
    let moves = walks.iter().any(|walk| {
        let mut pairs = walk.places.windows(2);
        pairs.any(|pair| pair[0].1.at_m != pair[1].1.at_m)
    });
    let times = || walks.iter().flat_map(|w| &w.places).map(|(s, _)| *s);
    let end_s = times().fold(0.0, f64::max);
    let moves = moves && end_s > 0.0;
    let most = if moves { RINGED_MOVING } else { RINGED };
    let ringed = walks.len() <= most;
    let scale = Scale::of(positions(), WIDTH, moves)?;
    let numbers: BTreeMap<&str, usize> = (walks.iter().enumerate())
        .map(|(n, walk)| (walk.name, n))
        .collect();
    let dots = walks.iter().enumerate().map(|(n, walk)| {
        let [x, y] = scale.px(walk.places.first().map_or([0.0; 2], |(_, p)| p.at_m));
        Dot {
            name: walk.name,
            x,
            y,
            motion: Motion::of_places(&walk.places, end_s, &scale),
            rings: match ringed {
                true => rings(n, &walks, &numbers, end_s),
                false => vec![],
            },
        }
    });
    let still = match moves {
        true => Some(vec![]),
        false => edges(&walks, &numbers, 0.0, &scale),
    };
    let frames = match moves {
        true => frames(&walks, &numbers, end_s),
        false => vec![],
    };
    Some(Map {
        id: format!("map{n}"),
        name: run.named(&medium.name),
        about: about(medium, &scale, moves.then_some(end_s)),
        moving: moves.then(|| axis(&scale, end_s)),
        width: WIDTH,
        height: scale.height,
        range: medium.range_m.map(|range_m| scale.length_px(range_m)),
        named: walks.len() <= NAMED,
        stations: dots.collect(),
        left_out: match (ringed, moves, &still) {
            (true, _, Some(_)) => "",
            (true, _, None) => "More than 2,000 lines between neighbours are not drawn.",
            (false, true, _) => {
                "With more than 20 stations neighbours are marked in the pictures only."
            }
            (false, false, Some(_)) => "With more than 64 stations neighbours have no rings.",
            (false, false, None) => {
                "With more than 64 stations neighbours have no rings; more than 2,000 lines between them are not drawn."
            }
        },
        edges: still.unwrap_or_default(),
        frames,
    })
}

fn about(medium: &RunMedium, scale: &Scale, moves: Option<f64>) -> String {
    let [width_m, height_m] = scale.size_m();
    let circle = medium.range_m.map(|range_m| {
        let range = tenths(range_m);
        format!("the circle is its range of {range} m, and ")
    });
    let mut text = format!(
        "{} x {} m. Choose a station: {}stations with a ring are its neighbours, which receive it \
         and which it receives.",
        width_m.round(),
        height_m.round(),
        circle.unwrap_or_default()
    );
    if let Some(end_s) = moves {
        text += &format!(" {} s show {} s.", tenths(shown(end_s)), tenths(end_s));
    }
    text
}

fn axis(scale: &Scale, end_s: f64) -> Axis {
    let (left, right) = (20.0, WIDTH - 40.0);
    let tick = |n: u32| {
        let share = f64::from(n) / 4.0;
        let text = format!("{} s", tenths(end_s * share));
        (left + share * (right - left), text)
    };
    Axis {
        shown_s: shown(end_s),
        y: scale.height - 26.0,
        left,
        right,
        ticks: (0..=4).map(tick).collect(),
    }
}

/// Returns a value such as "10" or "2.5".
fn tenths(value: f64) -> String {
    ((value * 10.0).round() / 10.0).to_string()
}

/// Returns a ring for each station that this one is ever a neighbour of.
fn rings(n: usize, walks: &[Walk], numbers: &BTreeMap<&str, usize>, end_s: f64) -> Vec<Ring> {
    let mut when: BTreeMap<usize, Vec<(f64, bool)>> = BTreeMap::new();
    for (at_s, place) in &walks[n].places {
        let now = place.neighbours.iter();
        let now: Vec<usize> = now
            .filter_map(|name| numbers.get(&**name).copied())
            .collect();
        for of in &now {
            when.entry(*of).or_insert_with(|| vec![(0.0, *at_s == 0.0)]);
        }
        for (of, changes) in &mut when {
            let is = now.contains(of);
            if changes.last().map(|(_, was)| *was) != Some(is) {
                changes.push((*at_s, is));
            }
        }
    }
    let ring = |(of, changes): (usize, Vec<(f64, bool)>)| Ring {
        of,
        when: Motion::of_changes(&changes, end_s),
    };
    when.into_iter().map(ring).collect()
}

/// Returns the lines between neighbours at a time; `None`: there are too many.
fn edges(
    walks: &[Walk],
    numbers: &BTreeMap<&str, usize>,
    at_s: f64,
    scale: &Scale,
) -> Option<Vec<Edge>> {
    let mut edges = Vec::new();
    for (n, walk) in walks.iter().enumerate() {
        let Some(place) = walk.at(at_s) else { continue };
        for name in place.neighbours.iter() {
            let other = numbers.get(&**name).copied().filter(|other| *other > n);
            let Some((other, to)) = other.and_then(|o| Some((o, walks[o].at(at_s)?))) else {
                continue;
            };
            edges.push(Edge {
                of: [n, other],
                from: scale.px(place.at_m),
                to: scale.px(to.at_m),
            });
        }
    }
    (edges.len() <= MOST_EDGES).then_some(edges)
}

fn frames<'a>(walks: &[Walk<'a>], numbers: &BTreeMap<&str, usize>, end_s: f64) -> Vec<Frame<'a>> {
    let positions = walks
        .iter()
        .flat_map(|w| w.places.iter().map(|(_, p)| p.at_m));
    let Some(scale) = Scale::of(positions, FRAME_WIDTH, false) else {
        return vec![];
    };
    let frame = |n: usize| {
        let at_s = end_s * n as f64 / (FRAMES - 1) as f64;
        let dots = walks.iter().filter_map(|walk| {
            let place = walk.at(at_s)?;
            Some((walk.name, scale.px(place.at_m)))
        });
        let edges = edges(walks, numbers, at_s, &scale);
        Frame {
            title: format!("{} s", tenths(at_s)),
            height: scale.height,
            dots: dots.collect(),
            named: walks.len() <= FRAMES,
            crowded: edges.is_none(),
            edges: edges.unwrap_or_default(),
        }
    };
    (0..FRAMES).map(frame).collect()
}

impl Map<'_> {
    /// Returns the style by which a chosen station shows its range and its neighbours.
    fn style(&self) -> String {
        let id = &self.id;
        let shown = |n: usize| {
            format!(
                "#{id}-{n}:checked~.map .{id}r{n}{{visibility:visible}}\n\
                 #{id}-{n}:checked~.frames .{id}e{n}{{stroke:var(--reach);stroke-width:2.5}}\n\
                 #{id}-{n}:checked~.chips label[for=\"{id}-{n}\"]{{background:var(--chosen)}}\n"
            )
        };
        (0..self.stations.len()).map(shown).collect()
    }
}
