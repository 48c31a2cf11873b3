// SPDX-License-Identifier: MIT OR Apache-2.0
//! An exact sliding sum.

use std::collections::VecDeque;

/// The sum of amounts in (t - window, t].
#[derive(Debug)]
pub struct SlidingSum {
    window_ns: u64,
    amounts: VecDeque<(u64, u64)>,
    sum: u64,
}

impl SlidingSum {
    pub fn new(window_ns: u64) -> Self {
        Self {
            window_ns,
            amounts: VecDeque::new(),
            sum: 0,
        }
    }

    /// Adds an amount and returns the sum, which is the largest until the next event. Times must not decrease.
    pub fn push(&mut self, time_ns: u64, amount: u64) -> u64 {
        self.forget(time_ns);
        self.sum += amount;
        self.amounts.push_back((time_ns, amount));
        self.sum
    }

    fn forget(&mut self, now_ns: u64) {
        while let Some((time_ns, amount)) = self.amounts.front() {
            if now_ns.saturating_sub(*time_ns) < self.window_ns {
                break;
            }
            self.sum -= amount;
            self.amounts.pop_front();
        }
    }
}
