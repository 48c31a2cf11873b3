// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of the radio standards.
//!
//! Source: IEEE 802.11-2020, clauses 15 (DSSS), 16 (HR/DSSS), 17 (OFDM), 18 (ERP) and 19 (HT); for the
//! 914 MHz WaveLAN the radio of ns-2 (`Phy/WirelessPhy`), which the literature on routing uses.
//! Sensitivities are those of usual cards, or the minima of the standard for OFDM.

use serde::{Deserialize, Serialize};

/// How the bits of a frame become time on air.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coding {
    /// A preamble and header of fixed duration, then each bit at the rate.
    Dsss,
    /// Symbols of 4 us after 20 us of preamble, and a silent extension (6 us in 802.11g).
    Ofdm { extension_ns: u64 },
    /// The same after 36 us of preamble in mixed format, but for the rates of older stations
    /// (6, 12 and 24 Mbit/s).
    HighThroughput { extension_ns: u64 },
}

/// Mandatory rates of OFDM, kbit/s: of ACK, RTS, CTS and broadcast. 802.11n stations use them for frames that
/// older stations decode.
const LEGACY: [u32; 3] = [6_000, 12_000, 24_000];

impl Coding {
    /// Returns whether a frame of unicast data can have several packets.
    pub(super) fn aggregates(self) -> bool {
        matches!(self, Self::HighThroughput { .. })
    }

    /// Returns whether unicast data can have this rate in kbit/s.
    pub(super) fn is_of_data(self, kbit: u32) -> bool {
        !self.aggregates() || !LEGACY.contains(&kbit)
    }
}

/// A standard; every figure as it is without configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standard {
    /// `802.11b` or the like.
    pub name: &'static str,
    /// Length of a slot, ns.
    pub slot_ns: u64,
    /// Gap before an answer, ns.
    pub sifs_ns: u64,
    /// A station whose slot begins sooner than this after a start has not sensed it.
    pub cca_ns: u64,
    /// Contention windows: the backoff is 0..=window slots.
    pub cw_min: u32,
    /// The largest contention window, slots.
    pub cw_max: u32,
    /// PLCP preamble and header of DSSS.
    pub preamble_ns: u64,
    /// How long a frame lasts.
    pub coding: Coding,
    /// Rates in kbit/s, ascending, with the weakest signal that can be received, dBm.
    pub rates: &'static [(u32, f64)],
    /// Rates of control and broadcast frames, kbit/s.
    pub basic: &'static [u32],
    /// Rates that every station has, kbit/s, the lowest one of all included: of control frames if no basic
    /// rate is as low as that of the data.
    pub mandatory: &'static [u32],
    /// Frequency of the carrier, Hz.
    pub frequency_hz: f64,
    /// Power of a sender, dBm.
    pub power_dbm: f64,
    /// The weakest signal that keeps the medium busy, dBm.
    pub sense_dbm: f64,
}

const B_RATES: &[(u32, f64)] = &[
    (1_000, -94.0),
    (2_000, -91.0),
    (5_500, -89.0),
    (11_000, -85.0),
];

/// The short preamble needs 2 Mbit/s.
const B_SHORT_RATES: &[(u32, f64)] = B_RATES.split_at(1).1;

const OFDM_RATES: &[(u32, f64)] = &[
    (6_000, -82.0),
    (9_000, -81.0),
    (12_000, -79.0),
    (18_000, -77.0),
    (24_000, -74.0),
    (36_000, -70.0),
    (48_000, -66.0),
    (54_000, -65.0),
];

/// One stream in 20 MHz, guard interval of 800 ns; minima of the standard.
const HT_RATES: &[(u32, f64)] = &[
    (6_000, -82.0),
    (6_500, -82.0),
    (12_000, -79.0),
    (13_000, -79.0),
    (19_500, -77.0),
    (24_000, -74.0),
    (26_000, -74.0),
    (39_000, -70.0),
    (52_000, -66.0),
    (58_500, -65.0),
    (65_000, -64.0),
];

const B: Standard = Standard {
    name: "802.11b",
    slot_ns: 20_000,
    sifs_ns: 10_000,
    cca_ns: 15_000,
    cw_min: 31,
    cw_max: 1_023,
    preamble_ns: 192_000,
    coding: Coding::Dsss,
    rates: B_RATES,
    basic: &[1_000, 2_000],
    mandatory: &[1_000, 2_000, 5_500, 11_000],
    frequency_hz: 2.437e9,
    power_dbm: 20.0,
    sense_dbm: -94.0,
};

const G: Standard = Standard {
    name: "802.11g",
    slot_ns: 9_000,
    sifs_ns: 10_000,
    cca_ns: 4_000,
    cw_min: 15,
    preamble_ns: 0,
    coding: Coding::Ofdm {
        extension_ns: 6_000,
    },
    rates: OFDM_RATES,
    basic: &LEGACY,
    mandatory: &LEGACY,
    sense_dbm: -82.0,
    ..B
};

/// All standards.
pub const STANDARDS: &[Standard] = &[
    B,
    Standard {
        name: "802.11b-short",
        preamble_ns: 96_000,
        rates: B_SHORT_RATES,
        basic: &[2_000],
        mandatory: &[2_000, 5_500, 11_000],
        ..B
    },
    G,
    Standard {
        name: "802.11a",
        sifs_ns: 16_000,
        coding: Coding::Ofdm { extension_ns: 0 },
        frequency_hz: 5.2e9,
        ..G
    },
    Standard {
        name: "802.11n",
        coding: Coding::HighThroughput {
            extension_ns: 6_000,
        },
        rates: HT_RATES,
        ..G
    },
    Standard {
        name: "wavelan-914",
        rates: &[(1_000, -64.374), (2_000, -64.374)],
        basic: &[1_000],
        mandatory: &[1_000, 2_000],
        frequency_hz: 914e6,
        power_dbm: 24.5,
        sense_dbm: -78.071,
        ..B
    },
];

impl Standard {
    /// Returns the standard of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        STANDARDS.iter().find(|standard| standard.name == name)
    }

    /// Returns whether its stations put several packets into one frame.
    pub fn aggregates(&self) -> bool {
        self.coding.aggregates()
    }

    /// Returns the rates of unicast data, kbit/s.
    pub fn data_rates(&self) -> impl Iterator<Item = u32> {
        let rates = self.rates.iter().map(|(kbit, _)| *kbit);
        rates.filter(|kbit| self.coding.is_of_data(*kbit))
    }

    /// Returns the rates that control frames can have, kbit/s.
    pub fn control_rates(&self) -> impl Iterator<Item = u32> {
        let rates = self.rates.iter().map(|(kbit, _)| *kbit);
        rates.filter(|kbit| !self.aggregates() || LEGACY.contains(kbit))
    }
}
