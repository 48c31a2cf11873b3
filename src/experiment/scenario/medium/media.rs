// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media of a plan: what the air of one is made of.

use std::sync::Arc;

use ipnet::Ipv4Net;

use super::kinds::CAPTURE_DB;
use super::propagation::Propagation;
use super::queue::QueueDiscipline;
use super::rate::RateChoice;
use super::{MediumTable, SegmentTable, word};
use crate::medium::air::{self, RateControl};
use crate::medium::motion::Track;
use crate::medium::phy::{
    Geometry, Loss, Matrix, Position, Radio, Spread, Timing, Watts, attowatts, ratio,
};

/// A medium of a plan, or a segment.
#[derive(Debug, Clone)]
pub struct Medium {
    /// The interface of its stations.
    pub interface: String,
    /// Position among the media of the whole experiment, from which its seed and its MAC addresses are
    /// derived.
    pub number: usize,
    /// The nodes on it.
    pub stations: Vec<Station>,
    /// Whether stations have a link-local IPv6 address.
    pub ipv6: bool,
    /// File for the arrivals.
    pub record: Option<String>,
    pub(crate) table: MediumTable,
    pub(crate) segment: Option<SegmentTable>,
}

/// A node on a medium.
#[derive(Debug, Clone)]
pub struct Station {
    /// Name of the node.
    pub node: String,
    /// Address of its interface.
    pub address: Ipv4Net,
    /// Where it is over time.
    pub track: Track,
    /// Whether it receives frames for others.
    pub promiscuous: bool,
}

impl Medium {
    /// Returns the plan of the air.
    pub fn air(&self, seed: u64) -> air::Plan {
        let radio = &self.table.radio;
        // Signals of the disk model have no level that noise can be compared with, and none is stronger
        // than another one.
        let (noise_dbm, capture_db) = match self.table.propagation {
            Propagation::Disk(_) => (None, CAPTURE_DB),
            Propagation::Radio(..) | Propagation::Grid { .. } => {
                (radio.noise_dbm, radio.capture_db)
            }
        };
        let timing = self.timing();
        let kbit = timing.kbit(self.mode(&timing));
        air::Plan {
            timing,
            access: self.table.access.into(),
            rts_bytes: self.table.rts,
            attempts: self.table.attempts,
            aggregate: self.table.packets_per_frame(),
            queue_packets: self.table.queue.limit as usize,
            discipline: self.table.queue.discipline(kbit),
            rate: self.rate_control(),
            capture: ratio(capture_db),
            noise: noise_dbm.map_or(0, attowatts),
            seed,
        }
    }

    fn timing(&self) -> Timing {
        if let Some(kbit) = self.segment.as_ref().and_then(SegmentTable::kbit) {
            return Timing::wire(kbit);
        }
        let radio = &self.table.radio;
        let timing = Timing::new(&radio.standard, radio.basic.as_deref());
        match self.table.queue.kind {
            QueueDiscipline::Edca => timing.with_qos(),
            _ => timing,
        }
    }

    fn rate_control(&self) -> RateControl {
        self.table
            .rate
            .map_or(RateControl::Fixed, RateChoice::control)
    }

    /// Returns each station's mode of unicast data.
    pub fn modes(&self) -> Vec<usize> {
        vec![self.mode(&self.timing()); self.stations.len()]
    }

    /// Returns the mode of unicast data; with rate control the lowest, in which a station reaches all
    /// that it can reach.
    fn mode(&self, timing: &Timing) -> usize {
        let kbit = self.table.rate.and_then(RateChoice::bits);
        let kbit = kbit.and_then(|rate| u32::try_from(rate / 1000).ok());
        let mode = match self.rate_control() {
            RateControl::Fixed => kbit.and_then(|kbit| timing.mode(kbit)),
            RateControl::Arf | RateControl::Ideal | RateControl::Minstrel => Some(timing.slowest()),
        };
        mode.unwrap_or_else(|| timing.fastest())
    }

    /// Returns the signals between stations at the start.
    pub fn matrix(&self) -> Matrix {
        let at = |station: &Station| station.track.at(0);
        let positions: Vec<Position> = self.stations.iter().map(at).collect();
        self.geometry().matrix(&positions)
    }

    /// Returns the geometry that computes the signals from positions.
    pub fn geometry(&self) -> Geometry {
        if let Some(segment) = &self.segment {
            let nodes: Vec<_> = self.stations.iter().map(|s| s.node.as_str()).collect();
            let spread = Spread::Wire(segment.wire(&nodes));
            return Geometry { spread, ber: 0.0 };
        }
        let ber = self.table.ber;
        let (loss, shadowing_db) = match &self.table.propagation {
            Propagation::Disk(disk) => {
                let spread = Spread::Disk(*disk);
                return Geometry { spread, ber };
            }
            Propagation::Radio(path, shadowing_db) => (Loss::Path(*path), *shadowing_db),
            Propagation::Grid { grid, .. } => (Loss::Grid(Arc::clone(grid)), 0.0),
        };
        let choice = &self.table.radio;
        let mut radio = Radio::new(&choice.standard, loss);
        radio.shadowing_db = shadowing_db;
        radio.noise_dbm = choice.noise_dbm;
        radio.capture_db = choice.capture_db;
        radio.power_dbm = choice.power_dbm.unwrap_or(radio.power_dbm);
        // What is received is sensed. The default may be above it.
        let sense_dbm = choice.sense_dbm.unwrap_or(radio.sense_dbm);
        radio.sense_dbm = sense_dbm.min(choice.weakest_dbm());
        if let Some(dbm) = choice.sensitivity_dbm {
            radio.sensitivity_dbm.fill(dbm);
        }
        let spread = Spread::Radio(radio);
        Geometry { spread, ber }
    }

    /// Returns what each radio draws; none: energy is not counted.
    pub fn watts(&self) -> Option<Watts> {
        self.table.radio.watts
    }

    /// Returns whether it is a wired segment, for which positions have no meaning.
    pub fn is_wired(&self) -> bool {
        self.segment.is_some()
    }

    /// Returns what messages call it, "medium" or "segment".
    pub fn word(&self) -> &'static str {
        word(self.segment.as_ref())
    }

    /// Describes it in a line.
    pub fn line(&self) -> String {
        let keys = match &self.segment {
            Some(segment) => segment.keys_text(),
            None => self.table.keys_text(),
        };
        let keys = if keys.is_empty() {
            vec!["defaults".to_owned()]
        } else {
            keys
        };
        format!(
            "{}: {} stations, {}",
            self.interface,
            self.stations.len(),
            keys.join(", ")
        )
    }
}
