// SPDX-License-Identifier: MIT OR Apache-2.0
//! From CLOCK_MONOTONIC, which the kernel's programs read, to the time of day.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Offsets of the other clocks from CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC in ns.
    pub realtime_minus_mono_ns: i64,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC in ns.
    pub boottime_minus_mono_ns: i64,
}

/// Readings of two clocks are at most this many times taken again.
const TRIES: usize = 8;

impl Clock {
    /// Reads the clocks. Of several readings the one that took the least time is the best:
    /// whatever interrupted another one is in its offset.
    pub fn now() -> Self {
        Self {
            realtime_minus_mono_ns: offset(ClockId::Realtime),
            boottime_minus_mono_ns: offset(ClockId::Boottime),
        }
    }

    /// Returns a time as RFC 3339, UTC, ns. One offset for a whole run: `time` less `mono_ns` is the same in
    /// all lines, also when the clock is set meanwhile.
    pub fn time(&self, mono_ns: u64) -> String {
        let ns = i128::from(mono_ns) + i128::from(self.realtime_minus_mono_ns);
        // Before 1970 only on a machine whose clock was never set.
        let ns = u64::try_from(ns).unwrap_or(0);
        let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
        humantime::format_rfc3339_nanos(time).to_string()
    }
}

fn offset(other: ClockId) -> i64 {
    (0..TRIES)
        .map(|_| {
            let before = read(ClockId::Monotonic);
            let there = read(other);
            let after = read(ClockId::Monotonic);
            (after - before, there - before - (after - before) / 2)
        })
        .min()
        .map_or(0, |(_, offset)| offset)
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Reads CLOCK_MONOTONIC, ns.
pub fn mono_ns() -> u64 {
    read(ClockId::Monotonic).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rfc_3339_with_all_nine_digits() {
        let clock = Clock {
            realtime_minus_mono_ns: 1_700_000_000_000_000_000,
            boottime_minus_mono_ns: 0,
        };
        assert_eq!(clock.time(0), "2023-11-14T22:13:20.000000000Z");
        assert_eq!(clock.time(1_000_000_007), "2023-11-14T22:13:21.000000007Z");
    }

    #[test]
    fn the_offset_leads_to_the_time_of_day() {
        let clock = Clock::now();
        let before = SystemTime::now();
        let mono = mono_ns();
        let after = SystemTime::now();
        let time = humantime::parse_rfc3339(&clock.time(mono)).unwrap();
        // The offset itself is off by at most half of the shortest reading.
        let slack = Duration::from_millis(1);
        assert!(
            before - slack <= time && time <= after + slack,
            "{before:?} {time:?} {after:?}"
        );
    }
}
