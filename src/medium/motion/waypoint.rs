// SPDX-License-Identifier: MIT OR Apache-2.0
//! The random waypoint model (Broch et al., MobiCom 1998): each station goes straight to a random
//! position at a random speed, pauses, and goes on.

use super::Track;
use crate::abi::{mix, uniform};
use crate::medium::phy::Position;

/// A random waypoint model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomWaypoint {
    /// Positions are in 0..=width and 0..=height, m.
    pub area_m: [f64; 2],
    /// m/s, both above 0: with a lowest speed of 0 the mean speed would fall for ever (Yoon, Liu
    /// and Noble, INFOCOM 2003).
    pub speed_m_s: [f64; 2],
    /// Pause at each waypoint, ns.
    pub pause_ns: u64,
}

impl RandomWaypoint {
    /// Returns the track of a station up to a time at least. It begins with a pause.
    pub fn track(&self, seed: u64, station: u64, until_ns: u64) -> Track {
        let mut drawn = 0;
        let stream = mix(mix(seed) ^ station);
        let mut unit = || {
            drawn += 1;
            uniform(mix(stream.wrapping_add(mix(drawn))))
        };
        let mut position = || -> Position {
            let [width, height] = self.area_m;
            [unit() * width, unit() * height]
        };
        let mut track = Track::still(position());
        let mut now_ns = 0;
        let mut legs = 0;
        while now_ns < until_ns {
            let from = track.at(now_ns);
            now_ns += self.pause_ns;
            track.push(now_ns, from);
            let to = position();
            let [least, most] = self.speed_m_s;
            legs += 1;
            let share = uniform(mix(stream ^ mix(legs << 32)));
            let speed = least + share * (most - least);
            let seconds = libm::hypot(to[0] - from[0], to[1] - from[1]) / speed;
            now_ns += ((seconds * 1e9) as u64).max(1);
            track.push(now_ns, to);
        }
        track
    }
}
