// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a direction at a moment, and what happened between two of them.

use emud_monitor::log::{DelaySample, Sample, mono_ns};

use crate::link::report::{Bucket, Direction};
use crate::link::report_link::LinkReport;

/// All that only grows, and the backlog.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub mono_ns: u64,
    pub packets: u64,
    bytes: u64,
    sent_bytes: u64,
    delay_ns: u64,
    lost: u64,
    dropped: u64,
    marked: u64,
    duplicated: u64,
    corrupted: u64,
    /// Passed although the link was asked to do something with them.
    pub untouched: u64,
    pub engine_dropped: u64,
    late: u64,
    backlog_bytes: Option<u64>,
    delays: Vec<Delays>,
}

/// A class of the histogram of delays.
#[derive(Debug, Clone, Copy)]
struct Delays {
    from_ns: u64,
    to_ns: u64,
    packets: u64,
}

impl Counts {
    /// Of a link as it was just read; `own`: of a direction's own link, with its engine.
    pub fn of(link: &LinkReport, own: Option<&Direction>) -> Self {
        let c = &link.counters;
        let holder = own.and_then(|own| own.holder.as_ref());
        let bytes = |rate: f64| (link.backlog_ns as f64 * rate / 8e9) as u64;
        Self {
            mono_ns: mono_ns(),
            packets: c.packets,
            bytes: c.bytes,
            sent_bytes: c.sent_bytes,
            delay_ns: c.delay_ns,
            lost: c.lost + c.down,
            dropped: c.queue_dropped + c.aqm_dropped.all(),
            marked: c.marked,
            duplicated: c.duplicated,
            corrupted: c.corrupted,
            untouched: c.passed.no_holder + c.passed.failed,
            engine_dropped: own.map_or(0, |own| own.engine_dropped)
                + holder.map_or(0, |holder| holder.dropped),
            late: holder.map_or(0, |holder| holder.late),
            backlog_bytes: link.rate_bit_s.map(bytes),
            delays: c.delay_histogram.iter().map(Delays::from).collect(),
        }
    }

    fn before(&self, from_ns: u64) -> u64 {
        let same = self.delays.iter().find(|class| class.from_ns == from_ns);
        same.map_or(0, |class| class.packets)
    }
}

impl From<&Bucket> for Delays {
    fn from(bucket: &Bucket) -> Self {
        Self {
            from_ns: bucket.from_ns,
            to_ns: bucket.to_ns,
            packets: bucket.packets,
        }
    }
}

/// What happened between two looks, without the link's name and direction. None: no time has
/// passed.
pub fn sample(before: &Counts, now: &Counts) -> Option<Sample> {
    let interval_ns = now
        .mono_ns
        .checked_sub(before.mono_ns)
        .filter(|ns| *ns > 0)?;
    let grown = |of: fn(&Counts) -> u64| of(now).saturating_sub(of(before));
    let delays: Vec<Delays> = (now.delays.iter())
        .map(|class| Delays {
            packets: class.packets.saturating_sub(before.before(class.from_ns)),
            ..*class
        })
        .filter(|class| class.packets > 0)
        .collect();
    let passed_packets = delays.iter().map(|class| class.packets).sum();
    Some(Sample {
        mono_ns: now.mono_ns,
        link: String::new(),
        direction: String::new(),
        class: None,
        interval_ns,
        packets: grown(|c| c.packets),
        bytes: grown(|c| c.bytes),
        passed_packets,
        passed_bytes: grown(|c| c.sent_bytes),
        lost: grown(|c| c.lost),
        dropped: grown(|c| c.dropped),
        marked: grown(|c| c.marked),
        duplicated: grown(|c| c.duplicated),
        corrupted: grown(|c| c.corrupted),
        untouched: grown(|c| c.untouched),
        backlog_bytes: now.backlog_bytes,
        delay: delay(&delays, now.delay_ns.wrapping_sub(before.delay_ns)),
        late: grown(|c| c.late),
        engine_dropped: grown(|c| c.engine_dropped),
    })
}

fn delay(classes: &[Delays], sum_ns: u64) -> Option<DelaySample> {
    let packets: u64 = classes.iter().map(|class| class.packets).sum();
    let quantile = |share: f64| {
        let rank = (packets as f64 * share).ceil() as u64;
        let mut below = 0;
        let class = classes.iter().find(|class| {
            below += class.packets;
            below >= rank
        });
        class.map_or(0, |class| class.to_ns)
    };
    (packets > 0).then(|| DelaySample {
        mean_ns: sum_ns / packets,
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        max_ns: quantile(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(mono_ns: u64, delay_ns: u64, classes: &[(u64, u64)]) -> Counts {
        let class = |(from_ns, packets): &(u64, u64)| Delays {
            from_ns: *from_ns,
            to_ns: 2 * from_ns,
            packets: *packets,
        };
        Counts {
            mono_ns,
            delay_ns,
            packets: classes.iter().map(|class| class.1).sum(),
            delays: classes.iter().map(class).collect(),
            ..Counts::default()
        }
    }

    #[test]
    fn an_interval_is_the_difference() {
        let before = counts(1000, u64::MAX - 99, &[(1024, 5)]);
        // The sum of delays has gone over its end.
        let now = counts(3000, 400, &[(1024, 6), (4096, 99)]);
        let sample = sample(&before, &now).unwrap();
        assert_eq!((sample.interval_ns, sample.packets), (2000, 100));
        assert_eq!(sample.passed_packets, 100);
        let delay = sample.delay.unwrap();
        assert_eq!((delay.mean_ns, delay.p50_ns, delay.max_ns), (5, 8192, 8192));
    }

    #[test]
    fn without_packets_there_is_no_delay() {
        let same = counts(1000, 7, &[(1024, 5)]);
        let later = Counts {
            mono_ns: 2000,
            ..same.clone()
        };
        assert!(sample(&same, &later).unwrap().delay.is_none());
        assert!(sample(&same, &same).is_none());
    }
}
