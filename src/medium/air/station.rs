// SPDX-License-Identifier: MIT OR Apache-2.0
//! A station: its queue, its contention, and what it is doing.

use super::frame::{Held, To};
use super::queue::Queue;
use super::rate::Rates;

/// Counts of a station so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Accesses to the medium, each with an RTS or a data frame.
    pub attempts: u64,
    /// Unicast data frames on air: an aggregate counts once, and so does each repetition.
    pub data_frames: u64,
    /// The sum of their rates, kbit/s.
    pub data_kbit_s: u64,
    /// Packets that were acknowledged, or broadcast, and their bytes.
    pub sent: u64,
    /// Bytes of packets that were acknowledged, or broadcast.
    pub sent_bytes: u64,
    /// Attempts without an answer.
    pub failed: u64,
    /// Those of them that another one of the same first packet follows.
    pub retried: u64,
    /// RTS and unicast data that their receiver, in range, has not decoded because of others'
    /// transmissions or its own.
    pub collided: u64,
    /// Those that had bit errors there, of an aggregate each packet.
    pub damaged: u64,
    /// Attempts that a more urgent category of the station made instead.
    pub internal: u64,
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

impl Count {
    /// Counts a data frame that goes on air.
    pub(super) fn data(&mut self, to: To, kbit: u32) {
        if to != To::All {
            self.data_frames += 1;
            self.data_kbit_s += u64::from(kbit);
        }
    }
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
    /// Of data: more than one are an aggregate.
    pub packets: u32,
    pub lasts_ns: u64,
    /// How long others keep quiet after it.
    pub reserves_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Doing {
    /// It has no timer, but may be counting its backoff down.
    Listening,
    Sending(Transmission),
    /// This answer has not begun yet.
    Awaiting(Kind),
    /// SIFS before a CTS, an ACK, or the data after a CTS.
    Answering(Transmission),
}

/// State of a station in an access category.
#[derive(Debug)]
pub(super) struct Lane<T> {
    pub queue: Queue<T>,
    /// What its receivers have, and do not pass on yet, in the order of sending.
    pub held: Vec<Held<T>>,
    pub window: u32,
}

#[derive(Debug)]
pub(super) struct Station<T> {
    /// One for each category.
    pub lanes: Vec<Lane<T>>,
    /// Which of them the exchange is of.
    pub lane: usize,
    /// The data of the exchange.
    pub data: Transmission,
    /// Until when the station may add others; 0: it may not.
    pub txop_end_ns: u64,
    pub doing: Doing,
    /// Of unicast data, unless it depends on the receiver.
    pub mode: usize,
    pub rates: Rates,
    /// Backoffs drawn, and frames checked for bit errors.
    pub backoffs: u64,
    pub checks: u64,
    pub count: Count,
}

impl<T> Station<T> {
    pub fn new(mode: usize, rates: Rates, lanes: Vec<Lane<T>>) -> Self {
        Self {
            lanes,
            lane: 0,
            data: Transmission {
                kind: Kind::Data,
                to: To::All,
                mode,
                octets: 0,
                packets: 0,
                lasts_ns: 0,
                reserves_ns: 0,
            },
            txop_end_ns: 0,
            doing: Doing::Listening,
            mode,
            rates,
            backoffs: 0,
            checks: 0,
            count: Count::default(),
        }
    }

    /// Returns the queue of the exchange.
    pub fn queue(&mut self) -> &mut Queue<T> {
        &mut self.lanes[self.lane].queue
    }

    /// Packets in its queues.
    pub fn waiting(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.queue.len() as u64).sum()
    }
}
