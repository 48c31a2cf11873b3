// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of a link in one direction.

use schemars::JsonSchema;
use serde::Serialize;

use crate::abi;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::stage::aqm::AqmDropped;
use crate::histogram::{self, Bucket, DelayGiven, Delays};

/// Packets are wire packets: a super-packet counts for those in it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Counters {
    /// Packets that reached the link.
    pub packets: u64,
    /// Bytes of these packets, without overhead.
    pub bytes: u64,
    /// Packets lost by the loss model. This and what follows of packets that wait in a class of a
    /// bottleneck counts when it has sent or dropped them, as the holder reported it last (every 50 ms):
    /// `class_dropped`, `sent_packets`, `sent_bytes`, `duplicated`, `corrupted`, `reset`.
    pub lost: u64,
    /// Packets dropped because the queue was full.
    pub queue_dropped: u64,
    /// Packets dropped by AQM with space in the queue.
    pub aqm_dropped: AqmDropped,
    /// Packets dropped by the class of a bottleneck in which they waited, which counts them by cause.
    pub class_dropped: u64,
    /// Packets marked "congestion experienced" by the queue, including those that were marked
    /// already.
    pub marked: u64,
    /// Packets that departed before an earlier packet.
    pub reordered: u64,
    /// Packets with a longer delay, so that they do not overtake an earlier packet.
    pub held_back: u64,
    /// Offload packets that were treated as one. Counts them, not the wire packets in them.
    pub super_packets: u64,
    /// Flows whose packet number was dropped, because there were too many flows.
    pub flows_forgotten: u64,
    /// Packets sent without delay: not in the delayed share, or reordered on purpose.
    pub undelayed: u64,
    /// Packets passed untouched, by reason.
    pub passed: Passed,
    /// Packets that the link sent on: those that it did not lose, drop or pass untouched, without copies.
    pub sent_packets: u64,
    /// Bytes of these packets, without overhead.
    pub sent_bytes: u64,
    /// Sum of departure - arrival over packets with a departure time, ns, modulo 2^64: for differences.
    #[serde(skip)]
    pub delay_ns: u64,
    /// Delay assigned to packets (departure minus arrival); null: no packet.
    pub delay_given: Option<DelayGiven>,
    /// Packets by assigned delay, ascending, without empty buckets.
    pub delay_histogram: Vec<Bucket>,
    /// Packets lost because the link was down.
    pub down: u64,
    /// Copies of packets.
    pub duplicated: u64,
    /// Packets that were damaged.
    pub corrupted: u64,
    /// TCP packets that became a reset.
    pub reset: u64,
    /// Packets that were to be copied, damaged or reset and could not be.
    pub unaltered: u64,
}

/// Packets passed untouched, by reason.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Passed {
    /// ARP, neighbour discovery, PTP event messages.
    pub neighbour: u64,
    /// Protocols other than IP, which this engine cannot delay here, or on egress only with the sender's socket,
    /// which may slow the sender down.
    pub not_ip: u64,
    /// The holder did not renew its lease.
    pub no_holder: u64,
    /// During attach or detach.
    pub not_active: u64,
    /// The kernel failed to redirect the packet.
    pub failed: u64,
    /// By a rule whose link is `none`.
    pub rule: u64,
}

/// Reads the counters of a direction of a link, by the link's number.
pub(crate) fn counters_of(
    maps: &Maps,
    number: u32,
    direction: u32,
) -> Result<Counters, DatapathError> {
    // In this order: no packet has left its class that has not arrived.
    let served = maps.served_of(number, direction)?;
    Ok(counters(&*maps.counters_of(number, direction)?, &served))
}

impl Counters {
    /// Returns the packets that the queue, its manager or a class dropped.
    pub fn dropped(&self) -> u64 {
        self.queue_dropped + self.aqm_dropped.all() + self.class_dropped
    }
}

pub(crate) fn counters(c: &abi::emud_counters, served: &abi::emud_served) -> Counters {
    let passed = |why: abi::emud_pass| c.passed[why as usize];
    let delays = Delays::counted(histogram::buckets(&c.delay_hist), c.delay_ns);
    let departed: u64 = c.delay_hist.iter().sum();
    Counters {
        packets: c.packets + c.preempting,
        bytes: c.bytes + c.preempting_bytes,
        lost: c.lost + served.lost,
        queue_dropped: c.queue_dropped,
        aqm_dropped: AqmDropped::of(c),
        class_dropped: served.dropped,
        marked: c.marked,
        reordered: c.reordered,
        held_back: c.clamped,
        super_packets: c.super_packets,
        flows_forgotten: c.flows_forgotten,
        undelayed: c.undelayed,
        passed: Passed {
            neighbour: passed(abi::EMUD_PASS_NEIGHBOUR),
            not_ip: passed(abi::EMUD_PASS_NOT_IP),
            no_holder: passed(abi::EMUD_PASS_NO_HOLDER),
            not_active: passed(abi::EMUD_PASS_INACTIVE),
            failed: passed(abi::EMUD_PASS_FAILED) + c.preempting,
            rule: passed(abi::EMUD_PASS_RULE),
        },
        sent_packets: departed.saturating_sub(c.classed) + served.sent_packets,
        sent_bytes: c.sent_bytes + served.sent_bytes,
        delay_ns: c.delay_ns,
        delay_given: delays.given(),
        delay_histogram: delays.buckets().to_vec(),
        down: c.down,
        duplicated: c.duplicated + served.duplicated,
        corrupted: c.corrupted + served.corrupted,
        reset: c.reset + served.reset,
        unaltered: c.unaltered,
    }
}
