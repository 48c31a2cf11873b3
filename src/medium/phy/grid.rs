// SPDX-License-Identifier: MIT OR Apache-2.0
//! Path loss between the cells of an area, computed before: by ray tracing, or measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Position;

/// Hundredths of a dB, for a cell that the sender does not reach.
pub(super) const UNREACHED: u16 = u16::MAX;

/// The loss from senders in some cells of a grid to all its cells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Grid {
    /// Edge of a cell.
    pub(super) cell_m: f64,
    /// Lower left corner.
    pub(super) corner: Position,
    pub(super) columns: u32,
    pub(super) rows: u32,
    /// By the sender's cell: hundredths of a dB at each cell. Cells count from the lower left, row by
    /// row.
    pub(super) losses: BTreeMap<u32, Vec<u16>>,
}

impl Grid {
    /// Returns the lower left and the upper right corner.
    pub fn corners(&self) -> [Position; 2] {
        let [x, y] = self.corner;
        let size = [self.columns, self.rows].map(|n| f64::from(n) * self.cell_m);
        [self.corner, [x + size[0], y + size[1]]]
    }

    /// Returns the cell of a position; none: it is outside.
    pub fn cell(&self, at: Position) -> Option<u32> {
        let along = |axis: usize, cells: u32| {
            let n = (at[axis] - self.corner[axis]) / self.cell_m;
            // The upper edge belongs to the last cell.
            let inside = (0.0..=f64::from(cells)).contains(&n);
            inside.then(|| (n as u32).min(cells - 1))
        };
        Some(along(1, self.rows)? * self.columns + along(0, self.columns)?)
    }

    /// Returns the cells of a straight way, in any order, some of them twice; none: it leaves the grid.
    pub fn cells(&self, from: Position, to: Position) -> Option<Vec<u32>> {
        // Outside there may be more columns than memory has room for.
        let ends = [self.cell(from)?, self.cell(to)?];
        // Shares of the way at which it crosses from one column or row into the next.
        let mut shares = vec![0.0, 1.0];
        for axis in [0, 1] {
            let [a, b] = [from, to].map(|at| (at[axis] - self.corner[axis]) / self.cell_m);
            let (low, high) = (a.min(b).ceil() as u32, a.max(b).floor() as u32);
            shares.extend((low..=high).map(|edge| (f64::from(edge) - a) / (b - a)));
        }
        shares.retain(|share| (0.0..=1.0).contains(share));
        shares.sort_by(f64::total_cmp);
        let between = shares.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        let between: Vec<f64> = between.collect();
        // Rounding must not lead beyond the ends.
        let at = |share: f64| {
            [0, 1].map(|axis| {
                let (a, b) = (from[axis], to[axis]);
                (a + share * (b - a)).clamp(a.min(b), a.max(b))
            })
        };
        let inner = shares.into_iter().chain(between);
        let inner = inner.map(|share| self.cell(at(share)));
        ends.into_iter().map(Some).chain(inner).collect()
    }

    /// Returns whether the file has the losses from a sender in this cell.
    pub fn has_sender(&self, cell: u32) -> bool {
        self.losses.contains_key(&cell)
    }

    /// Returns the loss in dB between two positions: that from the first, or, as paths are
    /// reciprocal, that from the second. None: neither reaches the other.
    pub fn db(&self, from: Position, to: Position) -> Option<f64> {
        let (from, to) = (self.cell(from)?, self.cell(to)?);
        let of = |from: u32, to: u32| self.losses.get(&from)?.get(to as usize).copied();
        let loss = of(from, to).or_else(|| of(to, from));
        let loss = loss.filter(|loss| *loss != UNREACHED)?;
        Some(f64::from(loss) / 100.0)
    }

    /// Validates figures read from a file.
    pub fn is_consistent(&self) -> bool {
        let finite = [self.cell_m, self.corner[0], self.corner[1]];
        let cells = u64::from(self.columns) * u64::from(self.rows);
        self.cell_m > 0.0
            && finite.iter().all(|figure| figure.is_finite())
            && (1..=u64::from(u32::MAX)).contains(&cells)
            && (self.losses.iter())
                .all(|(cell, losses)| u64::from(*cell) < cells && losses.len() as u64 == cells)
    }
}
