// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a direction at a moment, and the difference of two moments.

use emud_monitor::log::{ClassCounted, Counted, DelaySample, Sample};

use crate::datapath::show::link::LinkReport;
use crate::datapath::show::report::Direction;
use crate::datapath::show::service::ClassReport;
use crate::datapath::show::time::Offered;
use crate::histogram::{Bucket, Delays};

/// All counters, which only grow, and the backlog.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub mono_ns: u64,
    pub counted: Counted,
    /// Packets that were read after their bottleneck had decided on later ones.
    pub disordered: u64,
    /// Packets that are not IP, which passed at ingress.
    pub not_ip: u64,
    /// Packets that the kernel could not hand to the engine, which passed; a part of `untouched`.
    pub failed: u64,
    /// Packets that were to be copied, damaged or reset and could not be.
    pub unaltered: u64,
    /// Super-packets with one fate; `None`: the link treats all packets of an instant alike.
    pub super_packets: Option<u64>,
    delay_ns: u64,
    backlog_bytes: Option<u64>,
    /// By a trace.
    offered: Option<Offered>,
    delays: Vec<Bucket>,
}

impl Counts {
    /// Reads the counters from a report of a link at a time; `own`: of a direction's own link, with
    /// its engine.
    pub fn of(link: &LinkReport, own: Option<&Direction>, mono_ns: u64) -> Self {
        let c = &link.counters;
        let holder = own.and_then(|own| own.holder.as_ref());
        Self {
            mono_ns,
            counted: Counted {
                packets: c.packets,
                bytes: c.bytes,
                passed_packets: c.sent_packets,
                passed_bytes: c.sent_bytes,
                lost: c.lost + c.down,
                dropped: c.dropped(),
                marked: c.marked,
                duplicated: c.duplicated,
                corrupted: c.corrupted,
                reset: c.reset,
                untouched: c.passed.no_holder + c.passed.failed,
                late: holder.map_or(0, |holder| holder.late),
                engine_dropped: own.map_or(0, |own| own.engine_dropped)
                    + holder.map_or(0, |holder| holder.dropped),
            },
            disordered: holder.map_or(0, |holder| holder.disordered),
            not_ip: c.passed.not_ip,
            failed: c.passed.failed,
            unaltered: c.unaltered,
            super_packets: link.one_by_one.then_some(c.super_packets),
            delay_ns: c.delay_ns,
            backlog_bytes: link.backlog_bytes,
            offered: link.timeline.as_ref().and_then(|t| t.offered),
            delays: c.delay_histogram.clone(),
        }
    }
}

/// Returns the counters of a class of a bottleneck, which only grow.
pub fn of_class(class: &ClassReport) -> ClassCounted {
    ClassCounted {
        sent_packets: class.sent_packets,
        sent_bytes: class.sent_bytes,
        marked: class.marked,
        dropped_full: class.dropped_full,
        dropped_expired: class.dropped_expired,
        dropped_aqm: class.dropped_aqm,
        wait_ns: class.wait_ns,
    }
}

/// Returns the difference of two reports, without the link's name and direction; `None` if no time
/// has passed.
pub fn sample(before: &Counts, now: &Counts) -> Option<Sample> {
    let interval_ns = now
        .mono_ns
        .checked_sub(before.mono_ns)
        .filter(|ns| *ns > 0)?;
    Some(Sample {
        mono_ns: now.mono_ns,
        link: String::new(),
        direction: String::new(),
        class: None,
        interval_ns,
        counted: now.counted.since(&before.counted),
        backlog_bytes: now.backlog_bytes,
        capacity_bit_s: capacity(before.offered, now.offered, interval_ns),
        delay: delay(before, now),
    })
}

fn capacity(before: Option<Offered>, now: Option<Offered>, interval_ns: u64) -> Option<u64> {
    let offered = now?.since(before?)?;
    Some((offered * 8e9 / interval_ns as f64) as u64)
}

fn delay(before: &Counts, now: &Counts) -> Option<DelaySample> {
    let delays = Delays::since(
        (&before.delays, before.delay_ns),
        (&now.delays, now.delay_ns),
    );
    let buckets = delays.buckets().iter();
    Some(DelaySample {
        mean_ns: delays.mean_ns()? as u64,
        buckets: buckets.map(|b| [b.number(), b.packets]).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(mono_ns: u64, delay_ns: u64, classes: &[(u64, u64)]) -> Counts {
        let class = |(number, packets): &(u64, u64)| Bucket::of(*number, *packets);
        let packets = classes.iter().map(|class| class.1).sum();
        Counts {
            mono_ns,
            delay_ns,
            counted: Counted {
                packets,
                passed_packets: packets,
                ..Counted::default()
            },
            delays: classes.iter().map(class).collect(),
            ..Counts::default()
        }
    }

    #[test]
    fn an_interval_is_the_difference() {
        let before = counts(1000, u64::MAX - 99, &[(1, 5)]);
        // The sum of delays has wrapped around.
        let now = counts(3000, 499_900, &[(1, 6), (4, 99)]);
        let sample = sample(&before, &now).unwrap();
        assert_eq!((sample.interval_ns, sample.counted.packets), (2000, 100));
        assert_eq!(sample.counted.passed_packets, 100);
        let delay = sample.delay.unwrap();
        assert_eq!(delay.mean_ns, 5000);
        assert_eq!(delay.buckets, [[1, 1], [4, 99]]);
    }

    #[test]
    fn capacity_is_the_mean_of_an_interval() {
        let of = |id, bytes| Some(Offered { id, bytes });
        // 1.5 MB in 2 s.
        assert_eq!(
            capacity(of(7, 1e6), of(7, 2.5e6), 2_000_000_000),
            Some(6_000_000)
        );
        assert_eq!(capacity(of(7, 1e6), of(7, 1e6), 1), Some(0));
        // Of other rows, or since another start.
        assert_eq!(capacity(of(7, 1e6), of(8, 2e6), 1), None);
        assert_eq!(capacity(None, of(7, 1e6), 1), None);
    }

    #[test]
    fn without_packets_there_is_no_delay() {
        let same = counts(1000, 7, &[(1, 5)]);
        let later = Counts {
            mono_ns: 2000,
            ..same.clone()
        };
        assert!(sample(&same, &later).unwrap().delay.is_none());
        assert!(sample(&same, &same).is_none());
    }
}
