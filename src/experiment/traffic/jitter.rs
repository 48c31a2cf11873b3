// SPDX-License-Identifier: MIT OR Apache-2.0
//! How regularly datagrams arrive: the interarrival jitter of RFC 3550, and the packet delay variation of RFC 5481.
//!
//! Both are of differences between delays, so a constant difference between the clocks of sender and receiver is
//! not in them.

use std::net::SocketAddr;

use super::rtp::CLOCK;

/// Interarrival jitter (RFC 3550, sections 6.4.1 and A.8) of the datagrams of one sender in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Jitter {
    sender: Option<SocketAddr>,
    is_mixed: bool,
    transit_ns: Option<i64>,
    ns: Option<f64>,
}

impl Jitter {
    /// Adds a datagram with its transit time; the clocks may differ.
    pub fn add(&mut self, sender: SocketAddr, transit_ns: i64) {
        self.is_mixed |= *self.sender.get_or_insert(sender) != sender;
        if let Some(before) = self.transit_ns.replace(transit_ns) {
            let difference = transit_ns.wrapping_sub(before).unsigned_abs() as f64;
            let jitter = self.ns.get_or_insert(0.0);
            *jitter += (difference - *jitter) / 16.0;
        }
    }

    /// Returns the estimate after the last datagram; `None`: of fewer than two, or of several senders, whose paths differ.
    pub fn ns(&self) -> Option<u64> {
        self.ns
            .filter(|_| !self.is_mixed)
            .map(|ns| ns.round() as u64)
    }

    /// Returns whether all datagrams had one sender.
    pub fn is_of_one_sender(&self) -> bool {
        !self.is_mixed
    }
}

/// Time stamps of RTP as a time that does not wrap.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    last: Option<u32>,
    ticks: i64,
}

impl Stamps {
    /// Returns the time of a stamp in ns since the first one.
    pub fn ns(&mut self, stamp: u32) -> i64 {
        let last = self.last.replace(stamp).unwrap_or(stamp);
        self.ticks += i64::from(stamp.wrapping_sub(last).cast_signed());
        let ns = i128::from(self.ticks) * 1_000_000_000 / i128::from(CLOCK);
        i64::try_from(ns).unwrap_or(i64::MAX)
    }
}

/// Returns the median, the 95th, the 99th and the 99.9th percentile of the delays above the shortest one (PDV of
/// RFC 5481, section 4.2), each the smallest one that this share does not exceed; `None`: there are none.
pub(super) fn variation_ns(transits_ns: impl Iterator<Item = i64>) -> Option<[u64; 4]> {
    let mut all: Vec<_> = transits_ns.collect();
    all.sort_unstable();
    let least = *all.first()?;
    let count = all.len();
    Some([500, 950, 990, 999].map(|of_1000| {
        let rank = (count * of_1000).div_ceil(1000).max(1);
        all[rank - 1].wrapping_sub(least).cast_unsigned()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn jitter(transits: &[i64]) -> Option<u64> {
        let mut jitter = Jitter::default();
        transits.iter().for_each(|ns| jitter.add(of(1), *ns));
        jitter.ns()
    }

    /// A.8 of the RFC: J += (|D| - J) / 16.
    #[test]
    fn jitter_is_that_of_the_rfc() {
        assert_eq!(jitter(&[5_000]), None);
        assert_eq!(jitter(&[5_000, 5_000]), Some(0));
        assert_eq!(jitter(&[0, 1_600]), Some(100));
        // 100 + (3,200 - 100) / 16.
        assert_eq!(jitter(&[0, 1_600, -1_600]), Some(294));
        // Delays that alternate by d have a jitter of d (1 - (15/16)^n): after 159 differences d.
        let alternate: Vec<_> = (0..160).map(|n| 1_000_000 * (n % 2)).collect();
        let after = jitter(&alternate).unwrap();
        assert!((999_950..1_000_000).contains(&after), "{after}");
        // Clocks that differ by a constant, here by 200 years, change nothing.
        let shifted: Vec<_> = alternate.iter().map(|ns| ns + i64::MAX / 3 * 2).collect();
        assert_eq!(jitter(&shifted), Some(after));
    }

    #[test]
    fn two_senders_have_no_common_jitter() {
        let mut jitter = Jitter::default();
        jitter.add(of(1), 0);
        jitter.add(of(1), 1_600);
        assert_eq!((jitter.ns(), jitter.is_of_one_sender()), (Some(100), true));
        jitter.add(of(2), 0);
        assert_eq!((jitter.ns(), jitter.is_of_one_sender()), (None, false));
    }

    #[test]
    fn time_stamps_go_on_after_32_bits() {
        let mut stamps = Stamps::default();
        let first = u32::MAX - 89_999;
        let all = [first, 0, 90_000, 0, 3_600].map(|stamp| stamps.ns(stamp));
        let s = 1_000_000_000;
        assert_eq!(all, [0, s, 2 * s, s, s + 40_000_000]);
    }

    #[test]
    fn quantiles_are_above_the_shortest_delay() {
        assert_eq!(variation_ns([].into_iter()), None);
        assert_eq!(variation_ns([-7].into_iter()), Some([0; 4]));
        let all = (1..=2_000).rev().map(|n| n - 500);
        assert_eq!(variation_ns(all), Some([999, 1_899, 1_979, 1_997]));
    }
}
