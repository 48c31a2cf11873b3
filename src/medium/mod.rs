// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shared wireless medium in virtual time: which frame is on air when, and who receives it.
//!
//! Exact and without I/O. Time is that of the arrival stamps, in integer ns, and powers are integer
//! attowatts, so sums of interferers carry no rounding. A random decision is a hash of seed,
//! station, purpose and count. The same arrivals therefore get the same air on every machine,
//! whenever they are read.
//!
//! `motion` has the paths of stations. `phy` has the figures of the radio standards, the durations of frames, path loss and the matrix
//! of who hears whom; `air` is the distributed coordination function of IEEE 802.11 on top of it.

pub mod air;
pub mod motion;
pub mod phy;
mod set;
