// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bottlenecks in force and what their classes have done.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::abi;
use crate::datapath::maps::{DatapathError, Maps};
use crate::profile::{Bottleneck, Profile, Queue, Rate, ServiceClass, Time, Word};

/// A bottleneck in force and the counts of its classes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BottleneckReport {
    /// Name of the bottleneck.
    pub name: String,
    /// Rate of the server.
    pub rate_bit_s: u64,
    /// `fifo`, `priority`, `drr` or `htb`.
    pub schedule: &'static str,
    /// Its classes; one without a name if it has none.
    pub classes: Vec<ClassReport>,
}

/// A class of it, as the holder reported it last (every 50 ms).
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClassReport {
    /// Absent: the bottleneck has no classes, and this is all of it.
    pub name: Option<String>,
    /// The class above it; absent: the bottleneck itself.
    pub parent: Option<String>,
    /// 0 is served first.
    pub priority: u32,
    /// Share of what classes of the same priority get.
    pub weight: u32,
    /// Guaranteed rate, with `htb`.
    pub rate_bit_s: Option<u64>,
    /// The most that it may borrow up to; absent: all of the bottleneck.
    pub ceil_bit_s: Option<u64>,
    /// As the key `queue` is written; null: packets wait in the classes below.
    pub queue: Option<String>,
    /// Packets sent on the wire since attach.
    pub sent_packets: u64,
    /// Bytes sent on the wire since attach.
    pub sent_bytes: u64,
    /// Measured: these bits over the time since attach; for a shorter time take the difference of two reports.
    pub mean_rate_bit_s: u64,
    /// Dropped because the queue was full in packets or bytes.
    pub dropped_full: u64,
    /// Dropped because they would have waited for longer than the queue's time.
    pub dropped_expired: u64,
    /// Dropped by the queue's manager.
    pub dropped_aqm: u64,
    /// Of the packets sent, those marked instead of dropped, or above the threshold.
    pub marked: u64,
    /// Time from arrival to transmission of all packets that were sent.
    pub wait_ns: u64,
    /// Of the packets sent, from arrival to transmission; absent: none was sent.
    pub mean_wait_ns: Option<u64>,
    /// The longest time from arrival to transmission.
    pub longest_wait_ns: u64,
    /// Packets that wait in the queue now.
    pub backlog_packets: u64,
    /// Bytes of these packets.
    pub backlog_bytes: u64,
}

/// Reads the bottlenecks of a profile that was attached this long ago.
pub(crate) fn bottlenecks(
    maps: &Maps,
    profile: Option<&Profile>,
    attached_ns: u64,
) -> Result<Vec<BottleneckReport>, DatapathError> {
    let mut number = 0;
    let mut count = || {
        number += 1;
        maps.class(number)
    };
    let one = |bottleneck: &Bottleneck| {
        let classes = match bottleneck.classes.is_empty() {
            true => vec![class(None, Some(&bottleneck.queue), count()?, attached_ns)],
            false => (bottleneck.classes.iter())
                .map(|of| {
                    let queue = (!bottleneck.is_inner(&of.name)).then_some(&of.queue);
                    Ok(class(Some(of), queue, count()?, attached_ns))
                })
                .collect::<Result<_, DatapathError>>()?,
        };
        Ok(BottleneckReport {
            name: bottleneck.name.clone(),
            rate_bit_s: bottleneck.rate.unwrap_or(0),
            schedule: bottleneck.schedule.word(),
            classes,
        })
    };
    let all = profile.map_or(&[][..], |profile| &profile.bottlenecks);
    all.iter().map(one).collect()
}

fn class(
    of: Option<&ServiceClass>,
    queue: Option<&Queue>,
    count: abi::emud_class,
    attached_ns: u64,
) -> ClassReport {
    let in_force = |queue: &Queue| Queue {
        packets: Some(queue.limit_packets()).filter(|packets| *packets > 0),
        ..*queue
    };
    ClassReport {
        queue: queue.map(|queue| in_force(queue).to_string().trim_matches('"').to_owned()),
        name: of.map(|class| class.name.clone()),
        parent: of.and_then(|class| class.parent.clone()),
        priority: of.map_or(0, |class| class.priority),
        weight: of.map_or(1, |class| class.weight),
        rate_bit_s: of.and_then(|class| class.rate),
        ceil_bit_s: of.and_then(|class| class.ceil),
        sent_packets: count.sent_packets,
        sent_bytes: count.sent_bytes,
        mean_rate_bit_s: match attached_ns {
            0 => 0,
            ns => (count.sent_bytes as f64 * 8e9 / ns as f64) as u64,
        },
        dropped_full: count.full,
        dropped_expired: count.expired,
        dropped_aqm: count.managed,
        marked: count.marked,
        wait_ns: count.wait_ns,
        mean_wait_ns: count.wait_ns.checked_div(count.sent_packets),
        longest_wait_ns: count.longest_wait_ns,
        backlog_packets: count.backlog_packets,
        backlog_bytes: count.backlog_bytes,
    }
}

impl BottleneckReport {
    /// Returns how long the server needs for what waits.
    pub fn backlog_ns(&self) -> u64 {
        let waits = |class: &ClassReport| class.queue.is_some().then_some(class.backlog_bytes);
        let bytes: u64 = self.classes.iter().filter_map(waits).sum();
        (bytes as f64 * 8e9 / self.rate_bit_s.max(1) as f64) as u64
    }

    /// As lines of text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let (rate, schedule) = (Rate(self.rate_bit_s), self.schedule);
        let _ = writeln!(out, "  bottleneck {}: rate {rate}, {schedule}", self.name);
        for class in &self.classes {
            class.write(&mut out, self.schedule);
        }
        out
    }
}

impl ClassReport {
    fn write(&self, out: &mut String, schedule: &str) {
        let mut figures = Vec::new();
        if ["priority", "htb"].contains(&schedule) {
            figures.push(format!("priority {}", self.priority));
        }
        let is_by_weight = schedule == "htb" && self.rate_bit_s.is_none();
        if is_by_weight || ["priority", "drr"].contains(&schedule) {
            figures.push(format!("weight {}", self.weight));
        }
        figures.extend(self.rate_bit_s.map(|rate| format!("rate {}", Rate(rate))));
        figures.extend(self.ceil_bit_s.map(|ceil| format!("ceil {}", Rate(ceil))));
        figures.extend(self.parent.as_ref().map(|parent| format!("below {parent}")));
        if let Some(name) = &self.name {
            let figures = match figures.is_empty() {
                true => String::new(),
                false => format!(": {}", figures.join(", ")),
            };
            let _ = writeln!(out, "    class {name}{figures}");
        }
        if let Some(queue) = &self.queue {
            let _ = writeln!(out, "      queue {queue}");
        }
        let wait = match self.mean_wait_ns {
            None => String::new(),
            Some(mean) => format!(
                ", waited {} on average, {} at most",
                Time(mean),
                Time(self.longest_wait_ns)
            ),
        };
        let _ = writeln!(
            out,
            "      sent {} packets ({} bytes), {} on average since attach, {} marked{wait}",
            self.sent_packets,
            self.sent_bytes,
            Rate(self.mean_rate_bit_s),
            self.marked
        );
        let _ = writeln!(
            out,
            "      dropped {} (queue full), {} (waited too long), {} (aqm); backlog {} packets ({} bytes)",
            self.dropped_full,
            self.dropped_expired,
            self.dropped_aqm,
            self.backlog_packets,
            self.backlog_bytes
        );
    }
}
