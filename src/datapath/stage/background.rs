// SPDX-License-Identifier: MIT OR Apache-2.0
//! `background`: what on/off sources send, as the stretches of packets of bpf/background.h.
//!
//! The sources are those of ns-2 (Application/Traffic/Pareto): both times of a source have a Pareto
//! distribution, and while it is on it sends at a constant rate. What all of them send is cut into
//! packets of one length, at equal distances while no source changes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::abi::{self, mix};
use crate::profile::Background;

/// Rows of a link, the one after the last included.
const ROWS: usize = abi::EMUD_STRETCHES as usize;
/// Changes of sources in a period, most of which may be too short for a packet.
const CHANGES_MAX: usize = 1 << 20;
/// The longest on or off time, ns.
const TIME_MAX_NS: f64 = 3600e9;
/// Separates these draws from others with the same seed.
const DRAWS: u64 = 0x6261_636b_6772_6f75;

/// Fills in the figures of a link that has a queue and this rate (bit/s). Returns the rows.
pub(crate) fn encode(
    out: &mut abi::emud_link,
    background: &Background,
    rate: u64,
) -> Vec<abi::emud_stretch> {
    let service_ns = background.service_ns(rate);
    let longest = out.queue_busy_ns.saturating_sub(service_ns);
    let wire = Wire {
        service_ns,
        limit_ns: out.queue_wait_ns.min(longest).min(1 << 60) + out.queueing.burst_ns,
    };
    let (mut rows, mut end_ns) = stretches(background, service_ns, mix(out.seed ^ DRAWS));
    let packets = rows.iter().map(|row| row.count).sum();
    let mut busy_ns = 0;
    for row in &mut rows {
        row.backlog_ns = u64::saturating_sub(busy_ns, row.at_ns);
        busy_ns = wire.cross(busy_ns, row);
    }
    // A period ends with an empty queue, so that each one is like the first.
    end_ns = end_ns.max(busy_ns);
    out.background = abi::emud_background {
        epoch_ns: out.epoch_ns,
        period_ns: end_ns,
        service_ns: wire.service_ns,
        limit_ns: wire.limit_ns,
        packets,
        count: rows.len() as u32,
        ..Default::default()
    };
    rows.push(abi::emud_stretch {
        at_ns: end_ns,
        gap_ns: 1,
        ..Default::default()
    });
    rows
}

/// The server of the queue.
#[derive(Debug, Clone, Copy)]
struct Wire {
    /// Time of a packet on the wire in ns.
    service_ns: u64,
    /// A packet that would wait longer is dropped.
    limit_ns: u64,
}

impl Wire {
    /// Returns when the wire will be idle after a stretch: as emud_cross_stretch() of bpf/background.h.
    fn cross(&self, busy_ns: u64, stretch: &abi::emud_stretch) -> u64 {
        if stretch.count == 0 {
            return busy_ns;
        }
        let (first, gap, service) = (stretch.at_ns, stretch.gap_ns, self.service_ns);
        let last = first + (stretch.count - 1) * gap;
        let busy = busy_ns.max(first);
        let wait = busy - first;
        if gap < service {
            let room = self.limit_ns + (last - first);
            let fit = room.checked_sub(wait).map_or(0, |rest| rest / service + 1);
            return busy + fit.min(stretch.count) * service;
        }
        let lost = wait.saturating_sub(self.limit_ns).div_ceil(gap);
        match stretch.count.saturating_sub(lost) {
            0 => busy,
            n => (busy + (n - 1) * service).max(last) + service,
        }
    }
}

/// Returns the stretches of a period, the first row without any packet, and when the last source changes.
fn stretches(background: &Background, service_ns: u64, seed: u64) -> (Vec<abi::emud_stretch>, u64) {
    let sources =
        (0..u64::from(background.sources)).map(|n| Source::new(background, mix(seed ^ n)));
    let mut sources: Vec<Source> = sources.collect();
    let mut sending = sources.iter().filter(|source| source.on).count();
    let mut changes: BinaryHeap<_> = (0..)
        .zip(&mut sources)
        .map(|(n, source): (usize, _)| Reverse((source.time_ns(background), n)))
        .collect();
    // Packets a ns of one source.
    let one = background.peak() / f64::from(background.sources) / service_ns as f64;
    let mut rows = vec![abi::emud_stretch {
        gap_ns: 1,
        ..Default::default()
    }];
    let (mut now, mut part, mut free) = (0, 0.0, 0);
    for _ in 0..CHANGES_MAX {
        let Some(Reverse((at, n))) = changes.pop() else {
            break;
        };
        let rate = one * sending as f64;
        let sent = part + (at - now) as f64 * rate;
        if sent >= 1.0 {
            let first = (now as f64 + (1.0 - part) / rate).ceil() as u64;
            let stretch = abi::emud_stretch {
                at_ns: first.max(free),
                gap_ns: (1.0 / rate) as u64,
                count: sent as u64,
                ..Default::default()
            };
            free = stretch.at_ns + (stretch.count - 1) * stretch.gap_ns + 1;
            rows.push(stretch);
        }
        part = sent.fract();
        now = at;
        if rows.len() == ROWS - 1 {
            break;
        }
        let source = &mut sources[n];
        source.on = !source.on;
        if source.on {
            sending += 1
        } else {
            sending -= 1
        }
        changes.push(Reverse((at + source.time_ns(background), n)));
    }
    (rows, now.max(free))
}

/// A source on its way through its times.
struct Source {
    on: bool,
    seed: u64,
    draws: u64,
}

impl Source {
    /// Creates a source, which is on with the probability of its share of time; its first time begins at once.
    fn new(background: &Background, seed: u64) -> Self {
        let mut source = Self {
            on: false,
            seed,
            draws: 0,
        };
        source.on = source.uniform() < background.on_share();
        source
    }

    fn uniform(&mut self) -> f64 {
        self.draws += 1;
        abi::uniform(mix(self.seed ^ mix(self.draws)))
    }

    /// Returns how long it stays as it is.
    fn time_ns(&mut self, background: &Background) -> u64 {
        let mean_ns = if self.on {
            background.on_ns
        } else {
            background.off_ns
        };
        let least_ns = mean_ns as f64 * (1.0 - 1.0 / background.shape);
        let ns = least_ns * (1.0 - self.uniform()).powf(-1.0 / background.shape);
        (ns.min(TIME_MAX_NS) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn background(load: f64, sources: u32, shape: f64) -> Background {
        Background {
            load,
            sources,
            shape,
            ..Background::default()
        }
    }

    /// A Kolmogorov-Smirnov distance of n values is below 1.95/sqrt(n) with a probability of 0.999.
    #[test]
    fn times_have_the_distribution() {
        const N: u32 = 20_000;
        for shape in [1.2, 1.5, 1.9, 3.0] {
            let background = Background {
                off_ns: 200_000_000,
                ..background(0.4, 1, shape)
            };
            let mut source = Source::new(&background, 7);
            for on in [true, false] {
                let mean_ns = if on { 5e8 } else { 2e8 };
                let least_ns = mean_ns * (shape - 1.0) / shape;
                source.on = on;
                let mut times: Vec<f64> =
                    (0..N).map(|_| source.time_ns(&background) as f64).collect();
                times.sort_by(f64::total_cmp);
                let cdf = |ns: f64| 1.0 - (least_ns / (ns + 0.5)).powf(shape).min(1.0);
                let off = (0..).zip(&times).map(|(i, ns): (u32, _)| {
                    let (below, to) = (f64::from(i), f64::from(i + 1));
                    let p = cdf(*ns) * f64::from(N);
                    (p - below).abs().max((p - to).abs())
                });
                let distance = off.fold(0.0, f64::max) / f64::from(N);
                assert!(distance < 1.95 / f64::from(N).sqrt(), "{shape}: {distance}");
                assert!(times[0] >= least_ns - 1.0);
            }
            // Up to four standard errors, where there is a variance.
            if shape > 2.0 {
                source.on = true;
                let sum: f64 = (0..N).map(|_| source.time_ns(&background) as f64).sum();
                let sd = 5e8 / (shape * (shape - 2.0)).sqrt();
                let error = sd / f64::from(N).sqrt();
                assert!((sum / f64::from(N) - 5e8).abs() < 4.0 * error);
            }
        }
    }

    #[test]
    fn a_source_is_on_for_its_share_at_first() {
        let background = Background {
            off_ns: 1_500_000_000,
            ..background(0.4, 1, 1.5)
        };
        let on = (0..10_000).filter(|n| Source::new(&background, mix(*n)).on);
        // Four standard errors.
        assert!(on.count().abs_diff(2_500) < 4 * 43);
    }

    /// Packets are in order, and there are as many as the load says: with light tails and many
    /// sources to a hundredth.
    #[test]
    fn stretches_carry_the_load() {
        for (load, sources, shape, within) in [
            (0.4, 50, 6.0, 0.01),
            (0.9, 100, 4.0, 0.01),
            (0.05, 10, 1.5, 0.5),
        ] {
            let background = background(load, sources, shape);
            let service_ns = background.service_ns(10_000_000);
            assert_eq!(service_ns, 1_211_200);
            let (rows, end_ns) = stretches(&background, service_ns, 3);
            assert_eq!((rows[0].at_ns, rows[0].count), (0, 0));
            assert_eq!(rows.len(), ROWS - 1);
            for two in rows[1..].windows(2) {
                let last = two[0].at_ns + (two[0].count - 1) * two[0].gap_ns;
                assert!(two[0].count > 0 && last < two[1].at_ns);
            }
            let packets: u64 = rows.iter().map(|row| row.count).sum();
            let drawn = packets as f64 * service_ns as f64 / end_ns as f64;
            assert!((drawn / load - 1.0).abs() < within, "{load}: {drawn}");
            assert_eq!(end_ns, stretches(&background, service_ns, 3).1);
            assert_ne!(end_ns, stretches(&background, service_ns, 4).1);
        }
    }

    /// The formula of a stretch against its packets, one after the other.
    #[test]
    fn a_stretch_is_its_packets() {
        let mut draws = 0;
        let mut below = |n: u64| {
            draws += 1;
            mix(draws) % n
        };
        let (mut dropped, mut faster) = (0, 0);
        for _ in 0..20_000 {
            let service_ns = 1 + below(1_000);
            let wire = Wire {
                service_ns,
                limit_ns: service_ns + below(20_000),
            };
            let stretch = abi::emud_stretch {
                at_ns: below(100_000),
                gap_ns: 1 + below(2_000),
                count: below(60),
                ..Default::default()
            };
            let before = below(150_000);
            let mut busy = before;
            for at in (0..stretch.count).map(|i| stretch.at_ns + i * stretch.gap_ns) {
                match busy.saturating_sub(at) > wire.limit_ns {
                    true => dropped += 1,
                    false => busy = busy.max(at) + service_ns,
                }
            }
            faster += u32::from(stretch.gap_ns < service_ns);
            // An idle wire is so until the last arrival or until before: both are in the past then.
            assert_eq!(
                wire.cross(before, &stretch),
                busy,
                "{wire:?} {stretch:?} {before}"
            );
        }
        assert!(dropped > 10_000 && faster > 1_000);
    }
}
