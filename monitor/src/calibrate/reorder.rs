// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts events by time.
//!
//! A CPU reads the clock before it reserves a record in the ring buffer, and an interrupt or the
//! hypervisor may delay it between the two.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events wait this long for earlier ones,
const SLACK_NS: u64 = 100_000_000;
/// unless this many are waiting.
const HELD_MAX: usize = 1 << 20;

#[derive(Debug)]
pub struct Reorder<T> {
    held: BinaryHeap<Reverse<(u64, u64, T)>>,
    /// Preserves the order of equal times.
    arrivals: u64,
    newest_ns: u64,
    released_ns: u64,
    late: u64,
}

impl<T: Ord> Reorder<T> {
    pub fn new() -> Self {
        Self {
            held: BinaryHeap::new(),
            arrivals: 0,
            newest_ns: 0,
            released_ns: 0,
            late: 0,
        }
    }

    pub fn push(&mut self, time_ns: u64, event: T) {
        self.arrivals += 1;
        self.newest_ns = self.newest_ns.max(time_ns);
        self.held.push(Reverse((time_ns, self.arrivals, event)));
    }

    /// Returns the next event that no later one can precede, with its time.
    pub fn next(&mut self) -> Option<(u64, T)> {
        let Reverse((time_ns, ..)) = self.held.peek()?;
        let due = self.newest_ns.saturating_sub(SLACK_NS) >= *time_ns;
        if due || self.held.len() > HELD_MAX {
            return self.pop();
        }
        None
    }

    /// Returns the next event after the end of the input.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let Reverse((time_ns, _, event)) = self.held.pop()?;
        self.late += u64::from(time_ns < self.released_ns);
        self.released_ns = self.released_ns.max(time_ns);
        Some((self.released_ns, event))
    }

    /// Returns the number of late events, which got the time of the event before them.
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time() {
        let mut order = Reorder::new();
        let mut out = vec![];
        for time in [5, 3, 4, 3 + SLACK_NS, 2] {
            order.push(time, time);
            while let Some((t, _)) = order.next() {
                out.push(t);
            }
        }
        // 3 is released when it is old enough; 2 arrives too late.
        assert_eq!(out, [3, 3]);
        assert_eq!(order.late(), 1);
        while let Some((t, _)) = order.pop() {
            out.push(t);
        }
        assert_eq!(out, [3, 3, 4, 5, 3 + SLACK_NS]);
    }

    #[test]
    fn equal_times_keep_their_order() {
        let mut order = Reorder::new();
        for event in ["b", "a", "c"] {
            order.push(7, event);
        }
        let out: Vec<_> = std::iter::from_fn(|| order.pop()).map(|e| e.1).collect();
        assert_eq!(out, ["b", "a", "c"]);
    }
}
