// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a class of a bottleneck did in the measured phase.

use emud_monitor::log::{ClassCounted, ClassSample};

use super::totals::{fingerprint, of_class};

/// Samples of a class, added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassTrack {
    /// Name of the link.
    pub link: String,
    /// Name of the bottleneck.
    pub bottleneck: String,
    /// Name of the class; `None`: the bottleneck has no classes.
    pub class: Option<String>,
    /// Length of all intervals together.
    pub interval_ns: u64,
    /// Sum of the samples' counts.
    pub counted: ClassCounted,
    /// The largest at the end of an interval.
    pub backlog_bytes: u64,
    /// Hash of the counters of its samples, in order.
    pub(crate) fingerprint: u64,
}

impl ClassTrack {
    pub(crate) fn of(sample: &ClassSample) -> Self {
        Self {
            link: sample.link.clone(),
            bottleneck: sample.bottleneck.clone(),
            class: sample.class.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn is_of(&self, sample: &ClassSample) -> bool {
        (&self.link, &self.bottleneck, &self.class)
            == (&sample.link, &sample.bottleneck, &sample.class)
    }

    pub(crate) fn add(&mut self, sample: &ClassSample) {
        self.interval_ns = self.interval_ns.saturating_add(sample.interval_ns);
        self.counted = self.counted.plus(&sample.counted);
        self.fingerprint = fingerprint(self.fingerprint, &of_class(&sample.counted));
        self.backlog_bytes = self.backlog_bytes.max(sample.backlog_bytes);
    }

    /// Returns bottleneck and class, such as "uplink.voice".
    pub fn name(&self) -> String {
        match &self.class {
            Some(class) => format!("{}.{class}", self.bottleneck),
            None => self.bottleneck.clone(),
        }
    }

    /// Returns the bit/s sent on the wire; `None`: no time.
    pub fn throughput_bit_s(&self) -> Option<f64> {
        let bits = self.counted.sent_bytes as f64 * 8.0;
        (self.interval_ns > 0).then(|| bits * 1e9 / self.interval_ns as f64)
    }

    /// Returns the mean time from arrival to transmission in ns; `None`: no packet was sent.
    pub fn mean_wait_ns(&self) -> Option<f64> {
        let sent = self.counted.sent_packets;
        (sent > 0).then(|| self.counted.wait_ns as f64 / sent as f64)
    }

    /// Returns the share dropped of all packets that were sent or dropped; `None`: there were none.
    pub fn drop_share(&self) -> Option<f64> {
        let all = self.counted.sent_packets + self.counted.dropped();
        (all > 0).then(|| self.counted.dropped() as f64 / all as f64)
    }
}
