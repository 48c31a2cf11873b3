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

/// The sum around an event: it falls between events and rises at them, so these are the
/// smallest since the event before and the largest until the next. Events at the same time
/// are one: `before` the second of them there is nothing that could have been small.
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

    /// Times must not decrease.
    pub fn push(&mut self, time_ns: u64, amount: u64) -> Sums {
        let again = self.amounts.back().is_some_and(|(t, _)| *t == time_ns);
        // What leaves as this comes was still there the moment before.
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
