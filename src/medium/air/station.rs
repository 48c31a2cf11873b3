// SPDX-License-Identifier: MIT OR Apache-2.0
//! A station: its queue, its contention, and what it is doing.

use super::Plan;
use super::frame::To;
use super::queue::Queue;
use super::rate::Fallback;

/// What a station has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Accesses to the medium, each with an RTS or a data frame.
    pub attempts: u64,
    /// Packets that were acknowledged, or broadcast, and their bytes.
    pub sent: u64,
    /// Bytes of packets that were acknowledged, or broadcast.
    pub sent_bytes: u64,
    /// Attempts without an answer.
    pub failed: u64,
    /// RTS and unicast data that their receiver, in range, has not decoded because of others'
    /// transmissions or its own.
    pub collided: u64,
    /// Those that had bit errors there.
    pub damaged: u64,
    /// Packets dropped after the last attempt.
    pub given_up: u64,
    /// Packets that found the queue full.
    pub full: u64,
    /// Packets that the manager of the queue dropped.
    pub managed: u64,
    /// Packets received, without duplicates.
    pub received: u64,
    /// Bytes of packets received, without duplicates.
    pub received_bytes: u64,
    /// Duplicates received, after a lost acknowledgement.
    pub duplicates: u64,
    /// Time in transmission, answers included, ns.
    pub air_ns: u64,
    /// Time with a carrier, its own included, ns.
    pub busy_ns: u64,
    /// Packets in the queue now.
    pub waiting: u64,
}

/// A frame on air.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rts,
    Cts,
    Data,
    Ack,
}

/// A frame to be sent, or on air.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transmission {
    pub kind: Kind,
    pub to: To,
    pub mode: usize,
    pub octets: u32,
    pub lasts_ns: u64,
    /// How long others keep quiet behind it.
    pub reserves_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Doing {
    /// It has no timer, but may be counting its backoff down.
    Listening,
    Sending(Transmission),
    /// This answer has not begun yet.
    Awaiting(Kind),
    /// SIFS before a CTS, an ACK, or the data behind a CTS.
    Answering(Transmission),
}

#[derive(Debug)]
pub(super) struct Station<T> {
    pub queue: Queue<T>,
    pub doing: Doing,
    /// Of unicast data, unless it depends on the receiver.
    pub mode: usize,
    /// Of each receiver, with rate control by results.
    pub fallbacks: Vec<Fallback>,
    pub window: u32,
    /// Attempts of the first packet so far.
    pub tries: u32,
    /// Backoffs drawn, and frames checked for bit errors.
    pub backoffs: u64,
    pub checks: u64,
    /// The last packet overheard of each station, if promiscuous.
    pub overheard: Vec<u64>,
    pub count: Count,
}

impl<T> Station<T> {
    pub fn new(mode: usize, fallbacks: Vec<Fallback>, queue: Queue<T>, plan: &Plan) -> Self {
        Self {
            queue,
            doing: Doing::Listening,
            mode,
            fallbacks,
            window: plan.timing.cw_min,
            tries: 0,
            backoffs: 0,
            checks: 0,
            overheard: Vec::new(),
            count: Count::default(),
        }
    }
}
