// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts how often a sum reaches a threshold from below.

use super::window::Sums;

#[derive(Debug)]
pub struct Crossing {
    /// `None`: nothing is judged.
    threshold: Option<u64>,
    over: bool,
}

impl Crossing {
    pub fn new(threshold: Option<u64>) -> Self {
        Self {
            threshold,
            over: false,
        }
    }

    /// Returns whether an episode of contention begins at this event.
    pub fn begins(&mut self, sums: Sums) -> bool {
        let Some(threshold) = self.threshold else {
            return false;
        };
        self.over &= sums.before >= threshold;
        let begins = !self.over && sums.at >= threshold;
        self.over |= begins;
        begins
    }
}
