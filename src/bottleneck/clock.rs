// SPDX-License-Identifier: MIT OR Apache-2.0
//! When bytes at a rate are over, without rounding.

/// ns of a second, times bits of a byte.
const BIT_NS: u64 = 8_000_000_000;

/// A moment in ns, and the remainder of the division by the rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Clock {
    pub at_ns: u64,
    rest: u64,
}

impl Clock {
    /// Raises the moment to `ns` if it is earlier.
    pub fn raise(&mut self, ns: u64) {
        if self.at_ns < ns {
            *self = Self { at_ns: ns, rest: 0 };
        }
    }

    /// Lowers the moment to `ns` if it is later.
    pub fn lower(&mut self, ns: u64) {
        if self.at_ns > ns {
            *self = Self { at_ns: ns, rest: 0 };
        }
    }

    /// Adds the time that `bytes` take at `rate` bit/s.
    pub fn add(&mut self, bytes: u64, rate: u64) {
        let work = bytes * BIT_NS + self.rest;
        self.at_ns += work / rate;
        self.rest = work % rate;
    }

    /// Drops the remainder when the rate changes: it belongs to the former one.
    pub fn drop_rest(&mut self) {
        self.rest = 0;
    }

    /// Bytes that are still to be sent at `now`, rounded up.
    pub fn bytes_left(&self, now: u64, rate: u64) -> u64 {
        let work = match u128::from(self.at_ns.saturating_sub(now)) {
            0 => 0,
            ns => ns * u128::from(rate) + u128::from(self.rest),
        };
        u64::try_from(work.div_ceil(BIT_NS.into())).unwrap_or(u64::MAX)
    }
}

/// Returns the time that `bytes` take at `rate` bit/s, in ns, rounded down.
pub(super) fn duration(bytes: u64, rate: u64) -> u64 {
    bytes * BIT_NS / rate
}
