// SPDX-License-Identifier: MIT OR Apache-2.0
//! The families of emulated links: one line each, from a sample to its value.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::families::{CONTAINER, Families, Labels, with};
use crate::abi::EMUD_HIST_UNIT;
use crate::datapath::show::counters::Counters;
use crate::datapath::show::report::Holder;
use crate::datapath::show::service::ClassReport;
use crate::datapath::survey::{DirectionSample, LinkSample, Snapshot, StreamSample};
use crate::histogram::Delays;

/// Adds the links of a snapshot.
pub fn register(registry: &mut Registry, snapshot: Snapshot) {
    registry.register_collector(Box::new(Links(snapshot)));
}

#[derive(Debug)]
struct Links(Snapshot);

/// Bounds of the histogram of delays: powers of two, at which the classifier's own classes end;
/// from 0.26 ms to 8.6 s. A quantile of it may be off by half; those of a link are separate.
const BOUNDS_LOG2: std::ops::RangeInclusive<u32> = 18..=33;

type Stream<'a> = (&'a LinkSample, &'a DirectionSample, &'a StreamSample);
type Direction<'a> = (&'a LinkSample, &'a DirectionSample);
type Class<'a> = (&'a LinkSample, &'a str, &'a ClassReport);

fn of_link(link: &LinkSample) -> Labels<'_, 3> {
    Labels([
        ("netns", &link.netns),
        (CONTAINER, &link.container),
        ("interface", &link.interface),
    ])
}

fn of_direction<'a>((link, direction): Direction<'a>) -> Labels<'a, 4> {
    let [netns, container, interface] = of_link(link).0;
    Labels([netns, container, interface, ("direction", direction.name)])
}

fn of_stream<'a>((link, direction, stream): Stream<'a>) -> Labels<'a, 5> {
    let [netns, container, interface, direction] = of_direction((link, direction)).0;
    let class = ("class", stream.class.as_str());
    Labels([netns, container, interface, direction, class])
}

fn of_class<'a>((link, bottleneck, class): Class<'a>) -> Labels<'a, 5> {
    let [netns, container, interface] = of_link(link).0;
    let class = class.name.as_deref().unwrap_or_default();
    Labels([
        netns,
        container,
        interface,
        ("bottleneck", bottleneck),
        ("class", class),
    ])
}

impl Collector for Links {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut out = Families(&mut encoder);
        self.host(&mut out)?;
        self.links(&mut out)?;
        self.streams(&mut out)?;
        self.directions(&mut out)?;
        self.classes(&mut out)
    }
}

impl Links {
    fn each(&self) -> impl Iterator<Item = &LinkSample> + Clone {
        self.0.links.iter()
    }

    fn each_direction(&self) -> impl Iterator<Item = Direction<'_>> + Clone {
        self.each()
            .flat_map(|l| l.directions.iter().map(move |d| (l, d)))
    }

    fn each_stream(&self) -> impl Iterator<Item = Stream<'_>> + Clone {
        self.each_direction()
            .flat_map(|(l, d)| d.streams.iter().map(move |s| (l, d, s)))
    }

    /// Classes in which packets wait.
    fn each_class(&self) -> impl Iterator<Item = Class<'_>> + Clone {
        self.each().flat_map(|link| {
            link.bottlenecks.iter().flat_map(move |bottleneck| {
                let waiting = bottleneck
                    .classes
                    .iter()
                    .filter(|class| class.queue.is_some());
                waiting.map(move |class| (link, bottleneck.name.as_str(), class))
            })
        })
    }

    fn host(&self, out: &mut Families) -> fmt::Result {
        let none = Labels::<0>([]);
        let (links, unreadable) = (self.0.links.len(), self.0.unreadable.len());
        let help = "Emulated links of this host that were read";
        out.gauges("links", help, None, [(none, links as f64)])?;
        let help = "Emulated links and network namespaces that could not be read: \
                    their figures are missing or incomplete";
        out.gauges("links_unreadable", help, None, [(none, unreadable as f64)])
    }

    fn links(&self, out: &mut Families) -> fmt::Result {
        let help = "An emulated link: profile, engine and seed";
        let seeds: Vec<String> = self.each().map(|link| link.seed.to_string()).collect();
        let engines: Vec<String> = self.each().map(|link| link.engine.to_string()).collect();
        let mut family = out.family("link", help, None, MetricType::Info)?;
        for ((link, seed), engine) in self.each().zip(&seeds).zip(&engines) {
            let [netns, container, interface] = of_link(link).0;
            let more = [
                ("profile", link.profile.as_str()),
                ("engine", engine),
                ("seed", seed),
            ];
            let [profile, engine, seed] = more;
            family.encode_info(&Labels([
                netns, container, interface, profile, engine, seed,
            ]))?;
        }
        let help = "Time since the link was attached";
        let age = self.each().map(|link| (of_link(link), link.attached_s));
        out.gauges("link_attached", help, Some(Unit::Seconds), age)?;
        let help = "Time until the link ends by itself; 0: it has ended, and packets pass \
                    unchanged; missing: it does not end by itself";
        let ends = self
            .each()
            .filter_map(|link| Some((of_link(link), link.ends_in_s?)));
        out.gauges("link_ends_in", help, Some(Unit::Seconds), ends)?;
        let help = "Parts of the link that another process deleted or changed; missing: not \
                    checked yet";
        let tampered = self.each().filter_map(|link| {
            let parts = link.tampered.as_ref()?.len();
            Some((of_link(link), parts as f64))
        });
        out.gauges("link_tampered_parts", help, None, tampered)?;
        let help = "Time since the link was checked for tampering";
        let checked = self
            .each()
            .filter_map(|link| Some((of_link(link), link.checked_s?)));
        out.gauges("link_checked_ago", help, Some(Unit::Seconds), checked)
    }

    fn streams(&self, out: &mut Families) -> fmt::Result {
        let mut counters = |name, help, unit, of: fn(&Counters) -> u64| {
            let values = self.each_stream();
            let values = values.map(|each| (of_stream(each), of(&each.2.counters)));
            out.counters(name, help, unit, values)
        };
        let help = "Packets that reached the link";
        counters("link_arrived_packets", help, None, |c| c.packets)?;
        let help = "Bytes of the packets that reached the link, without overhead";
        counters("link_arrived", help, Some(Unit::Bytes), |c| c.bytes)?;
        let help = "Packets that the link sent, without copies";
        counters("link_sent_packets", help, None, |c| c.sent_packets)?;
        let help = "Bytes of the packets that the link sent, without overhead";
        counters("link_sent", help, Some(Unit::Bytes), |c| c.sent_bytes)?;
        let help = "Packets marked \"congestion experienced\" by the queue";
        counters("link_marked_packets", help, None, |c| c.marked)?;
        counters("link_duplicated_packets", "Copies of packets", None, |c| {
            c.duplicated
        })?;
        counters(
            "link_corrupted_packets",
            "Packets that were damaged",
            None,
            |c| c.corrupted,
        )?;
        let help = "TCP packets that became a reset";
        counters("link_reset_packets", help, None, |c| c.reset)?;
        let help = "Packets that departed before an earlier packet";
        counters("link_reordered_packets", help, None, |c| c.reordered)?;
        self.causes(out)?;
        let mut family = out.family(
            "link_delay",
            "Delay assigned to packets: departure minus arrival",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for each in self.each_stream() {
            let (sum_s, packets, buckets) = histogram(&each.2.counters);
            let labels = of_stream(each);
            let mut of_it = family.encode_family(&labels)?;
            of_it.encode_histogram::<NoLabelSet>(sum_s, packets, &buckets, None)?;
        }
        let gauge = |of: fn(&StreamSample) -> Option<f64>| {
            let streams = self.each_stream();
            streams.filter_map(move |each| Some((of_stream(each), of(each.2)?)))
        };
        let help = "Median of the delay assigned to the packets since the last scrape that is at least 30 s old; missing: no packet";
        let p50 = gauge(|s| Some(s.recent.quantile_ns(0.5)? / 1e9));
        out.gauges("link_delay_p50", help, Some(Unit::Seconds), p50)?;
        let help = "99th percentile of the delay assigned to the packets since that scrape; missing: no packet";
        let p99 = gauge(|s| Some(s.recent.quantile_ns(0.99)? / 1e9));
        out.gauges("link_delay_p99", help, Some(Unit::Seconds), p99)?;
        let help = "Rate in force, 0 in an outage; missing: no limit";
        // The classifier's fixed-point figure is off by up to a part in 10^12.
        let rate = gauge(|s| Some(s.rate_bit_s?.round() / 8.0));
        out.gauges("link_rate_bytes_per_second", help, None, rate)?;
        let help = "Time until the last packet of the queue has left the wire; missing: several queues (per, a matrix)";
        let backlog = gauge(|s| Some(s.backlog_ns? as f64 / 1e9));
        out.gauges("link_backlog", help, Some(Unit::Seconds), backlog)?;
        let help =
            "Bytes in the queue; missing: no limit, several queues, or opportunities of a trace";
        let bytes = gauge(|s| Some(s.backlog_bytes? as f64));
        out.gauges("link_backlog", help, Some(Unit::Bytes), bytes)?;
        let help = "1: the link is up, 0: its state is down, every packet is lost";
        let up = gauge(|s| Some(if s.down { 0.0 } else { 1.0 }));
        out.gauges("link_up", help, None, up)
    }

    /// Writes the counters of packets that the link did not send as usual.
    fn causes(&self, out: &mut Families) -> fmt::Result {
        type Cause = (&'static str, fn(&Counters) -> u64);
        let lost: [Cause; 2] = [("loss", |c| c.lost), ("down", |c| c.down)];
        let dropped: [Cause; 3] = [
            ("queue", |c| c.queue_dropped),
            ("aqm", |c| c.aqm_dropped.all()),
            ("class", |c| c.class_dropped),
        ];
        let passed: [Cause; 6] = [
            ("neighbour", |c| c.passed.neighbour),
            ("not_ip", |c| c.passed.not_ip),
            ("no_holder", |c| c.passed.no_holder),
            ("not_active", |c| c.passed.not_active),
            ("failed", |c| c.passed.failed),
            ("rule", |c| c.passed.rule),
        ];
        let families: [(_, _, &[Cause]); 3] = [
            (
                "link_lost_packets",
                "Packets lost by the loss model, or because the link was down",
                &lost,
            ),
            (
                "link_dropped_packets",
                "Packets dropped because the queue was full, by its manager, or by the class in which they waited",
                &dropped,
            ),
            (
                "link_passed_packets",
                "Packets passed without emulation",
                &passed,
            ),
        ];
        for (name, help, causes) in families {
            let values = self.each_stream().flat_map(|each| {
                (causes.iter()).map(move |(cause, of)| {
                    (
                        with::<5, 6>(of_stream(each), "cause", cause),
                        of(&each.2.counters),
                    )
                })
            });
            out.counters(name, help, None, values)?;
        }
        Ok(())
    }

    fn directions(&self, out: &mut Families) -> fmt::Result {
        let help = "Packets dropped where they wait, by the host and not by the link";
        let dropped = self.each_direction().filter_map(|each| {
            let held = each.1.holder.as_ref().map_or(0, |holder| holder.dropped);
            Some((of_direction(each), each.1.engine_dropped? + held))
        });
        out.counters("engine_dropped_packets", help, None, dropped)?;
        let held = || {
            let directions = self.each_direction();
            directions.filter_map(|each| Some((of_direction(each), each.1.holder.as_ref()?)))
        };
        let help = "1: the holder of the direction answers; 0: packets pass without emulation";
        let alive = held().map(|(labels, h)| (labels, if h.alive { 1.0 } else { 0.0 }));
        out.gauges("holder_up", help, None, alive)?;
        let mut counters = |name, help, of: fn(&Holder) -> u64| {
            out.counters(name, help, None, held().map(|(labels, h)| (labels, of(h))))
        };
        let help = "Packets that the holder sent";
        counters("holder_released_packets", help, |h| h.released)?;
        let help = "Packets that the holder sent more than 1 ms after their departure time";
        counters("holder_late_packets", help, |h| h.late)?;
        let help = "Packets that the holder read after their bottleneck had decided on later ones";
        counters("holder_disordered_packets", help, |h| h.disordered)?;
        let help = "Largest lateness since attach";
        let worst = held().map(|(labels, h)| (labels, h.worst_late_ns as f64 / 1e9));
        out.gauges("holder_worst_lateness", help, Some(Unit::Seconds), worst)?;
        let help = "Packets that the holder holds";
        let waiting = held().map(|(labels, h)| (labels, h.waiting as f64));
        out.gauges("holder_waiting_packets", help, None, waiting)
    }

    fn classes(&self, out: &mut Families) -> fmt::Result {
        let mut counters = |name, help, unit, of: fn(&ClassReport) -> u64| {
            let values = self.each_class();
            out.counters(
                name,
                help,
                unit,
                values.map(|each| (of_class(each), of(each.2))),
            )
        };
        let help = "Packets that a class of a bottleneck sent";
        counters("class_sent_packets", help, None, |c| c.sent_packets)?;
        let help = "Bytes on the wire that a class of a bottleneck sent";
        counters("class_sent", help, Some(Unit::Bytes), |c| c.sent_bytes)?;
        let help = "Packets that a class of a bottleneck marked \"congestion experienced\"";
        counters("class_marked_packets", help, None, |c| c.marked)?;
        let dropped = self.each_class().flat_map(|each| {
            let (full, expired, aqm) = (
                each.2.dropped_full,
                each.2.dropped_expired,
                each.2.dropped_aqm,
            );
            let causes = [("queue", full), ("expired", expired), ("aqm", aqm)];
            causes.map(|(cause, n)| (with::<5, 6>(of_class(each), "cause", cause), n))
        });
        let help = "Packets that a class of a bottleneck dropped";
        out.counters("class_dropped_packets", help, None, dropped)?;
        let waited = self
            .each_class()
            .map(|each| (of_class(each), each.2.wait_ns as f64 / 1e9));
        let help = "Time from arrival to transmission, of all packets that the class sent";
        out.totals("class_wait", help, Unit::Seconds, waited)?;
        let mut gauges = |name, help, unit, of: fn(&ClassReport) -> f64| {
            let values = self.each_class();
            out.gauges(
                name,
                help,
                unit,
                values.map(|each| (of_class(each), of(each.2))),
            )
        };
        let help = "Longest time from arrival to transmission since attach";
        gauges("class_longest_wait", help, Some(Unit::Seconds), |c| {
            c.longest_wait_ns as f64 / 1e9
        })?;
        let help = "Packets that wait in a class of a bottleneck";
        gauges("class_backlog_packets", help, None, |c| {
            c.backlog_packets as f64
        })?;
        let help = "Bytes that wait in a class of a bottleneck";
        gauges("class_backlog", help, Some(Unit::Bytes), |c| {
            c.backlog_bytes as f64
        })
    }
}

/// Returns the sum in s, packets, and packets by bound in s.
fn histogram(counters: &Counters) -> (f64, u64, Vec<(f64, u64)>) {
    let mut buckets: Vec<(f64, u64)> = BOUNDS_LOG2
        .map(|log2| ((1u64 << log2) as f64 / 1e9, 0))
        .chain([(f64::INFINITY, 0)])
        .collect();
    let mut packets = 0;
    for bucket in &counters.delay_histogram {
        packets += bucket.packets;
        let bound = (bucket.to_ns.next_power_of_two().ilog2())
            .clamp(*BOUNDS_LOG2.start(), 1 + BOUNDS_LOG2.end());
        buckets[(bound - BOUNDS_LOG2.start()) as usize].1 += bucket.packets;
    }
    let delays = Delays::counted(counters.delay_histogram.clone(), counters.delay_ns);
    (delays.sum_ns() / 1e9, packets, buckets)
}

/// The classifier's first octave has steps of one unit, so every bound is the end of a class.
const _: () = assert!(*BOUNDS_LOG2.start() > EMUD_HIST_UNIT + 4);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::datapath::show::service::BottleneckReport;
    use crate::datapath::survey::made_up::snapshot;
    use crate::metrics::{Format, exposition, registry};

    /// All values differ, and classes with classes below them have no lines.
    #[test]
    fn figures_of_a_class_are_those_of_show() {
        let class = |name: &str, queue| ClassReport {
            name: Some(name.to_owned()),
            parent: None,
            priority: 1,
            weight: 2,
            rate_bit_s: None,
            ceil_bit_s: None,
            queue,
            sent_packets: 3,
            sent_bytes: 4,
            mean_rate_bit_s: 5,
            dropped_full: 6,
            dropped_expired: 7,
            dropped_aqm: 8,
            marked: 9,
            wait_ns: 1_000_000_010,
            mean_wait_ns: Some(11),
            longest_wait_ns: 2_000_000_012,
            backlog_packets: 13,
            backlog_bytes: 14,
        };
        let leaf = class("leaf", Some("50p".to_owned()));
        let shown = serde_json::to_value(&leaf).unwrap();
        let mut all = snapshot(0, 1);
        all.links[0].bottlenecks = vec![BottleneckReport {
            name: "b".to_owned(),
            rate_bit_s: 15,
            schedule: "htb",
            classes: vec![class("inner", None), leaf],
        }];
        let mut registry = registry();
        register(&mut registry, all);
        let text = exposition(&registry, Format::Prometheus).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("emud_class_"));
        let found: Vec<_> = lines.filter_map(|line| line.rsplit_once(' ')).collect();
        let expected = [
            ("sent_packets_total", "", "sent_packets", 1.0),
            ("sent_bytes_total", "", "sent_bytes", 1.0),
            ("marked_packets_total", "", "marked", 1.0),
            ("dropped_packets_total", "queue", "dropped_full", 1.0),
            ("dropped_packets_total", "expired", "dropped_expired", 1.0),
            ("dropped_packets_total", "aqm", "dropped_aqm", 1.0),
            ("wait_seconds_total", "", "wait_ns", 1e9),
            ("longest_wait_seconds", "", "longest_wait_ns", 1e9),
            ("backlog_packets", "", "backlog_packets", 1.0),
            ("backlog_bytes", "", "backlog_bytes", 1.0),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (name, cause, key, unit) in expected {
            let cause = match cause {
                "" => String::new(),
                cause => format!(",cause=\"{cause}\""),
            };
            let labels = "netns=\"\",interface=\"v0\",bottleneck=\"b\",class=\"leaf\"";
            let name = format!("emud_class_{name}{{{labels}{cause}}}");
            let value = found.iter().find(|(other, _)| *other == name);
            let value: f64 = value
                .unwrap_or_else(|| panic!("{name}: {text}"))
                .1
                .parse()
                .unwrap();
            assert_eq!(Some((value * unit).round()), shown[key].as_f64(), "{name}");
        }
        assert_eq!(shown["name"], Value::from("leaf"));
    }
}
