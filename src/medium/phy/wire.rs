// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wired segment: what a frame meets between two stations, wherever they are.

use serde::{Deserialize, Serialize};

use super::matrix::{Matrix, Reach};

/// From a station to another one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// From the last bit sent to the last bit received, ns.
    pub delay_ns: u64,
    /// The share of frames that are lost, whatever their length, 0.0..=1.0.
    pub loss: f64,
    /// The share of wrong bits, 0.0..=1.0.
    pub ber: f64,
}

/// The lines between all stations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// Line of all pairs except these.
    pub line: Line,
    /// Sender, receiver, and their line; pairs ascend.
    pub pairs: Vec<([u16; 2], Line)>,
}

/// Virtual time plus a delay has to fit into 64 bits.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl Wire {
    /// Returns the matrix of `stations`. A line that loses every frame connects no pair.
    pub fn matrix(&self, stations: usize) -> Matrix {
        Matrix::new(stations, |from, to| {
            let own = self
                .pairs
                .binary_search_by_key(&[from, to], |(pair, _)| *pair);
            let line = own.map_or(&self.line, |n| &self.pairs[n].1);
            (line.loss < 1.0 && line.ber < 1.0).then(|| Reach {
                frame_kept: 1.0 - line.loss,
                delay_ns: line.delay_ns,
                ..Reach::full(to).with_ber(line.ber)
            })
        })
    }

    /// Returns whether its figures are possible, if they are not those of a scenario.
    pub fn is_consistent(&self) -> bool {
        let lines = self.pairs.iter().map(|(_, line)| line);
        let mut lines = lines.chain([&self.line]);
        lines.all(|line| line.delay_ns <= LONGEST_NS)
    }
}
