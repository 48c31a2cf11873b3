// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports mobility traces as a scenario whose nodes move: paths in the file, or, of long traces, a
//! CSV file beside it.

use super::Imported;
use super::writer::{Writer, quoted, string};
use crate::medium::motion::{Named, TraceError, Track, gpx_tracks, is_gpx, project, read};
use crate::text::{At, Mistake, Source, Time, clipped};

/// Waypoints in a scenario; more go into a file beside it.
const MOST_WAYPOINTS: usize = 1000;
/// Nodes of a scenario.
const MOST_NODES: usize = 256;
/// Longest name of a node in bytes, with room for a number after it.
const NAME_BYTES: usize = 28;
const MEDIUM: &str = "wlan0";
const HELP: &str = "a trace is one of ns-2 (setdest), BonnMotion, CSV (time, node, x, y), or GPX";

/// Returns the scenario for traces; only GPX has more than one. `beside`: the name of the file for
/// waypoints that do not fit.
pub(crate) fn scenario(files: &[Source], beside: Option<&str>) -> Result<Imported, Mistake> {
    let mut nodes = tracks(files)?;
    rename(&mut nodes);
    let whole = |title: String, help: &str| Mistake::new(&At::START, title, help);
    if nodes.len() > MOST_NODES {
        let title = format!("the trace has {} nodes", nodes.len());
        return Err(whole(title, "a scenario has up to 256"));
    }
    let end_ns = nodes.iter().map(|(_, track)| track.end_ns()).max();
    for (_, track) in &mut nodes {
        *track = shortest(track);
    }
    let waypoints: usize = nodes.iter().map(|(_, track)| track.waypoints().len()).sum();
    let mut out = Writer::default();
    let origins: Vec<_> = files.iter().map(|file| clipped(&file.origin)).collect();
    let seconds = end_ns.unwrap_or(0).div_ceil(1_000_000_000).max(1);
    out.note(&format!(
        "Motion of {}: {} nodes, {waypoints} waypoints, {seconds} s, {}.",
        origins.join(", "),
        nodes.len(),
        area(&nodes)
    ));
    let fits = waypoints <= MOST_WAYPOINTS;
    let beside = match (fits, beside) {
        (true, _) => None,
        (false, Some(name)) => Some(name),
        (false, None) => {
            let title = format!("{waypoints} waypoints do not fit into the scenario");
            let help = "write a file with -o: the waypoints go into a CSV file beside it";
            return Err(whole(title, help));
        }
    };
    out.header(&format!("medium.{MEDIUM}"));
    if let Some(name) = beside {
        out.key("mobility", format!("{{ trace = {} }}", string(name)));
    }
    for (n, (name, track)) in nodes.iter().enumerate() {
        out.header(&format!("node.{name}"));
        if beside.is_none() {
            place(&mut out, track);
        }
        if n == 0 {
            out.note("Keeps the run going for as long as the trace: replace it.");
            out.key("command", quoted(format!("sleep {seconds}")));
        }
    }
    if nodes.len() == 1 {
        out.warning("a second station: add a node, such as [node.base] with at = [0, 0]".into());
    }
    Ok(Imported {
        beside: beside.map(|_| csv(&nodes)),
        ..out.finish()
    })
}

/// Reads all files; mistakes have their line.
fn tracks(files: &[Source]) -> Result<Vec<Named>, Mistake> {
    let wrong = |source: usize, error: TraceError| {
        let text = &files[source].text;
        let at = line(source, text, error.line);
        Mistake::new(&at, error.problem, HELP)
    };
    if let [file] = files {
        return read(&file.text).map_err(|error| wrong(0, error));
    }
    let mut all = Vec::new();
    for (n, file) in files.iter().enumerate() {
        if !is_gpx(&file.text) {
            let title = "only GPX has a file for each node";
            return Err(Mistake::new(&line(n, &file.text, 1), title, HELP));
        }
        all.extend(gpx_tracks(&file.text).map_err(|error| wrong(n, error))?);
    }
    project(&all).map_err(|error| wrong(0, error))
}

/// Returns the position of a line, from 1.
fn line(source: usize, text: &str, number: usize) -> At {
    let mut start = 0;
    for (n, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = start + line.trim_end().len();
        if n == number {
            return At {
                source,
                span: start..end,
            };
        }
        start += line.len();
    }
    At { source, span: 0..0 }
}

/// Nodes get names of hosts that differ, also without case: "0" is `n0`, because programs take 0 for an
/// address.
fn rename(nodes: &mut [Named]) {
    let mut taken = std::collections::BTreeSet::new();
    for (name, _) in nodes {
        let fits = |c: char| c.is_ascii_alphanumeric();
        let fitting = name.chars().map(|c| if fits(c) { c } else { '-' });
        let short: String = fitting.take(NAME_BYTES).collect();
        let short = short.trim_matches('-');
        let begins = short.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_local = short.eq_ignore_ascii_case("localhost");
        let base = match (is_local, begins) {
            (true, _) => format!("n-{short}"),
            (_, true) => short.to_owned(),
            _ => format!("n{short}"),
        };
        let mut numbered = (2..).map(|n| format!("{base}-{n}"));
        let mut own = base.clone();
        while !taken.insert(own.to_ascii_lowercase()) {
            own = numbered.next().unwrap_or_default();
        }
        *name = own;
    }
}

/// Positions to the millimetre, without waypoints on the way.
fn shortest(track: &Track) -> Track {
    let mut short: Vec<(u64, [f64; 2])> = Vec::new();
    for (at_ns, position) in track.waypoints() {
        // Adding 0 makes -0 of 0.
        let position = position.map(|m| (m * 1e3).round() / 1e3 + 0.0);
        if let [.., (_, before), (last_ns, last)] = &short[..]
            && before == last
            && *last == position
            && last_ns <= at_ns
        {
            short.pop();
        }
        if short.last() != Some(&(*at_ns, position)) {
            short.push((*at_ns, position));
        }
    }
    // Standing still to the end needs no waypoint.
    if let [.., (_, before), (_, last)] = &short[..]
        && before == last
    {
        short.pop();
    }
    let mut track = Track::default();
    short
        .into_iter()
        .for_each(|(at_ns, m)| track.push(at_ns, m));
    track
}

fn place(out: &mut Writer, track: &Track) {
    let text = |[x, y]: [f64; 2]| format!("at = [{x}, {y}]");
    let first = track.at(0);
    if !track.moves() {
        out.key("at", format!("[{}, {}]", first[0], first[1]));
        return;
    }
    let mut waypoints = vec![format!("{{ {} }}", text(first))];
    let mut before_ns = 0;
    for (at_ns, position) in track.waypoints() {
        let after = at_ns - std::mem::replace(&mut before_ns, *at_ns);
        if (after, *position) != (0, first) || waypoints.len() > 1 {
            let after = Time(after);
            waypoints.push(format!("{{ {}, after = \"{after}\" }}", text(*position)));
        }
    }
    out.key("path", format!("[{}]", waypoints.join(", ")));
}

fn csv(nodes: &[Named]) -> String {
    let mut text = String::from("time,node,x,y\n");
    for (name, track) in nodes {
        for (at_ns, [x, y]) in track.waypoints() {
            let (whole, part) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            let time = format!("{whole}.{part:09}");
            let time = time.trim_end_matches('0').trim_end_matches('.');
            text += &format!("{time},{name},{x},{y}\n");
        }
    }
    text
}

/// Returns the area, such as "1500 m x 300 m".
fn area(nodes: &[Named]) -> String {
    let positions = || nodes.iter().flat_map(|(_, track)| track.waypoints());
    let side = |axis: usize| {
        let along = || positions().map(|(_, position)| position[axis]);
        let least = along().fold(f64::INFINITY, f64::min);
        let most = along().fold(f64::NEG_INFINITY, f64::max);
        (most - least).max(0.0).round()
    };
    format!("{} m x {} m", side(0), side(1))
}
