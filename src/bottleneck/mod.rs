// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server with classes, in virtual time: which packet of a real queue a wire sends when.
//!
//! Exact and without I/O. Time is that of the arrival stamps, and a decision at time t is made
//! when every packet that has arrived up to t is known. So the service depends on the arrivals
//! alone, not on when they are read: the same arrivals get the same service on every machine.
//! All arithmetic is that of integers: ns, bytes, bit/s, with remainders carried.
//!
//! # Which packet is next
//!
//! Classes form a tree below the wire; packets wait in the leaves. A class is *open* unless it
//! has used up its `ceil`, and *ready* if it is open and a packet waits in it, or in a ready
//! class below it. When the wire is free:
//!
//! 1. The *lender* is a ready class within its guaranteed `rate`, with all classes above it open:
//!    leaves first, then the deepest; among these by priority, then the one with the earliest
//!    deadline at its rate. Without any it is the wire itself.
//! 2. From the lender down, each level takes its ready class of best priority; among equals by
//!    deficit round robin in proportion to weight (htb: to `rate`), until a leaf is reached, whose
//!    first packet is sent. It is not interrupted.
//! 3. The bytes are charged to the `rate` of the lender and all above it (what is borrowed costs
//!    no guarantee), to the `ceil` of the leaf and all above it, and to the deficits between.
//!
//! A manager of a queue judges a packet when it arrives or, as CoDel, when it is chosen: a packet
//! dropped then is charged to no class, and the server chooses again.
//!
//! The order of levels is that of HTB (Devera 2002); other than there, a guarantee and a ceil are
//! exact clocks in place of buckets, and no class exceeds the ceil of one above it.
//!
//! ```
//! use emud::bottleneck::{Arrival, Class, Decision, Plan, Schedule, Server};
//!
//! let class = |priority| Class { priority, ..Class::default() };
//! let mut server = Server::new(&Plan {
//!     rate: 1_000_000,
//!     schedule: Schedule::Priority,
//!     seed: 1,
//!     classes: vec![class(0), class(1)],
//! });
//! // At one time; each takes 10 ms on the wire.
//! for (class, token) in [(1, "bulk"), (1, "more bulk"), (0, "voice")] {
//!     server.arrive(Arrival { class, bytes: 1250, ..Arrival::default() }, token);
//! }
//! let mut sent = vec![];
//! while let Some(Decision::Served(packet)) = server.decide(u64::MAX) {
//!     sent.push((packet.token, packet.start_ns));
//! }
//! assert_eq!(sent, [("voice", 0), ("bulk", 10_000_000), ("more bulk", 20_000_000)]);
//! ```

pub mod aqm;
mod clock;
mod plan;
mod queue;
mod server;
mod sorted;
mod tree;

pub use plan::{Class, Limits, Plan, QUANTUM, Schedule, Signals};
pub use queue::ClassCount;
pub use server::{Arrival, Cause, Decision, Dropped, Served, Server};
