// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets on their way in and out of a medium.

use std::cmp::Ordering;

use crate::medium::set::Set;

/// Destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The station with this index: at its rate, acknowledged.
    Station(u16),
    /// Broadcast and multicast: at the lowest basic rate, not acknowledged.
    All,
}

/// A packet for the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<T> {
    /// Destination of the packet.
    pub to: To,
    /// From the IP header on, without Ethernet, LLC, or MAC.
    pub bytes: u32,
    /// The caller's mark of the packet.
    pub token: T,
}

/// The fate of a packet at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<T> {
    /// A station has received it; never twice the same.
    Delivered {
        /// Time of reception, ns.
        at_ns: u64,
        /// Index of the sender.
        from: usize,
        /// Index of the receiver.
        to: usize,
        /// The caller's mark of the packet.
        token: T,
    },
    /// Its sender is done with it.
    Finished {
        /// Time at which the sender is done, ns.
        at_ns: u64,
        /// Index of the sender.
        station: usize,
        /// The caller's mark of the packet.
        token: T,
        /// How it ended.
        fate: Fate,
    },
}

/// How a packet left its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Acknowledged, or broadcast.
    Sent,
    /// The attempts are used up. Its receiver may have it: a lost acknowledgement has the same effect.
    GivenUp,
    /// The queue had no room at arrival.
    QueueFull,
    /// Dropped by the manager of the queue.
    Managed,
}

/// A packet in a station's queue.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub frame: Frame<T>,
    /// Over all stations, from 1.
    pub number: u64,
    /// Attempts so far.
    pub tries: u32,
    /// Its receiver has it: what it receives again is a duplicate.
    pub delivered: bool,
    /// Promiscuous stations that have it.
    pub overheard: Set,
}

/// A packet that its receiver has, but not all before it.
#[derive(Debug)]
pub(super) struct Held<T> {
    pub to: usize,
    pub number: u64,
    pub bytes: u32,
    pub token: T,
    /// How its sender was done with it.
    pub fate: Option<Fate>,
}

/// By stamp, then by station, then by the order of handing over: those of a station are in order.
#[derive(Debug)]
pub(super) struct Arrival<T> {
    pub at_ns: u64,
    pub number: u64,
    pub station: usize,
    pub frame: Frame<T>,
    /// DS field of its IP header.
    pub ds: u8,
}

impl<T> From<Arrival<T>> for Waiting<T> {
    fn from(arrival: Arrival<T>) -> Self {
        Self {
            frame: arrival.frame,
            number: arrival.number,
            tries: 0,
            delivered: false,
            overheard: Set::default(),
        }
    }
}

/// A delivery after its propagation.
#[derive(Debug)]
pub(super) struct Later<T> {
    pub at_ns: u64,
    pub number: u64,
    pub outcome: Outcome<T>,
}

macro_rules! ordered_by {
    ($($type:ident: $($key:ident),+;)+) => {$(
        impl<T> PartialEq for $type<T> {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }
        impl<T> Eq for $type<T> {}
        impl<T> PartialOrd for $type<T> {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl<T> Ord for $type<T> {
            fn cmp(&self, other: &Self) -> Ordering {
                ($(self.$key),+).cmp(&($(other.$key),+))
            }
        }
    )+};
}

ordered_by! {
    Arrival: at_ns, station, number;
    Later: at_ns, number;
}
