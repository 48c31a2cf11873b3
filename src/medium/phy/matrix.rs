// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who hears whom: a row for each sender, with those that its signal has any effect on.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use super::Position;
use super::loss::Loss;
use super::path::LIGHT_M_PER_S;
use super::power::{attowatts, exceeds, ratio};
use super::standard::Standard;
use crate::abi::{mix, uniform};
use crate::medium::set::Set;

/// A sender's signal at a station.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Index of the station.
    pub to: u16,
    /// A bit for each mode that can be decoded.
    pub modes: u16,
    /// It keeps the medium busy.
    pub senses: bool,
    /// Attowatts; what it adds to the interference there.
    pub power: u64,
    /// ln(1 - bit error rate).
    pub ln_bit_kept: f64,
    /// The probability that a frame arrives, beside bit errors.
    pub frame_kept: f64,
    /// Propagation, for media without access control.
    pub delay_ns: u64,
}

impl Reach {
    /// Creates a signal of full strength at a station, decoded in every mode.
    pub fn full(to: u16) -> Self {
        Self {
            to,
            modes: u16::MAX,
            senses: true,
            power: DISK_POWER,
            ln_bit_kept: 0.0,
            frame_kept: 1.0,
            delay_ns: 0,
        }
    }

    /// Returns the same with a bit error rate in 0.0..1.0.
    pub fn with_ber(self, ber: f64) -> Self {
        Self {
            ln_bit_kept: libm::log1p(-ber),
            ..self
        }
    }

    /// Returns whether a frame in this mode can be decoded.
    pub fn decodes(&self, mode: usize) -> bool {
        self.modes >> mode & 1 == 1
    }

    /// Returns whether a frame can be lost although its signal is strong enough.
    pub(crate) fn has_errors(&self) -> bool {
        self.ln_bit_kept != 0.0 || self.frame_kept != 1.0
    }

    /// Returns the probability that a frame of `octets` is not lost and has no bit error: (1 - p_b)^bits.
    pub(crate) fn kept(&self, octets: u32) -> f64 {
        self.frame_kept * libm::exp(self.ln_bit_kept * 8.0 * f64::from(octets))
    }
}

/// In disk mode all signals have this power, in aW: any two of them destroy each other.
const DISK_POWER: u64 = 1_000_000;

/// Distances in metres, `range <= interference` and `range <= sense`: a frame is decoded within
/// `range`, keeps the medium busy within `sense`, and destroys others within `interference`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// A frame is decoded up to here.
    pub range_m: f64,
    /// A frame keeps the medium busy up to here.
    pub sense_m: f64,
    /// A frame destroys others up to here.
    pub interference_m: f64,
}

impl Default for Disk {
    /// Returns the radio of ns-2.
    fn default() -> Self {
        Self {
            range_m: 250.0,
            sense_m: 550.0,
            interference_m: 550.0,
        }
    }
}

/// A radio whose reach follows from powers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Radio {
    /// Power of the sender.
    pub power_dbm: f64,
    /// Frequency of the carrier.
    pub frequency_hz: f64,
    /// How a signal weakens on its way.
    pub loss: Loss,
    /// The weakest signal for each mode, dBm.
    pub sensitivity_dbm: Vec<f64>,
    /// The weakest signal that keeps the medium busy.
    pub sense_dbm: f64,
    /// Background noise, and how much stronger a signal must be that is decoded.
    #[serde(default)]
    pub noise_dbm: Option<f64>,
    /// In dB.
    #[serde(default)]
    pub capture_db: f64,
    /// Standard deviation of the loss around that of the distance, dB: of each pair of stations once,
    /// the same in both directions (log-normal shadowing).
    #[serde(default)]
    pub shadowing_db: f64,
}

impl Radio {
    /// Returns the radio of a standard.
    pub fn new(standard: &Standard, loss: impl Into<Loss>) -> Self {
        Self {
            power_dbm: standard.power_dbm,
            frequency_hz: standard.frequency_hz,
            loss: loss.into(),
            sensitivity_dbm: standard.rates.iter().map(|(_, dbm)| *dbm).collect(),
            sense_dbm: standard.sense_dbm,
            noise_dbm: None,
            capture_db: 0.0,
            shadowing_db: 0.0,
        }
    }

    /// Returns what obstacles between two stations take from the signal, dB.
    fn shadow_db(&self, from: u16, to: u16) -> f64 {
        if self.shadowing_db == 0.0 {
            return 0.0;
        }
        let pair = u64::from(from.min(to)) << 16 | u64::from(from.max(to));
        // Box and Muller 1958; the first number is not 0.
        let unit = |n: u64| uniform(mix(mix(pair) ^ n));
        let (first, second) = (1.0 - unit(1), unit(2));
        let radius = libm::sqrt(-2.0 * libm::log(first));
        self.shadowing_db * radius * libm::cos(2.0 * PI * second)
    }

    /// Returns whether its figures are possible with this many modes.
    pub(super) fn is_consistent(&self, modes: usize) -> bool {
        let grid = match &self.loss {
            Loss::Path(_) => None,
            Loss::Grid(grid) => Some(grid),
        };
        self.sensitivity_dbm.len() == modes && grid.is_none_or(|grid| grid.is_consistent())
    }

    /// Returns the weakest signal that is decoded in a mode, dBm.
    pub fn weakest_dbm(&self, mode: usize) -> f64 {
        let above_noise = self.noise_dbm.map(|dbm| dbm + self.capture_db);
        self.sensitivity_dbm[mode].max(above_noise.unwrap_or(f64::NEG_INFINITY))
    }

    /// Returns the distance in metres at which this power arrives; none: it depends on more than the
    /// distance.
    pub fn reach_m(&self, dbm: f64) -> Option<f64> {
        match &self.loss {
            Loss::Path(path) if self.shadowing_db == 0.0 => {
                Some(path.reach_m(self.power_dbm - dbm, self.frequency_hz))
            }
            Loss::Path(_) | Loss::Grid(_) => None,
        }
    }
}

/// The rows of all senders.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: Vec<Row>,
}

/// A sender's signal at all stations, once for each and once as sets, by which the start and the end of
/// a transmission are decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    reaches: Vec<Reach>,
    /// Those with a reach, those of them that sense it, and those that it interferes at.
    pub reached: Set,
    pub senses: Set,
    pub strong: Set,
    /// Those that decode it, for each mode.
    decodes: Vec<Set>,
    /// Its power wherever it interferes or can be decoded, if it is the same everywhere,
    pub level: Option<u64>,
    /// and otherwise at each station.
    pub powers: Vec<u64>,
    /// Whether any of them has errors.
    pub has_errors: bool,
}

/// Modes of a radio.
const MODES: usize = u16::BITS as usize;

impl Row {
    fn new(stations: usize, reaches: Vec<Reach>) -> Self {
        let chosen = |is: &dyn Fn(&Reach) -> bool| {
            let mut set = Set::new(stations);
            for reach in reaches.iter().filter(|reach| is(reach)) {
                set.insert(usize::from(reach.to));
            }
            set
        };
        let modes = reaches.iter().fold(0, |modes, reach| modes | reach.modes);
        let modes = MODES - modes.leading_zeros() as usize;
        let mut heard = reaches.iter().filter(|r| r.power > 0 || r.modes > 0);
        let level = heard.next().map_or(0, |reach| reach.power);
        let level = heard.all(|reach| reach.power == level).then_some(level);
        let mut powers = Vec::new();
        if level.is_none() {
            powers.resize(stations, 0);
            for reach in &reaches {
                powers[usize::from(reach.to)] = reach.power;
            }
        }
        Self {
            reached: chosen(&|_| true),
            senses: chosen(&|reach| reach.senses),
            strong: chosen(&|reach| reach.power > 0),
            decodes: (0..modes)
                .map(|mode| chosen(&|reach| reach.decodes(mode)))
                .collect(),
            level,
            powers,
            has_errors: reaches.iter().any(Reach::has_errors),
            reaches,
        }
    }

    /// Returns the stations that decode a mode.
    pub fn decodes(&self, mode: usize) -> Option<&Set> {
        self.decodes.get(mode)
    }

    /// Returns the signal at one of `reached`.
    pub fn at(&self, station: usize) -> &Reach {
        &self.reaches[self.reached.below(station)]
    }

    /// Returns the power at one of `reached`.
    #[inline]
    pub fn power(&self, station: usize) -> u64 {
        match self.level {
            Some(level) if self.strong.contains(station) => level,
            Some(_) => 0,
            None => self.powers[station],
        }
    }
}

/// Interferers more than this below the weakest signal that is decoded or sensed have no effect.
const NEGLIGIBLE_DB: f64 = 30.0;

impl Matrix {
    /// Returns the matrix of `stations`, at most 65,536; `reach(from, to)` is none without effect.
    pub fn new(stations: usize, mut reach: impl FnMut(u16, u16) -> Option<Reach>) -> Self {
        let mut row = |from| {
            let others = (0..stations as u16).filter(|to| *to != from);
            let reaches = others.filter_map(|to| reach(from, to)).collect();
            Row::new(stations, reaches)
        };
        Self {
            rows: (0..stations as u16).map(&mut row).collect(),
        }
    }

    /// Creates a matrix in which all stations hear each other.
    pub fn full(stations: usize) -> Self {
        Self::new(stations, |_, to| Some(Reach::full(to)))
    }

    /// Creates a matrix that depends on distance alone.
    pub fn disk(positions: &[Position], disk: Disk, ber: f64) -> Self {
        Self::new(positions.len(), |from, to| {
            let d = distance_m(positions[usize::from(from)], positions[usize::from(to)]);
            let interferes = d <= disk.interference_m.max(disk.range_m);
            let reach = Reach {
                modes: if d <= disk.range_m { u16::MAX } else { 0 },
                senses: d <= disk.sense_m,
                power: if interferes { DISK_POWER } else { 0 },
                delay_ns: delay_ns(d),
                ..Reach::full(to).with_ber(ber)
            };
            (interferes || reach.senses).then_some(reach)
        })
    }

    /// Creates a matrix from the powers that arrive.
    pub fn radio(positions: &[Position], radio: &Radio, ber: f64) -> Self {
        let weakest = radio.sensitivity_dbm.iter().copied();
        let weakest = weakest.fold(radio.sense_dbm, f64::min) - NEGLIGIBLE_DB;
        let noise = radio.noise_dbm.map_or(0, attowatts);
        let capture = ratio(radio.capture_db);
        Self::new(positions.len(), |from, to| {
            let ends = [from, to].map(|station| positions[usize::from(station)]);
            let d = distance_m(ends[0], ends[1]);
            let loss_db = radio.loss.db(ends, d, radio.frequency_hz)?;
            let dbm = radio.power_dbm - (loss_db + radio.shadow_db(from, to));
            let power = attowatts(dbm);
            // As stations decide it, to the last bit.
            let clears = exceeds(power, noise, capture);
            let decodes =
                |mode: usize| u16::from(clears && dbm >= radio.sensitivity_dbm[mode]) << mode;
            let reach = Reach {
                modes: (0..radio.sensitivity_dbm.len()).map(decodes).sum(),
                senses: dbm >= radio.sense_dbm,
                power,
                delay_ns: delay_ns(d),
                ..Reach::full(to).with_ber(ber)
            };
            (dbm >= weakest).then_some(reach)
        })
    }

    /// Returns the number of stations.
    pub fn stations(&self) -> usize {
        self.rows.len()
    }

    /// Returns the signals at the stations that a sender reaches, in the order of stations.
    pub fn row(&self, from: usize) -> &[Reach] {
        &self.rows[from].reaches
    }

    pub(crate) fn signal(&self, from: usize) -> &Row {
        &self.rows[from]
    }

    /// Returns for each station those that it exchanges data with: each decodes the other's mode.
    pub fn neighbours(&self, modes: &[usize]) -> Vec<Vec<usize>> {
        let hears = |from: usize, to: usize| {
            let reach = self.reach(from as u16, to as u16);
            reach.is_some_and(|reach| reach.decodes(modes[from]))
        };
        let of = |station: usize| {
            let row = self.row(station).iter();
            row.map(|reach| usize::from(reach.to))
                .filter(|other| hears(station, *other) && hears(*other, station))
                .collect()
        };
        (0..self.stations()).map(of).collect()
    }

    /// Returns the signal of `from` at `to`; `None`: it does not reach it.
    pub fn reach(&self, from: u16, to: u16) -> Option<&Reach> {
        let row = self.row(usize::from(from));
        let at = row.binary_search_by_key(&to, |reach| reach.to).ok()?;
        Some(&row[at])
    }
}

/// Returns the distance in metres.
fn distance_m(a: Position, b: Position) -> f64 {
    libm::hypot(a[0] - b[0], a[1] - b[1])
}

fn delay_ns(distance_m: f64) -> u64 {
    (distance_m / LIGHT_M_PER_S * 1e9).round() as u64
}
