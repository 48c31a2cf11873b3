// SPDX-License-Identifier: MIT OR Apache-2.0
//! The link of one direction as netem options.

use crate::convert::netem::{NO_LIMIT, USUAL_LIMIT, on_their_way};
use crate::profile::{
    Aqm, Cells, Delay, Link, LinkState, Loss, Neighbours, PACKET_BYTES, Profile, Queue, Slot, Time,
    TraceSource, Wire, figures, over_time,
};

/// The options so far.
#[derive(Default)]
pub(crate) struct Options {
    pub words: Vec<String>,
    pub notes: Vec<String>,
    pub differences: Vec<String>,
}

impl Options {
    pub fn add(&mut self, words: impl Into<String>) {
        self.words.push(words.into());
    }

    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Adds a property that netem does not support.
    pub fn differ(&mut self, text: impl Into<String>) {
        self.differences.push(text.into());
    }

    pub fn command(&self) -> String {
        let mut words = vec!["netem"];
        words.extend(self.words.iter().map(String::as_str));
        words.join(" ")
    }

    /// Replaces a trace with its means over time.
    pub fn over_time(&mut self, profile: &Profile, direction: u32) -> Option<Link> {
        let own = profile.direction(direction);
        let trace = own.trace.as_ref()?;
        self.differ("`trace`: netem has none; rate, delay and loss are the means over its time");
        let all = figures(trace);
        let end_s = all.period_ns as f64 / 1e9;
        let delay_ns = mean(&over_time::means(profile, direction), end_s).round() as u64;
        let losses = over_time::losses(profile, direction, PACKET_BYTES);
        let lossy = matches!(&trace.source, TraceSource::Rows { rows, .. }
            if rows.iter().any(|row| row.loss.is_some()));
        Some(Link {
            rate: trace.has_rate().then(|| all.mean_rate.max(8)).or(own.rate),
            delay: Delay {
                mean_ns: delay_ns,
                ..own.delay.clone()
            },
            loss: match lossy {
                true => Loss {
                    model: Loss::from(mean(&losses, end_s)).model,
                    ..own.loss.clone()
                },
                false => own.loss.clone(),
            },
            trace: None,
            ..own.clone()
        })
    }

    pub fn link(&mut self, link: &Link, seed: Option<u64>) {
        let Link {
            rate,
            overhead,
            wire,
            queue,
            delay,
            loss,
            neighbours,
            reorder,
            duplicate,
            corrupt,
            reset,
            state,
            shared,
            // A phase has no trace.
            trace: _,
            slot,
            background,
            // Of a bottleneck, which is said once for all links.
            class: _,
        } = link;
        if background.is_some() {
            self.differ("`background`: netem has none; the link is for its packets alone");
        }
        if shared.is_some() {
            self.differ("`shared`: every netem has a separate queue");
        }
        let rate = rate.map(|bits| self.rate(bits, *overhead, wire));
        self.delay(delay, rate.is_some());
        self.loss(loss, rate.is_some());
        self.duplicate(duplicate, loss, rate.is_some());
        self.corrupt(corrupt);
        if *reset > 0.0 {
            self.differ("`reset`: netem resets no connections");
        }
        if let Some(reorder) = reorder {
            self.reorder(reorder, delay, rate.is_some());
        }
        if let Some(slot) = slot {
            self.slot(slot);
        }
        match state {
            // A netem without room for a packet.
            LinkState::Down => self.add("limit 0"),
            LinkState::Up => self.limit(queue, rate, delay),
        }
        if let Some(seed) = seed {
            self.note("the same seed repeats netem's own decisions, not emud's");
            self.add(format!("seed {seed}"));
        }
        if *neighbours == Neighbours::Pass && !self.words.is_empty() {
            self.note("netem also delays and loses ARP and neighbour discovery");
        }
    }

    /// Writes `rate RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`; returns netem's rate.
    fn rate(&mut self, bits: u64, overhead: i32, wire: &Wire) -> u64 {
        let Wire { burst, mpu, cells } = wire;
        if burst.is_some() {
            self.differ("`rate.burst`: netem's rate has no burst");
        }
        if *mpu != 0 {
            self.differ("`rate.mpu`: netem has no minimum packet size");
        }
        let whole = (bits / 8).max(1) * 8;
        if whole != bits {
            self.differ(format!(
                "a rate of {bits} bit/s: netem's are whole bytes a second, so this is {whole} bit/s"
            ));
        }
        let cell = match cells {
            None => None,
            Some(Cells::Ptm) => {
                self.differ("cell = \"ptm\": netem fills the last cell; the option is left out");
                None
            }
            Some(cells) => Some((cells.size(), cells.overhead())),
        };
        let mut words = format!("rate {whole}bit");
        if overhead != 0 || cell.is_some() {
            words += &format!(" {overhead}");
        }
        if let Some((size, overhead)) = cell {
            words += &format!(" {size} {overhead}");
        }
        self.add(words);
        whole
    }

    /// Writes the limit: netem's includes packets in flight as well as waiting ones.
    fn limit(&mut self, queue: &Queue, rate: Option<u64>, delay: &Delay) {
        let Some(bits) = rate else {
            if *queue != Queue::default() {
                self.note("without a rate the queue has no effect and is left out");
            }
            if delay.mean_ns > 0 {
                self.note("the limit only avoids losses: netem's limit includes packets in flight");
                self.add(format!("limit {NO_LIMIT}"));
            }
            return;
        };
        let queued = self.queue(queue, bits);
        let on_their_way = on_their_way(bits, delay.mean_ns);
        if on_their_way > 0 {
            self.note(format!(
                "netem's limit includes packets in flight: {on_their_way} of {PACKET_BYTES} \
                 bytes are added to the queue's; shorter packets leave it less room"
            ));
        }
        let limit = u64::from(queued).saturating_add(on_their_way);
        let most = u64::from(u32::MAX);
        if limit > most {
            self.differ(format!(
                "{on_their_way} packets in flight: netem's maximum limit is {most}"
            ));
        }
        if limit != u64::from(USUAL_LIMIT) {
            self.add(format!("limit {}", limit.min(most)));
        }
    }

    /// Returns the length of the queue in packets.
    fn queue(&mut self, queue: &Queue, rate_bits: u64) -> u32 {
        let Queue {
            packets,
            bytes,
            time_ns,
            ecn_above_ns,
            aqm,
            // Of a class alone.
            blocks: _,
        } = queue;
        let of_bytes = |bytes: u64| (bytes / u64::from(PACKET_BYTES)).clamp(1, u32::MAX.into());
        let mut limits: Vec<_> = packets.iter().map(|n| u64::from(*n)).collect();
        if let Some(bytes) = bytes {
            limits.push(of_bytes(*bytes));
            let packets = of_bytes(*bytes);
            self.differ(format!(
                "a queue that is not in packets: its {bytes} bytes are {packets} packets here"
            ));
        }
        if let Some(ns) = time_ns {
            let bytes = u128::from(rate_bits) * u128::from(*ns) / 8_000_000_000;
            let packets = of_bytes(bytes.try_into().unwrap_or(u64::MAX));
            limits.push(packets);
            self.differ(format!(
                "`queue.time`: netem's limit counts packets; {} at this rate are {packets}",
                Time(*ns)
            ));
        }
        if ecn_above_ns.is_some() {
            self.differ("`queue.ecn`: netem does not mark packets because of their wait");
        }
        if let Some(aqm) = aqm {
            self.differ(format!("`queue.aqm`: netem has no AQM; {}", instead(aqm)));
        }
        let least = limits.into_iter().min();
        least.map_or(USUAL_LIMIT, |n| n.try_into().unwrap_or(u32::MAX))
    }

    /// Writes `slot MIN [MAX] [packets N] [bytes N]`.
    fn slot(&mut self, slot: &Slot) {
        let Slot {
            min_ns,
            max_ns,
            packets,
            bytes,
        } = slot;
        self.differ(
            "`slot`: a slot of netem begins some time after a packet that waits for it, emud's \
             follow one another by the clock",
        );
        let mut words = format!("slot {} {}", Time(*min_ns), Time(*max_ns));
        for (word, n) in [("packets", packets), ("bytes", bytes)] {
            if let Some(n) = n {
                words += &format!(" {word} {n}");
            }
        }
        self.add(words);
    }
}

/// Returns the mean of steps (s, value) up to `end_s` over time.
fn mean(steps: &[(f64, f64)], end_s: f64) -> f64 {
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([end_s]);
    let parts = steps
        .iter()
        .zip(ends)
        .map(|((at, value), end)| ((end - at).max(0.0), value));
    let (area, time) = parts.fold((0.0, 0.0), |(area, time), (for_s, value)| {
        (area + for_s * value, time + for_s)
    });
    match time > 0.0 {
        true => area / time,
        false => steps.first().map_or(0.0, |(_, value)| *value),
    }
}

/// Returns the qdisc of Linux that replaces a manager in the queue.
fn instead(aqm: &Aqm) -> &'static str {
    match aqm {
        Aqm::Red(_) => "put a `red` qdisc below it",
        Aqm::Ared(_) => "put a `red` qdisc with `adaptative` below it",
        Aqm::Rio(_) => "a `gred` qdisc with `grio` below it is the most similar",
        Aqm::CoDel(_) => "put a `codel` qdisc below it",
        Aqm::Pie(_) => "put a `pie` qdisc below it",
        Aqm::Pi(_) => "no qdisc is a PI controller of the length",
        Aqm::Rem(_) => "no qdisc is REM",
    }
}
