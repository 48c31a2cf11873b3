// SPDX-License-Identifier: MIT OR Apache-2.0
//! A direction of a link as the maps hold it.

use crate::abi;

/// A direction as the maps hold it.
pub struct Compiled {
    /// Figures of the link.
    pub link: abi::emud_link,
    /// The table of its delays.
    pub table: Box<abi::emud_table>,
    /// Bits of a recorded loss pattern.
    pub pattern: Option<Box<abi::emud_pattern>>,
    /// Rows of a trace, or of phases.
    pub timeline: Option<Rows>,
    /// Rows of a background.
    pub stretches: Option<Vec<abi::emud_stretch>>,
}

/// Rows, and what else is to be known of them.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The row after the last included; empty: the kernel has them.
    pub rows: Vec<abi::emud_row>,
    /// Longest wait of a packet for its transmission.
    pub longest_wait_ns: u64,
    /// The longest delay of a row; 0: none has one.
    pub longest_delay_ns: u64,
    /// The fastest rate, bit/s.
    pub max_rate: u64,
}

/// The row of the table at the normal value 4.75, above which is 1.0e-6 of the distribution.
const MILLIONTH: usize =
    (abi::EMUD_TABLE_STEPS as usize / 2) + 19 * (abi::EMUD_TABLE_STEPS as usize / 64);

impl Compiled {
    /// Returns the longest delay of a packet, without what it waits before.
    pub fn longest_delay_ns(&self) -> u64 {
        self.delay_at(self.table.delay_ns.len() - 1)
    }

    /// Returns the delay that one packet of a million exceeds: a Pareto distribution has longer ones by
    /// orders of magnitude, for which memory would be wasted.
    pub fn millionth_delay_ns(&self) -> u64 {
        self.delay_at(MILLIONTH)
    }

    /// Returns the delay of a row of the table in ns.
    fn delay_at(&self, row: usize) -> u64 {
        let jitter = self.link.flags & abi::EMUD_F_JITTER != 0;
        let table_end = self.table.delay_ns[row];
        let by_row = self
            .timeline
            .as_ref()
            .map_or(0, |rows| rows.longest_delay_ns);
        let own = if jitter {
            table_end
        } else {
            self.link.delay_ns
        };
        // A row moves the whole table.
        own.saturating_add(by_row)
    }
}
