// SPDX-License-Identifier: MIT OR Apache-2.0
//! Positions of GPX 1.0 and 1.1, the format of satellite receivers: a track is a node.
//!
//! Degrees become metres on a plane that touches WGS 84 in the middle of all points: over 10 km
//! distances are right to about a thousandth.

use roxmltree::{Document, Node};

use super::trace::{LONGEST_S, MOST_NODES, TraceError, wrong};
use super::{Named, Track};
use crate::text::date_ns;

/// A track with its points in degrees.
#[derive(Debug, Clone, PartialEq)]
pub struct GpxTrack {
    /// None: the file does not name it.
    pub name: Option<String>,
    points: Vec<GpxPoint>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct GpxPoint {
    line: usize,
    /// ns since 1970.
    time_ns: i128,
    latitude: f64,
    longitude: f64,
}

/// Returns whether a text begins like XML.
pub fn is_gpx(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
}

/// Reads the tracks of a file.
///
/// # Errors
/// The first line that is none of GPX, or a point without time or position.
pub fn gpx_tracks(text: &str) -> Result<Vec<GpxTrack>, TraceError> {
    let document = Document::parse(text.trim_start_matches('\u{feff}'));
    let document = document.map_err(|error| {
        // The end of a file is after its last line.
        let line = (error.pos().row as usize).min(text.lines().count().max(1));
        wrong(line, error.to_string())
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "gpx" {
        return Err(wrong(1, "the document is not GPX"));
    }
    let mut tracks = Vec::new();
    for track in children(root, "trk") {
        let name = children(track, "name").find_map(|name| name.text());
        let name = name.map(|name| name.trim().to_owned());
        let points = children(track, "trkseg").flat_map(|segment| children(segment, "trkpt"));
        let points: Result<Vec<_>, _> = points.map(|point| read_point(&document, point)).collect();
        let points = points?;
        let late = points
            .windows(2)
            .find(|pair| pair[1].time_ns < pair[0].time_ns);
        if let Some([_, late]) = late {
            return Err(wrong(late.line, "the times of a track do not ascend"));
        }
        if !points.is_empty() {
            tracks.push(GpxTrack {
                name: name.filter(|name| !name.is_empty()),
                points,
            });
        }
    }
    match tracks.len() {
        0 => Err(wrong(1, "the file has no track with points")),
        n if n > MOST_NODES => Err(wrong(1, "the file has more than 65536 tracks")),
        _ => Ok(tracks),
    }
}

fn children<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    let named = move |child: &Node| child.tag_name().name() == name;
    node.children().filter(named)
}

fn read_point(document: &Document, point: Node) -> Result<GpxPoint, TraceError> {
    let line = document.text_pos_at(point.range().start).row as usize;
    let degrees = |key: &str, most: f64| {
        let text = point.attribute(key);
        let degrees = text.and_then(|text| text.trim().parse::<f64>().ok());
        let degrees = degrees.filter(|degrees| degrees.abs() <= most);
        degrees.ok_or_else(|| wrong(line, format!("the point has no valid `{key}`")))
    };
    let time = children(point, "time").find_map(|time| time.text());
    let time = time.ok_or_else(|| wrong(line, "the point has no time"))?;
    let time_ns = date_ns(time.trim());
    Ok(GpxPoint {
        line,
        latitude: degrees("lat", 90.0)?,
        longitude: degrees("lon", 180.0)?,
        time_ns: time_ns.ok_or_else(|| wrong(line, format!("`{time}` is no time")))?,
    })
}

/// WGS 84: the semi-major axis in m, and the square of the eccentricity.
const AXIS_M: f64 = 6_378_137.0;
const ECCENTRICITY2: f64 = 6.694_379_990_14e-3;

/// Returns tracks in m and s: the first point of all is time 0, the south-west corner of all points
/// the origin. Tracks without a name are `track1`, `track2` ...
///
/// # Errors
/// The tracks last for longer than three years, or there are none.
pub fn project(tracks: &[GpxTrack]) -> Result<Vec<Named>, TraceError> {
    let points = || tracks.iter().flat_map(|track| &track.points);
    let Some(first) = points().min_by_key(|point| point.time_ns) else {
        return Err(wrong(1, "there is no track"));
    };
    // Across the date line.
    let east = |point: &GpxPoint| match point.longitude - first.longitude {
        d if d > 180.0 => d - 360.0,
        d if d < -180.0 => d + 360.0,
        d => d,
    };
    let least = |of: &dyn Fn(&GpxPoint) -> f64| points().map(of).fold(f64::INFINITY, f64::min);
    let latitude = |point: &GpxPoint| point.latitude;
    let [south, west] = [least(&latitude), least(&east)];
    let north = -least(&|point| -point.latitude);
    let middle = ((south + north) / 2.0).to_radians();
    let (sine, cosine) = (libm::sin(middle), libm::cos(middle));
    let flat = 1.0 - ECCENTRICITY2 * sine * sine;
    // Radii of curvature along the meridian and across it.
    let along = AXIS_M * (1.0 - ECCENTRICITY2) / (flat * libm::sqrt(flat));
    let across = AXIS_M / libm::sqrt(flat) * cosine;
    let place = |point: &GpxPoint| {
        let metres = [
            (east(point) - west).to_radians() * across,
            (point.latitude - south).to_radians() * along,
        ];
        metres.map(|m| (m * 1e3).round() / 1e3)
    };
    let mut named = Vec::new();
    for (number, track) in (1..).zip(tracks) {
        let mut own = Track::default();
        for point in &track.points {
            let after_ns = point.time_ns - first.time_ns;
            let after_ns = u64::try_from(after_ns).ok();
            let fits = after_ns.filter(|ns| (*ns as f64) < LONGEST_S * 1e9);
            let problem = "more than three years after the first point";
            own.push(
                fits.ok_or_else(|| wrong(point.line, problem))?,
                place(point),
            );
        }
        let name = track.name.clone();
        named.push((name.unwrap_or_else(|| format!("track{number}")), own));
    }
    Ok(named)
}
