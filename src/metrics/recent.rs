// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delays of the last half minute, or since the scrape before if that is longer ago: their quantiles are exact
//! where a histogram of Prometheus is off by the width of its buckets, and one with those of the classifier would have
//! 500.

use std::collections::{HashMap, VecDeque};

use crate::datapath::survey::{LinkSample, Snapshot, StreamSample};
use crate::histogram::{Bucket, Delays};

/// Length of the interval, at least: two scrapes at the usual 15 s.
const INTERVAL_NS: u64 = 30_000_000_000;
/// Between two readings that are kept, whatever the number of clients.
const KEPT_EVERY_NS: u64 = 1_000_000_000;

/// Link, direction and named link.
type Which = (u32, &'static str, String);

/// Histograms, each with the sum of its delays.
type Reading = HashMap<Which, (Vec<Bucket>, u64)>;

/// Readings of the histograms of all links, the oldest first.
#[derive(Debug, Default)]
pub struct Recent(VecDeque<(u64, Reading)>);

impl Recent {
    /// Takes a reading, and sets the delays since the last one that is old enough; if there is none, since the
    /// oldest one, and in the first reading since attach.
    pub fn fill(&mut self, now: &mut Snapshot) {
        let old = |at: u64| now.mono_ns.saturating_sub(at) >= INTERVAL_NS;
        while self.0.get(1).is_some_and(|(at, _)| old(*at)) {
            self.0.pop_front();
        }
        let begin = self.0.front().map(|(_, reading)| reading);
        each(&mut now.links, |which, stream| {
            let before = begin.and_then(|reading| reading.get(&which));
            let (buckets, sum_ns) = before.map_or((&[][..], 0), |(b, sum)| (b, *sum));
            let counters = &stream.counters;
            let now = (&counters.delay_histogram[..], counters.delay_ns);
            stream.recent = Delays::since((buckets, sum_ns), now);
        });
        let kept = |at: u64| now.mono_ns.saturating_sub(at) < KEPT_EVERY_NS;
        if self.0.back().is_some_and(|(at, _)| kept(*at)) {
            return;
        }
        let mut reading = Reading::new();
        each(&mut now.links, |which, stream| {
            let counters = &stream.counters;
            reading.insert(which, (counters.delay_histogram.clone(), counters.delay_ns));
        });
        self.0.push_back((now.mono_ns, reading));
    }
}

fn each(links: &mut [LinkSample], mut then: impl FnMut(Which, &mut StreamSample)) {
    for link in links {
        for direction in &mut link.directions {
            for stream in &mut direction.streams {
                then((link.id, direction.name, stream.class.clone()), stream);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::survey::made_up::snapshot;
    use crate::metrics::{Format, exposition, links, registry};

    const S: u64 = 1_000_000_000;

    /// Returns the median and the 99th percentile that a scrape shows for `v0`, in s.
    fn shown(recent: &mut Recent, mut now: Snapshot) -> Vec<f64> {
        recent.fill(&mut now);
        let mut registry = registry();
        links::register(&mut registry, now);
        let text = exposition(&registry, Format::Prometheus).unwrap();
        let of = "{netns=\"\",interface=\"v0\",direction=\"up\",class=\"\"} ";
        let names = ["p50", "p99"].map(|q| format!("emud_link_delay_{q}_seconds{of}"));
        let lines = text.lines().filter_map(|line| {
            let value = names
                .iter()
                .find_map(|name| line.strip_prefix(name.as_str()));
            value?.parse().ok()
        });
        lines.collect()
    }

    /// `emud metrics` prints as everywhere: without control characters.
    #[test]
    fn a_name_of_any_process_is_a_valid_label() {
        let mut registry = registry();
        links::register(&mut registry, snapshot(S, 1000));
        let text = exposition(&registry, Format::Prometheus).unwrap();
        assert!(text.contains("interface=\"eth1\\\\x1b[2J\""), "{text}");
        assert_eq!(crate::text::printable(&text), text);
    }

    /// Returns a snapshot that has, besides the packets of 20 ms since attach, `packets` of 90 ms.
    fn later(s: u64, packets: u64) -> Snapshot {
        let mut snapshot = snapshot(s * S, 1000);
        let counters = &mut snapshot.links[0].directions[0].streams[0].counters;
        let longer = Bucket::of(crate::histogram::number(90_000_000), packets);
        counters.delay_histogram.push(longer);
        counters.delay_ns += packets * 90_000_000;
        snapshot
    }

    fn assert_near(found: &[f64], wanted_s: f64) {
        assert_eq!(found.len(), 2, "{found:?}");
        for s in found {
            assert!(
                (s / wanted_s - 1.0).abs() < 0.05,
                "{found:?}, not {wanted_s}"
            );
        }
    }

    /// The bounds of a histogram of Prometheus made them 25 and 33 ms.
    #[test]
    fn quantiles_of_a_constant_delay_are_that_delay() {
        let mut recent = Recent::default();
        assert_near(&shown(&mut recent, snapshot(S, 1000)), 0.02);
        // No packet since then.
        assert_eq!(shown(&mut recent, snapshot(2 * S, 1000)), [] as [f64; 0]);
        assert_near(&shown(&mut recent, later(3, 7)), 0.09);
        // Another client does not shorten the interval of the first.
        assert_near(&shown(&mut recent, later(3, 7)), 0.09);
        assert_near(&shown(&mut recent, later(31, 7)), 0.09);
        // The first reading with them is 30 s old.
        assert_eq!(shown(&mut recent, later(33, 7)), [] as [f64; 0]);
        assert!(recent.0.len() < 5, "{recent:?}");
        // After a gap: of its whole length, the 90 ms at its start included.
        assert_near(&shown(&mut recent, later(3600, 8)), 0.09);
        assert_eq!(shown(&mut recent, later(3631, 8)), [] as [f64; 0]);
        // Attached again: it counts from 0.
        let mut again = snapshot(3632 * S, 1000);
        again.links[0].id += 1;
        assert_near(&shown(&mut recent, again), 0.02);
    }
}
