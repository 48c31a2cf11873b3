// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timers of stations that are sending, about to answer, or waiting for an answer: few at a
//! time, in a sorted list.

/// Purpose of a timer; timers of one moment run in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    End,
    Answer,
    Timeout,
}

#[derive(Debug)]
pub(super) struct Timers {
    /// The first one is last.
    set: Vec<(u64, Rank, usize)>,
}

impl Timers {
    pub fn new(stations: usize) -> Self {
        Self {
            set: Vec::with_capacity(stations),
        }
    }

    /// Sets the timer of a station, which has none.
    pub fn set(&mut self, station: usize, at_ns: u64, rank: Rank) {
        let timer = (at_ns, rank, station);
        let at = self.set.partition_point(|other| *other > timer);
        self.set.insert(at, timer);
    }

    pub fn clear(&mut self, station: usize) {
        let at = self.set.iter().rposition(|(.., of)| *of == station);
        if let Some(at) = at {
            self.set.remove(at);
        }
    }

    /// Returns the first one, of equal ones that of the first station.
    pub fn first(&self) -> Option<(u64, Rank, usize)> {
        self.set.last().copied()
    }

    /// Returns when the transmission of a station ends; none: it has none.
    pub fn end_of(&self, station: usize) -> Option<u64> {
        let mut ends = self.set.iter().filter(|(_, rank, _)| *rank == Rank::End);
        ends.find_map(|(at_ns, _, of)| (*of == station).then_some(*at_ns))
    }

    /// Returns all that are set.
    pub fn all(&self) -> impl Iterator<Item = (u64, usize)> {
        self.set
            .iter()
            .map(|(at_ns, _, station)| (*at_ns, *station))
    }
}
