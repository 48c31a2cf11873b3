// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a run about what its links counted in an interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares counters, each a `u64`, with their difference and their sum.
macro_rules! counters {
    ($(#[$attr:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// Returns what was counted since `before`.
            pub fn since(&self, before: &Self) -> Self {
                Self { $($field: self.$field.saturating_sub(before.$field),)* }
            }

            /// Returns the sum of both.
            pub fn plus(&self, other: &Self) -> Self {
                Self { $($field: self.$field.saturating_add(other.$field),)* }
            }
        }
    };
}
pub(super) use counters;

/// Counters of one direction of a link over an interval that ends at `mono_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// End of the interval in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Name of the link.
    #[schemars(length(min = 1))]
    pub link: String,
    /// "up" is what the interface sends, "down" what it receives.
    #[schemars(extend("enum" = ["up", "down"]))]
    pub direction: String,
    /// Named link to which rules of the profile send packets; null: the link itself, without packets of
    /// named links.
    pub class: Option<String>,
    /// Length of the interval in ns.
    pub interval_ns: u64,
    /// Counters of the interval.
    #[serde(flatten)]
    pub counted: Counted,
    /// Bytes in the queue at the end of the interval; null: the link has no queue or several (`per`, a matrix), or
    /// opportunities of a trace decide how long it lasts.
    pub backlog_bytes: Option<u64>,
    /// Mean rate of the link's trace over the interval in bit/s; null: no trace, or one without a
    /// limit.
    #[serde(default)]
    pub capacity_bit_s: Option<u64>,
    /// Delays of the packets of the interval; null: no packet.
    pub delay: Option<DelaySample>,
}

counters! {
    /// Counters of one direction of a link. Packets are wire packets.
    pub struct Counted {
        /// Packets that reached the link.
        packets,
        /// Bytes of these packets.
        bytes,
        /// Packets that the link passed.
        passed_packets,
        /// Bytes of these packets.
        passed_bytes,
        /// Packets that were lost on the wire.
        lost,
        /// Packets that the queue dropped, including AQM, or the class in which they waited.
        dropped,
        /// Packets that ECN marked.
        marked,
        /// Copies of packets.
        duplicated,
        /// Packets that were damaged.
        corrupted,
        /// TCP packets that became a reset.
        #[serde(default)]
        reset,
        /// Packets that passed without emulation: no lease, or not parsable.
        untouched,
        /// Packets that the engine sent more than 1 ms after their departure time.
        late,
        /// Packets that the engine dropped.
        engine_dropped,
    }
}

/// A class of a bottleneck over an interval that ends at `mono_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassSample {
    /// End of the interval in ns of CLOCK_MONOTONIC. The engine's account is up to 50 ms older.
    pub mono_ns: u64,
    /// Name of the link.
    #[schemars(length(min = 1))]
    pub link: String,
    /// Name of the bottleneck.
    #[schemars(length(min = 1))]
    pub bottleneck: String,
    /// Name of the class; null: the bottleneck has no classes.
    pub class: Option<String>,
    /// Length of the interval in ns.
    pub interval_ns: u64,
    /// Counts of the class in the interval.
    #[serde(flatten)]
    pub counted: ClassCounted,
    /// Packets that wait at the end of the interval.
    pub backlog_packets: u64,
    /// Bytes of these packets.
    pub backlog_bytes: u64,
}

counters! {
    /// Counters of a class of a bottleneck.
    pub struct ClassCounted {
        /// Packets that the server sent.
        sent_packets,
        /// Bytes of these packets on the wire.
        sent_bytes,
        /// Packets among them that were marked (ECN).
        marked,
        /// Packets that found the queue full.
        dropped_full,
        /// Packets that waited for too long.
        dropped_expired,
        /// Packets that the queue's manager dropped.
        dropped_aqm,
        /// Time from arrival to transmission of all packets that were sent, in ns.
        wait_ns,
    }
}

impl ClassCounted {
    /// Returns the packets that were dropped, whatever the cause.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_expired + self.dropped_aqm
    }
}

/// Delays that the link assigned to the packets of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelaySample {
    /// Mean in ns, exact.
    pub mean_ns: u64,
    /// Histogram: pairs of a bucket and its packets, in ascending order, without empty buckets. Below
    /// 32, bucket b has the delays from b to b + 1 units of 1024 ns. Above, it has those from s * 2^o
    /// to (s + 1) * 2^o units, where o = floor(b / 16) - 1 and s = b - 16 * o. Quantiles of several
    /// samples follow from the sum of their histograms.
    pub buckets: Vec<[u64; 2]>,
}
