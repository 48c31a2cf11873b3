// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stations of media in the log: what they are at the start, and what they did between two samples.

use emud_monitor::log::{RunMedium, RunStation, StationCounted, StationSample};

use crate::datapath::radio::Status;
use crate::experiment::scenario::{Medium, Station};
use crate::medium::air::Count;
use crate::medium::phy::Position;

use super::media::OnAir;

/// Describes a medium at the start.
pub fn describe(medium: &Medium) -> RunMedium {
    let (geometry, modes) = (medium.geometry(), medium.modes());
    let positions: Vec<Position> = medium.stations.iter().map(|s| s.track.at(0)).collect();
    let stations = medium.stations.iter().zip(neighbours(medium, &positions));
    let station = |(station, neighbours): (&Station, Vec<usize>)| RunStation {
        node: station.node.clone(),
        at_m: station.track.at(0),
        moves: station.track.moves(),
        neighbours: names(medium, &neighbours),
    };
    RunMedium {
        name: medium.interface.clone(),
        range_m: modes.first().and_then(|mode| geometry.range_m(*mode)),
        sense_m: geometry.sense_m(),
        stations: stations.map(station).collect(),
    }
}

fn neighbours(medium: &Medium, positions: &[Position]) -> Vec<Vec<usize>> {
    let matrix = medium.geometry().matrix(positions);
    matrix.neighbours(&medium.modes())
}

fn names(medium: &Medium, stations: &[usize]) -> Vec<String> {
    let name = |station: &usize| medium.stations[*station].node.clone();
    stations.iter().map(name).collect()
}

/// The stations of a medium from sample to sample.
pub struct Stations {
    moves: bool,
    /// Neighbours at the last sample.
    neighbours: Vec<Vec<usize>>,
}

impl Stations {
    pub fn new(medium: &OnAir) -> Self {
        let stations = &medium.plan.stations;
        let positions: Vec<Position> = stations.iter().map(|s| s.track.at(0)).collect();
        Self {
            moves: stations.iter().any(|station| station.track.moves()),
            neighbours: neighbours(&medium.plan, &positions),
        }
    }

    /// Returns a line for each station about the time since `before`.
    pub fn samples(&mut self, medium: &OnAir, before: &Status, now: &Status) -> Vec<StationSample> {
        let interval_ns = now.counted_ns.saturating_sub(before.counted_ns);
        if interval_ns == 0 || before.stations.is_empty() {
            return vec![];
        }
        let positions = medium.positions(now.counted_ns);
        let neighbours = match self.moves {
            true => neighbours(&medium.plan, &positions),
            false => self.neighbours.clone(),
        };
        let watts = medium.plan.watts();
        let counts = before.stations.iter().zip(now.stations.iter());
        let mono_ns = now.counted_ns;
        let sample = |(station, (before, now)): (usize, (&Count, &Count))| {
            let counted = counted(now).since(&counted(before));
            let (known, found) = (&self.neighbours[station], &neighbours[station]);
            let energy =
                watts.map(|watts| watts.joules(counted.air_ns, counted.busy_ns, interval_ns));
            StationSample {
                mono_ns,
                medium: medium.name.clone(),
                node: medium.plan.stations[station].node.clone(),
                interval_ns,
                counted,
                backlog_packets: now.waiting,
                energy_j: energy,
                at_m: positions[station],
                neighbours: (known != found).then(|| names(&medium.plan, found)),
            }
        };
        let samples = counts.enumerate().map(sample).collect();
        self.neighbours = neighbours;
        samples
    }
}

fn counted(count: &Count) -> StationCounted {
    StationCounted {
        attempts: count.attempts,
        data_frames: count.data_frames,
        data_kbit_s: count.data_kbit_s,
        sent_packets: count.sent,
        sent_bytes: count.sent_bytes,
        failed: count.failed,
        retried: count.retried,
        collided: count.collided,
        damaged: count.damaged,
        internal_collisions: count.internal,
        given_up: count.given_up,
        dropped_full: count.full,
        dropped_aqm: count.managed,
        received_packets: count.received,
        received_bytes: count.received_bytes,
        duplicates: count.duplicates,
        air_ns: count.air_ns,
        busy_ns: count.busy_ns,
    }
}
