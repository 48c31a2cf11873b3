// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender of blocks without sockets or clock: which block is sent when.

use std::collections::{BTreeMap, BTreeSet};

/// A late sender catches up with this much of its rate at once.
const CATCH_UP_NS: u64 = 10_000_000;

/// A sender with a limit of unacknowledged blocks. It sends a block again if no acknowledgement arrived in
/// time, and no two transmissions are closer to each other than the rate allows. Blocks do not wait
/// for the order: one that is lost holds up its own position of the window only.
///
/// With W positions, blocks of B bytes, a round trip of R, a timeout of T, a rate C and the
/// probability q that a block or its acknowledgement is lost, the goodput is about the least of
/// C (1 - q) and W B / (R + T q / (1 - q)), in bytes/s with times in s.
#[derive(Debug)]
pub struct Window {
    blocks: usize,
    interval_ns: u64,
    timeout_ns: u64,
    /// Number of the next new block.
    next: u64,
    /// Earliest time of the next transmission.
    free_ns: u64,
    /// Block, and when it is sent again.
    waiting: BTreeMap<u64, u64>,
    due: BTreeSet<(u64, u64)>,
    acknowledged: u64,
    retransmissions: u64,
}

/// The next step of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send the block of this number now.
    Send(u64),
    /// Wait until this time, or until an acknowledgement.
    Wait(u64),
}

impl Window {
    /// Returns a window of `blocks`; the rate is a block per `interval_ns`.
    pub fn new(blocks: usize, interval_ns: u64, timeout_ns: u64) -> Self {
        Self {
            blocks: blocks.max(1),
            interval_ns,
            timeout_ns,
            next: 0,
            free_ns: 0,
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
            acknowledged: 0,
            retransmissions: 0,
        }
    }

    /// Returns what to do at this time. A block that must be sent again goes before a new one.
    pub fn step(&mut self, now_ns: u64) -> Step {
        let late = self.due.first().copied();
        let at = match late {
            Some((due, _)) if self.waiting.len() == self.blocks => due.max(self.free_ns),
            _ => self.free_ns,
        };
        if at > now_ns {
            return Step::Wait(at);
        }
        let number = match late {
            Some((due, number)) if due <= now_ns => {
                self.due.remove(&(due, number));
                self.retransmissions += 1;
                number
            }
            _ => {
                self.next += 1;
                self.next - 1
            }
        };
        let due = now_ns + self.timeout_ns;
        self.waiting.insert(number, due);
        self.due.insert((due, number));
        self.free_ns = self.free_ns.max(now_ns.saturating_sub(CATCH_UP_NS)) + self.interval_ns;
        Step::Send(number)
    }

    /// Takes an acknowledgement; a second one for the same block is ignored.
    pub fn acknowledge(&mut self, number: u64) {
        if let Some(due) = self.waiting.remove(&number) {
            self.due.remove(&(due, number));
            self.acknowledged += 1;
        }
    }

    /// Blocks that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Transmissions of blocks that had been sent before.
    pub fn retransmissions(&self) -> u64 {
        self.retransmissions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_waits_for_the_oldest_block() {
        let mut window = Window::new(2, 10, 100);
        assert_eq!(window.step(0), Step::Send(0));
        assert_eq!(window.step(0), Step::Wait(10));
        assert_eq!(window.step(10), Step::Send(1));
        assert_eq!(window.step(20), Step::Wait(100));
        window.acknowledge(1);
        assert_eq!(window.step(20), Step::Send(2));
        // Block 0 is sent again, block 2 is not due yet.
        assert_eq!(window.step(100), Step::Send(0));
        assert_eq!(window.step(110), Step::Wait(120));
        window.acknowledge(0);
        window.acknowledge(0);
        assert_eq!((window.acknowledged(), window.retransmissions()), (2, 1));
    }

    #[test]
    fn a_late_sender_catches_up_with_10_ms() {
        let ms = 1_000_000;
        let mut window = Window::new(100, ms, 1_000 * ms);
        let sent = |window: &mut Window, now| {
            let steps = std::iter::from_fn(|| Some(window.step(now)));
            steps
                .take_while(|step| matches!(step, Step::Send(_)))
                .count()
        };
        assert_eq!(sent(&mut window, 0), 1);
        assert_eq!(sent(&mut window, 50 * ms), 11);
        assert_eq!(window.step(50 * ms), Step::Wait(51 * ms));
    }
}
