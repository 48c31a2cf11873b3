// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mobility` of a medium: a trace, or random waypoints.

use super::file;
use super::kinds::number;
use crate::medium::motion::{RandomWaypoint, Track, read};
use crate::text::{Entry, Located, Mistake, Reader, Value, duration};

/// How the stations of a medium move.
#[derive(Debug)]
pub(crate) enum Mobility {
    /// Names or numbers of a trace's nodes, with their tracks.
    Trace(Vec<(String, Track)>),
    Random {
        model: RandomWaypoint,
        seed: u64,
    },
}

/// Random waypoints are computed for this time; then the stations stand still.
const HORIZON_NS: u64 = 3_600_000_000_000;
/// Shorter legs would be many, and faster than positions change (100 ms).
const LEAST_CROSSING_S: f64 = 1.0;
const HELP: &str = "write mobility = { trace = \"FILE\" }, or { model = \"random-waypoint\", area = [1500, 300], \
                    speed = [1, 20], pause = \"30s\" }";

impl Mobility {
    /// Reads the table; a trace is relative to the folder of the scenario.
    pub fn read(reader: &mut Reader, value: &Located<Value>) -> Option<Self> {
        let folder = reader.folder.clone();
        let result = match &value.value {
            Value::Table(entries) => match entries.iter().find(|e| e.key.value == "trace") {
                Some(trace) => {
                    for other in entries.iter().filter(|e| e.key.value != "trace") {
                        let name = &other.key.value;
                        let title = format!("`mobility` with a `trace` has no `{name}`");
                        let help = "leave it out: the file has the whole motion";
                        reader.mistake(&other.key.at, title, help);
                    }
                    Self::trace(trace, &folder)
                }
                None => Self::random(value, entries),
            },
            _ => Err(Mistake::new(&value.at, "this is no mobility", HELP)),
        };
        result.map_err(|mistake| reader.mistakes.push(mistake)).ok()
    }

    fn trace(entry: &Entry, folder: &std::path::Path) -> Result<Self, Mistake> {
        let value = &entry.value;
        let Value::Text(name) = &value.value else {
            return Err(Mistake::new(
                &value.at,
                "`trace` is the name of a file",
                HELP,
            ));
        };
        let tracks = file::load(folder, name, read).map_err(|problem| {
            let help =
                "a trace is one of ns-2 (setdest), BonnMotion, GPX, or CSV: time, node, x, y";
            Mistake::new(&value.at, problem, help)
        })?;
        let mut names: Vec<&str> = tracks.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let title = format!("{} has two tracks `{}`", name, twice[0]);
            let help = "give each a name: `emud import mobility` does";
            return Err(Mistake::new(&value.at, title, help));
        }
        Ok(Self::Trace(tracks))
    }

    fn random(whole: &Located<Value>, entries: &[Entry]) -> Result<Self, Mistake> {
        let wrong = |title: &str| Mistake::new(&whole.at, title, HELP);
        let (mut area_m, mut speed_m_s) = (None, [1.0, 20.0]);
        let (mut pause_ns, mut seed, mut named) = (0, 1, false);
        for entry in entries {
            let value = &entry.value;
            match entry.key.value.as_str() {
                "model" => {
                    named = matches!(&value.value, Value::Text(text) if text == "random-waypoint");
                }
                "area" => area_m = Some(pair(value, "area", 1.0..=1e6)?),
                "speed" => speed_m_s = pair(value, "speed", 0.01..=1e4)?,
                "pause" => pause_ns = duration(value, "pause")?,
                "seed" => seed = number(value, "seed", "", 0.0..=4e9)? as u64,
                _ => {
                    let title = format!("`mobility` has no `{}`", entry.key.value);
                    return Err(Mistake::new(&entry.key.at, title, HELP));
                }
            }
        }
        if !named {
            return Err(wrong("the only model of mobility is \"random-waypoint\""));
        }
        if speed_m_s[0] > speed_m_s[1] {
            return Err(wrong("the lowest speed is above the highest one"));
        }
        let area_m = area_m.ok_or_else(|| wrong("random waypoints without an `area`"))?;
        let crossing_s = area_m[0].max(area_m[1]) / speed_m_s[1];
        if crossing_s + pause_ns as f64 / 1e9 < LEAST_CROSSING_S {
            return Err(wrong("stations would cross the area in less than a second"));
        }
        let model = RandomWaypoint {
            area_m,
            speed_m_s,
            pause_ns,
        };
        Ok(Self::Random { model, seed })
    }

    /// Returns the track of the `n`-th station: that of its name, otherwise that which is named by its number.
    pub fn track(&self, n: usize, name: &str) -> Option<Track> {
        match self {
            Self::Random { model, seed } => Some(model.track(*seed, n as u64, HORIZON_NS)),
            Self::Trace(tracks) => {
                let named = |wanted: &str| tracks.iter().find(|(of, _)| of == wanted);
                let found = named(name).or_else(|| named(&n.to_string()));
                found.map(|(_, track)| track.clone())
            }
        }
    }
}

/// Reads two numbers in brackets, or one for both.
fn pair(
    value: &Located<Value>,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
) -> Result<[f64; 2], Mistake> {
    match &value.value {
        Value::List(items) => match &items[..] {
            [first, second] => Ok([
                number(first, key, "", range.clone())?,
                number(second, key, "", range)?,
            ]),
            _ => Err(Mistake::new(
                &value.at,
                format!("`{key}` has two numbers"),
                HELP,
            )),
        },
        _ => number(value, key, "", range).map(|both| [both; 2]),
    }
}
