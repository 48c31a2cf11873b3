// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a direction at a moment, and the difference of two moments.

use emud_monitor::log::{DelaySample, Sample, mono_ns};

use crate::datapath::show::link::LinkReport;
use crate::datapath::show::report::Direction;
use crate::histogram::{Bucket, Delays};

/// All counters, which only grow, and the backlog.
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
    /// Packets that passed although the link was configured to change them.
    pub untouched: u64,
    pub engine_dropped: u64,
    late: u64,
    backlog_bytes: Option<u64>,
    delays: Vec<Bucket>,
}

impl Counts {
    /// Reads the counters from a report of a link; `own`: of a direction's own link, with its
    /// engine.
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
            delays: c.delay_histogram.clone(),
        }
    }

    fn before(&self, from_ns: u64) -> u64 {
        let same = self.delays.iter().find(|class| class.from_ns == from_ns);
        same.map_or(0, |class| class.packets)
    }
}

/// Returns the difference of two reports, without the link's name and direction; `None` if no time
/// has passed.
pub fn sample(before: &Counts, now: &Counts) -> Option<Sample> {
    let interval_ns = now
        .mono_ns
        .checked_sub(before.mono_ns)
        .filter(|ns| *ns > 0)?;
    let grown = |of: fn(&Counts) -> u64| of(now).saturating_sub(of(before));
    let delays: Vec<Bucket> = (now.delays.iter())
        .map(|class| Bucket {
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
        delay: delay(delays, now.delay_ns.wrapping_sub(before.delay_ns)),
        late: grown(|c| c.late),
        engine_dropped: grown(|c| c.engine_dropped),
    })
}

fn delay(grown: Vec<Bucket>, sum_ns: u64) -> Option<DelaySample> {
    let delays = Delays::counted(grown, sum_ns);
    let given = delays.given()?;
    let bucket = |b: &Bucket| [b.from_ns, b.to_ns, b.packets];
    Some(DelaySample {
        mean_ns: given.mean_ns,
        p50_ns: given.p50_ns,
        p99_ns: given.p99_ns,
        max_ns: given.max_ns,
        histogram: delays.buckets().iter().map(bucket).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(mono_ns: u64, delay_ns: u64, classes: &[(u64, u64)]) -> Counts {
        let class = |(from_ns, packets): &(u64, u64)| Bucket {
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
        // The sum of delays has wrapped around.
        let now = counts(3000, 499_900, &[(1024, 6), (4096, 99)]);
        let sample = sample(&before, &now).unwrap();
        assert_eq!((sample.interval_ns, sample.packets), (2000, 100));
        assert_eq!(sample.passed_packets, 100);
        let delay = sample.delay.unwrap();
        assert_eq!((delay.mean_ns, delay.max_ns), (5000, 8192));
        assert!((4900..5100).contains(&delay.p50_ns), "{}", delay.p50_ns);
        assert_eq!(delay.histogram, [[1024, 2048, 1], [4096, 8192, 99]]);
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
