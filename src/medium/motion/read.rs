// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mobility traces: ns-2 (`setdest`), BonnMotion (`t x y` or `t x y z` in a line per node), CSV with
//! columns time, node, x, y, and GPX. The format follows from the content.

use std::collections::BTreeMap;

use super::gpx::{gpx_tracks, is_gpx, project};
use super::trace::{LONGEST_S, MOST_NODES, TraceError, wrong};
use super::{Named, Track};
use crate::medium::phy::Position;

/// Positions beyond these are mistakes, m.
const FARTHEST_M: f64 = 1e7;

/// Reads a trace: a track for each node, in the order of their names or numbers.
///
/// # Errors
/// The first line that is none of a trace.
pub fn read(text: &str) -> Result<Vec<Named>, TraceError> {
    if is_gpx(text) {
        return project(&gpx_tracks(text)?);
    }
    let lines = || {
        let lines = text
            .lines()
            .enumerate()
            .map(|(n, line)| (n + 1, line.trim()));
        lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    };
    let Some((_, first)) = lines().next() else {
        return Err(wrong(1, "the trace is empty"));
    };
    if first.starts_with('$') || first.starts_with("set ") {
        setdest(lines())
    } else if first.contains(',') {
        csv(lines())
    } else {
        let is_3d = |line: &str| line.trim() == "#3D";
        bonnmotion(lines(), if text.lines().any(is_3d) { 4 } else { 3 })
    }
}

fn number(line: usize, text: &str, most: f64) -> Result<f64, TraceError> {
    let number = text.trim().parse::<f64>().ok();
    let fits = |number: &f64| number.abs() <= most;
    number
        .filter(fits)
        .ok_or_else(|| wrong(line, format!("`{text}` is no number of a trace")))
}

fn time_ns(line: usize, text: &str) -> Result<u64, TraceError> {
    let seconds = number(line, text, LONGEST_S)?;
    match seconds >= 0.0 {
        true => Ok((seconds * 1e9).round() as u64),
        false => Err(wrong(
            line,
            format!("the time {text} is before the beginning"),
        )),
    }
}

/// A node of ns-2 while it is read.
#[derive(Default)]
struct Mover {
    start: Position,
    /// Times in ns.
    orders: Vec<(u64, Order)>,
}

enum Order {
    /// To there with this speed, m/s.
    Go(Position, f64),
    /// It is there from now on, on one axis.
    Jump(usize, f64),
}

fn setdest<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Vec<Named>, TraceError> {
    let mut movers: BTreeMap<usize, Mover> = BTreeMap::new();
    for (n, line) in lines {
        let Some(begin) = line.find("$node_(") else {
            // Distances for the simulator ($god_), and its settings.
            continue;
        };
        let (index, rest) = line[begin + 7..]
            .split_once(')')
            .ok_or_else(|| wrong(n, "no node"))?;
        let index = index.parse().ok().filter(|index| *index < MOST_NODES);
        let index = index.ok_or_else(|| wrong(n, "the number of a node is not 0 to 65535"))?;
        let mover = movers.entry(index).or_default();
        let mut words = line[..begin].split_whitespace();
        let at = words.find(|word| *word == "at").and_then(|_| words.next());
        let at_ns = at.map(|at| time_ns(n, at)).transpose()?;
        let rest = rest.trim_end_matches('"');
        let fields: Vec<&str> = rest.split_whitespace().collect();
        match fields[..] {
            ["set", "Z_", _] => {}
            ["set", axis @ ("X_" | "Y_"), there] => {
                let (axis, there) = (usize::from(axis == "Y_"), number(n, there, FARTHEST_M)?);
                match at_ns.filter(|at_ns| *at_ns > 0) {
                    Some(at_ns) => mover.orders.push((at_ns, Order::Jump(axis, there))),
                    None => mover.start[axis] = there,
                }
            }
            ["setdest", x, y, speed] => {
                let at_ns = at_ns.ok_or_else(|| wrong(n, "setdest without a time"))?;
                let target = [number(n, x, FARTHEST_M)?, number(n, y, FARTHEST_M)?];
                let order = Order::Go(target, number(n, speed, FARTHEST_M)?);
                mover.orders.push((at_ns, order));
            }
            _ => return Err(wrong(n, format!("`{line}` is no command of setdest"))),
        }
    }
    let named = |(index, mover): (usize, Mover)| (index.to_string(), mover.track());
    Ok(movers.into_iter().map(named).collect())
}

impl Mover {
    /// Returns the track. An order replaces the one before, wherever the node is; speed 0 stops it.
    fn track(mut self) -> Track {
        self.orders.sort_by_key(|(at_ns, _)| *at_ns);
        let mut track = Track::still(self.start);
        let mut until = self.orders.iter().map(|(at_ns, _)| *at_ns).skip(1);
        for (at_ns, order) in &self.orders {
            let next_ns = until.next().unwrap_or(u64::MAX);
            let mut from = track.at(*at_ns);
            track.push(*at_ns, from);
            let (target, speed) = match order {
                Order::Go(target, speed) if *speed > 0.0 => (target, speed),
                Order::Go(..) => continue,
                Order::Jump(axis, there) => {
                    from[*axis] = *there;
                    track.push(*at_ns, from);
                    continue;
                }
            };
            let seconds = libm::hypot(target[0] - from[0], target[1] - from[1]) / speed;
            let arrival_ns = at_ns.saturating_add((seconds * 1e9) as u64);
            match arrival_ns <= next_ns {
                true => track.push(arrival_ns, *target),
                false => {
                    let share = (next_ns - at_ns) as f64 / (arrival_ns - at_ns) as f64;
                    let there = [0, 1].map(|axis| from[axis] + share * (target[axis] - from[axis]));
                    track.push(next_ns, there);
                }
            }
        }
        track
    }
}

/// Reads a trace of BonnMotion. `each`: fields of a waypoint, 4 with a height, which is left out.
fn bonnmotion<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    each: usize,
) -> Result<Vec<Named>, TraceError> {
    let mut tracks = Vec::new();
    for (n, line) in lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if !fields.len().is_multiple_of(each) {
            let problem = match each {
                3 => "a line is time, x and y of each waypoint (with z: after a line #3D)",
                _ => "after a line #3D, a line is time, x, y and z of each waypoint",
            };
            return Err(wrong(n, problem));
        }
        let mut track = Track::default();
        for waypoint in fields.chunks(each) {
            let there = |field: &&str| number(n, field, FARTHEST_M);
            let there: Vec<f64> = waypoint[1..].iter().map(there).collect::<Result<_, _>>()?;
            let at_ns = time_ns(n, waypoint[0])?;
            ascending(n, &track, at_ns)?;
            track.push(at_ns, [there[0], there[1]]);
        }
        tracks.push((tracks.len().to_string(), track));
    }
    Ok(tracks)
}

fn csv<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Vec<Named>, TraceError> {
    let mut tracks: Vec<Named> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (number_of_line, (n, line)) in lines.enumerate() {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [time, node, x, y] = fields[..] else {
            return Err(wrong(n, "a row is time, node, x, y"));
        };
        if number_of_line == 0 && time.parse::<f64>().is_err() {
            match [time, node, x, y] {
                ["time", "node", "x", "y"] => continue,
                _ => return Err(wrong(n, "the columns are time, node, x, y")),
            }
        }
        let position = [number(n, x, FARTHEST_M)?, number(n, y, FARTHEST_M)?];
        let at_ns = time_ns(n, time)?;
        let index = *known.entry(node).or_insert_with(|| {
            tracks.push((node.to_owned(), Track::default()));
            tracks.len() - 1
        });
        if tracks.len() > MOST_NODES {
            return Err(wrong(n, "the trace has more than 65536 nodes"));
        }
        let track = &mut tracks[index].1;
        ascending(n, track, at_ns)?;
        track.push(at_ns, position);
    }
    Ok(tracks)
}

fn ascending(line: usize, track: &Track, at_ns: u64) -> Result<(), TraceError> {
    match at_ns >= track.end_ns() {
        true => Ok(()),
        false => Err(wrong(line, "the times of a node do not ascend")),
    }
}
