// SPDX-License-Identifier: MIT OR Apache-2.0
//! When bytes at a rate are over, without rounding.

/// ns of a second, times bits of a byte.
const BIT_NS: u64 = 8_000_000_000;

/// A moment in ns, and the rest of a division by the rate behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Clock {
    pub at_ns: u64,
    rest: u64,
}

impl Clock {
    /// Not before `ns`.
    pub fn raise(&mut self, ns: u64) {
        if self.at_ns < ns {
            *self = Self { at_ns: ns, rest: 0 };
        }
    }

    /// Later by the time that so many bytes take at `rate` bit/s.
    pub fn add(&mut self, bytes: u64, rate: u64) {
        let work = bytes * BIT_NS + self.rest;
        self.at_ns += work / rate;
        self.rest = work % rate;
    }

    /// Another rate: the rest is of the former one.
    pub fn drop_rest(&mut self) {
        self.rest = 0;
    }

    /// Bytes that are still to be sent at `now`, times [`BIT_NS`].
    fn work_left(&self, now: u64, rate: u64) -> u128 {
        let ns = u128::from(self.at_ns.saturating_sub(now));
        match ns {
            0 => 0,
            ns => ns * u128::from(rate) + u128::from(self.rest),
        }
    }

    /// The same in bytes, rounded up.
    pub fn bytes_left(&self, now: u64, rate: u64) -> u64 {
        self.work_left(now, rate).div_ceil(BIT_NS.into()) as u64
    }

    /// Whether the bytes, and what is still to be sent at `now`, are more than `limit`.
    pub fn above(&self, now: u64, rate: u64, bytes: u64, limit: u64) -> bool {
        let unit = u128::from(BIT_NS);
        self.work_left(now, rate) + u128::from(bytes) * unit > u128::from(limit) * unit
    }
}

/// ns that so many bytes take, rounded down.
pub(super) fn duration(bytes: u64, rate: u64) -> u64 {
    bytes * BIT_NS / rate
}
