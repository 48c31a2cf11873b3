// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shared wireless medium in virtual time: which frame is on air when, and which stations receive it.
//!
//! Exact and without I/O. Time is that of the arrival stamps, in integer ns, and powers are integer
//! attowatts, so sums of interferers carry no rounding. A random decision is a hash of seed,
//! station, purpose and count. The same arrivals therefore get the same air on every machine,
//! whenever they are read.
//!
//! `motion` has the paths of stations. `phy` has the figures of the radio standards, the durations of frames, path loss and the matrix
//! of who hears whom; `air` is the distributed coordination function of IEEE 802.11 on top of it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use emud::medium::air::{Access, Air, Discipline, Frame, Outcome, Plan, RateControl, To};
//! use emud::medium::phy::{Matrix, Standard, Timing, ratio};
//!
//! let timing = Timing::new(Standard::named("802.11b").unwrap(), None);
//! let fastest = timing.mode(11_000).unwrap();
//! let plan = Plan {
//!     timing,
//!     access: Access::Dcf,
//!     rts_bytes: None,
//!     attempts: 7,
//!     aggregate: 1,
//!     queue_packets: 50,
//!     discipline: Discipline::Fifo,
//!     rate: RateControl::Fixed,
//!     capture: ratio(10.0),
//!     noise: 0,
//!     seed: 1,
//! };
//! // Two stations that hear each other.
//! let mut air = Air::new(plan, Arc::new(Matrix::full(2)), &[fastest; 2]);
//! air.arrive(1_000_000, 0, Frame { to: To::Station(1), bytes: 84, token: "ping" });
//! let Some(Outcome::Delivered { at_ns, to: 1, .. }) = air.next(2_000_000) else { panic!() };
//! // The channel is idle: 192 us of preamble, and 120 octets with the MAC's at 11 Mbit/s.
//! assert_eq!(at_ns, 1_000_000 + 279_273);
//! ```

pub mod air;
pub mod motion;
pub mod phy;
mod set;
