// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where stations are over time: tracks of straight lines between waypoints, from a path, a trace,
//! or at random.

mod gpx;
mod read;
mod trace;
mod waypoint;

use serde::{Deserialize, Serialize};

use super::phy::Position;

pub use gpx::{GpxTrack, gpx_tracks, is_gpx, project};
pub use read::read;
pub use trace::TraceError;
pub use waypoint::RandomWaypoint;

/// The path of a station: straight from waypoint to waypoint, at constant speed; before the first
/// one and after the last one it stands still.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Track {
    /// Times in ns, ascending.
    waypoints: Vec<(u64, Position)>,
}

/// A node of a trace: its name or number, and its track.
pub type Named = (String, Track);

impl Track {
    /// Returns the track of a station that stands still.
    pub fn still(at: Position) -> Self {
        Self {
            waypoints: vec![(0, at)],
        }
    }

    /// Adds a waypoint; one that is earlier than the last one takes its time.
    pub fn push(&mut self, at_ns: u64, position: Position) {
        let last_ns = self.end_ns();
        self.waypoints.push((at_ns.max(last_ns), position));
    }

    /// Returns the waypoints with their times in ns, ascending.
    pub fn waypoints(&self) -> &[(u64, Position)] {
        &self.waypoints
    }

    /// Returns the time of the last waypoint.
    pub fn end_ns(&self) -> u64 {
        self.waypoints.last().map_or(0, |(at_ns, _)| *at_ns)
    }

    /// Returns whether it ever moves.
    pub fn moves(&self) -> bool {
        self.waypoints.windows(2).any(|pair| pair[0].1 != pair[1].1)
    }

    /// Returns the position at a time.
    pub fn at(&self, ns: u64) -> Position {
        let next = self.waypoints.partition_point(|(at_ns, _)| *at_ns <= ns);
        let before = next
            .checked_sub(1)
            .and_then(|before| self.waypoints.get(before));
        match (before, self.waypoints.get(next)) {
            (Some((from_ns, from)), Some((to_ns, to))) => {
                let share = (ns - from_ns) as f64 / (to_ns - from_ns) as f64;
                [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]))
            }
            (Some((_, position)), None) | (None, Some((_, position))) => *position,
            (None, None) => [0.0; 2],
        }
    }
}
