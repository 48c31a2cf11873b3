// SPDX-License-Identifier: MIT OR Apache-2.0
//! The energy of a station's radio: a power for each of what it does, times how long it does it
//! (Feeney and Nilsson, INFOCOM 2001).

/// Power of a radio in W, by its state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Watts {
    /// While it is on air.
    pub send: f64,
    /// While it senses the carrier of others, also of frames for a third station.
    pub receive: f64,
    /// While it neither sends nor senses a carrier.
    pub idle: f64,
}

impl Watts {
    /// Returns the energy in J of a time in which the station was on air for `air_ns` and sensed a
    /// carrier for `busy_ns`, its own included.
    pub fn joules(&self, air_ns: u64, busy_ns: u64, time_ns: u64) -> f64 {
        let receive_ns = busy_ns.saturating_sub(air_ns);
        let idle_ns = time_ns.saturating_sub(busy_ns.max(air_ns));
        let drawn = [
            self.send * air_ns as f64,
            self.receive * receive_ns as f64,
            self.idle * idle_ns as f64,
        ];
        drawn.iter().sum::<f64>() / 1e9
    }
}
