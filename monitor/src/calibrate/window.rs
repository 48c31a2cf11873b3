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

/// The sum around an event. It falls between events and rises at events, so these are the smallest
/// value since the previous event and the largest until the next one. Events at the same time count
/// as one: between them, `before` cannot be small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    pub before: u64,
    pub at: u64,
}

impl SlidingSum {
    pub fn new(window_ns: u64) -> Self {
        Self {
            window_ns,
            amounts: VecDeque::new(),
            sum: 0,
        }
    }

    /// Adds an amount. Times must not decrease.
    pub fn push(&mut self, time_ns: u64, amount: u64) -> Sums {
        let again = self.amounts.back().is_some_and(|(t, _)| *t == time_ns);
        // Amounts that leave at this time were in the window just before.
        self.forget(time_ns.saturating_sub(1));
        let before = if again { u64::MAX } else { self.sum };
        self.forget(time_ns);
        self.sum += amount;
        self.amounts.push_back((time_ns, amount));
        Sums {
            before,
            at: self.sum,
        }
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
