// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stations with traffic, and what arrives.

use std::sync::Arc;

use emud::medium::air::{Access, Air, Count, Discipline, Frame, Outcome, Plan, RateControl, To};
use emud::medium::phy::{Matrix, Standard, Timing, ratio};

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

/// Of a standard, with other basic rates where given.
pub fn timing(standard: &str) -> Timing {
    match standard {
        "802.11b with control at 1" => {
            Timing::new(Standard::named("802.11b").unwrap(), Some(&[1_000]))
        }
        name => Timing::new(Standard::named(name).unwrap(), None),
    }
}

pub fn plan(standard: &str, seed: u64) -> Plan {
    Plan {
        timing: timing(standard),
        access: Access::Dcf,
        rts_bytes: None,
        attempts: 7,
        aggregate: 1,
        queue_packets: 50,
        discipline: Discipline::Fifo,
        rate: RateControl::Fixed,
        capture: ratio(10.0),
        noise: 0,
        seed,
    }
}

/// A medium with stations that always have a packet to send.
pub struct Cell {
    pub air: Air<u64>,
    greedy: Vec<Option<Frame<u64>>>,
    /// Packets of a saturated station: two frames.
    backlog: u32,
    pub deliveries: u64,
}

impl Cell {
    /// `kbit`: each station's rate.
    pub fn new(plan: Plan, matrix: Matrix, kbit: &[u32]) -> Self {
        let modes: Vec<usize> = kbit.iter().map(|k| plan.timing.mode(*k).unwrap()).collect();
        Self {
            greedy: vec![None; matrix.stations()],
            backlog: 2 * plan.aggregate,
            air: Air::new(plan, Arc::new(matrix), &modes),
            deliveries: 0,
        }
    }

    /// The station sends packets of this size for ever.
    pub fn saturate(&mut self, station: usize, to: To, bytes: u32) {
        let token = 0;
        self.greedy[station] = Some(Frame { to, bytes, token });
        for _ in 0..self.backlog {
            self.add(self.air.now_ns(), station);
        }
    }

    /// Another packet of a saturated station.
    pub fn add(&mut self, at_ns: u64, station: usize) {
        if let Some(frame) = self.greedy[station] {
            assert!(self.air.arrive(at_ns, station, frame));
        }
    }

    pub fn run(&mut self, until_ns: u64) {
        while let Some(outcome) = self.air.next(until_ns) {
            match outcome {
                Outcome::Finished { at_ns, station, .. } => self.add(at_ns, station),
                Outcome::Delivered { .. } => self.deliveries += 1,
            }
        }
    }

    pub fn counts(&self) -> Vec<Count> {
        let stations = 0..self.greedy.len();
        stations.map(|station| self.air.count(station)).collect()
    }

    /// What each station has sent with success, Mbit/s.
    pub fn sent_mbit(&self) -> Vec<f64> {
        let mbit = |count: Count| megabits(count.sent_bytes, self.air.now_ns());
        self.counts().into_iter().map(mbit).collect()
    }
}

/// `senders` saturated stations, 1 to n, that send 1500-byte packets to station 0.
pub fn saturated(plan: Plan, matrix: Matrix, kbit: &[u32], until_ns: u64) -> Cell {
    let mut cell = Cell::new(plan, matrix, kbit);
    for station in 1..kbit.len() {
        cell.saturate(station, To::Station(0), 1500);
    }
    cell.run(until_ns);
    cell
}

/// All hear station 0, and it hears all; the others do not hear each other.
pub fn hidden(senders: usize) -> Matrix {
    Matrix::new(senders + 1, |from, to| {
        let heard = from == 0 || to == 0;
        heard.then(|| emud::medium::phy::Reach::full(to))
    })
}

pub fn megabits(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 8e3 / ns as f64
}

/// Asserts that a figure is within a fraction of what is expected.
#[track_caller]
pub fn near(what: &str, found: f64, expected: f64, within: f64) {
    let off = found / expected - 1.0;
    println!(
        "{what}: {found:.4}, expected {expected:.4}, {:+.2} %",
        off * 100.0
    );
    assert!(
        off.abs() <= within,
        "{what}: {found:.4} instead of {expected:.4}: {:+.2} %",
        off * 100.0
    );
}
