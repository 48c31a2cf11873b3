// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations of frames and of the gaps between them, in ns.
//!
//! Source: IEEE 802.11-2020, 16.2.2, 17.4.3 and 19.4.3. A DSSS frame lasts for its chips: the rounding of
//! its announced length to full microseconds is left out, as in the analyses that this model is
//! compared with (at most 0.08 % of a full frame at 11 Mbit/s).

use serde::{Deserialize, Serialize};

use super::standard::{Coding, Standard};

/// Octets of MAC header (24) and FCS (4), and of LLC and SNAP (8), around a packet.
const MAC_OVERHEAD: u32 = 36;
/// The field that says how a packet is served: of EDCA and of 802.11n.
const QOS_CONTROL: u32 = 2;

const ACK_OCTETS: u32 = 14;
const CTS_OCTETS: u32 = 14;
const RTS_OCTETS: u32 = 20;
const BLOCK_ACK_OCTETS: u32 = 32;

/// A rate and the durations that depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mode {
    kbit: u32,
    /// The mode of the answer to it: the highest basic rate that is not above its own, otherwise the highest
    /// mandatory one (IEEE 802.11-2020, 10.6.6.5.2).
    control: usize,
    ack_ns: u64,
    cts_ns: u64,
    rts_ns: u64,
    #[serde(default)]
    block_ack_ns: u64,
}

/// Returns the value for records without this key.
fn mac_overhead() -> u32 {
    MAC_OVERHEAD
}

/// The timing of a standard with its basic rates. A *mode* is the index of a rate in the
/// standard's ascending list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Length of a slot, ns.
    pub slot_ns: u64,
    /// Gap before an answer, ns.
    pub sifs_ns: u64,
    /// Gap before an access, ns.
    pub difs_ns: u64,
    /// The gap after a frame that could not be decoded.
    pub eifs_ns: u64,
    /// An access due sooner than this after another's start is not called off.
    pub cca_ns: u64,
    /// The first contention window: the backoff is 0..=window slots.
    pub cw_min: u32,
    /// The largest contention window.
    pub cw_max: u32,
    /// Octets around a packet.
    #[serde(default = "mac_overhead")]
    pub overhead: u32,
    coding: Coding,
    preamble_ns: u64,
    modes: Vec<Mode>,
    lowest_basic: usize,
}

impl Timing {
    /// Returns the timing of a standard. `basic`: rates of control frames in kbit/s, default those
    /// of the standard; rates that it does not have are ignored.
    pub fn new(standard: &Standard, basic: Option<&[u32]>) -> Self {
        let basic = basic.unwrap_or(standard.basic);
        let all = 0..standard.rates.len();
        let is_one = |rates: &[u32], mode: &usize| rates.contains(&standard.rates[*mode].0);
        let lowest = |rates| all.clone().find(|mode| is_one(rates, mode)).unwrap_or(0);
        let lowest_basic = lowest(basic);
        let mut timing = Self {
            slot_ns: standard.slot_ns,
            sifs_ns: standard.sifs_ns,
            difs_ns: standard.sifs_ns + 2 * standard.slot_ns,
            eifs_ns: 0,
            cca_ns: standard.cca_ns.min(standard.slot_ns),
            cw_min: standard.cw_min,
            cw_max: standard.cw_max,
            overhead: MAC_OVERHEAD,
            coding: standard.coding,
            preamble_ns: standard.preamble_ns,
            modes: Vec::new(),
            lowest_basic,
        };
        for (mode, (kbit, _)) in standard.rates.iter().enumerate() {
            let highest = |rates| (0..=mode).rfind(|mode| is_one(rates, mode));
            let control = highest(basic).or_else(|| highest(standard.mandatory));
            let control = control.unwrap_or(mode);
            let control_kbit = standard.rates[control].0;
            timing.modes.push(Mode {
                kbit: *kbit,
                control,
                ack_ns: timing.at_rate_ns(ACK_OCTETS, control_kbit),
                cts_ns: timing.at_rate_ns(CTS_OCTETS, control_kbit),
                rts_ns: timing.at_rate_ns(RTS_OCTETS, control_kbit),
                block_ack_ns: timing.at_rate_ns(BLOCK_ACK_OCTETS, control_kbit),
            });
        }
        // 10.3.7: with an ACK at the lowest mandatory rate, whatever the basic ones are.
        let slowest_kbit = standard.rates[lowest(standard.mandatory)].0;
        let slowest_ns = timing.at_rate_ns(ACK_OCTETS, slowest_kbit);
        timing.eifs_ns = timing.sifs_ns + slowest_ns + timing.difs_ns;
        match standard.aggregates() {
            true => timing.with_qos(),
            false => timing,
        }
    }

    /// Returns the same, if each packet has a field for its service.
    pub fn with_qos(self) -> Self {
        Self {
            overhead: MAC_OVERHEAD + QOS_CONTROL,
            ..self
        }
    }

    /// Returns the timing of a wire: one rate, and no gaps, because nothing contends for it.
    pub fn wire(kbit: u32) -> Self {
        Self {
            slot_ns: 1,
            sifs_ns: 0,
            difs_ns: 0,
            eifs_ns: 0,
            cca_ns: 0,
            cw_min: 0,
            cw_max: 0,
            overhead: 0,
            coding: Coding::Dsss,
            preamble_ns: 0,
            modes: vec![Mode {
                kbit,
                control: 0,
                ack_ns: 0,
                cts_ns: 0,
                rts_ns: 0,
                block_ack_ns: 0,
            }],
            lowest_basic: 0,
        }
    }

    /// Returns whether its figures fit together, if they are not those of a standard.
    pub fn is_consistent(&self) -> bool {
        const LONGEST_NS: u64 = 1_000_000_000;
        let modes = self.modes.len();
        let gaps = [
            self.slot_ns,
            self.sifs_ns,
            self.difs_ns,
            self.eifs_ns,
            self.preamble_ns,
        ];
        let of_mode = |mode: &Mode| {
            let answers = [mode.ack_ns, mode.cts_ns, mode.rts_ns, mode.block_ack_ns];
            mode.kbit > 0 && mode.control < modes && answers.iter().all(|ns| *ns < LONGEST_NS)
        };
        (1..=16).contains(&modes)
            && self.lowest_basic < modes
            && self.data_modes().next().is_some()
            && self.slot_ns > 0
            && gaps.iter().all(|ns| *ns < LONGEST_NS)
            && self.eifs_ns >= self.difs_ns
            && self.cw_min <= self.cw_max
            && self.cw_max < 1 << 15
            && self.overhead <= MAC_OVERHEAD + QOS_CONTROL
            && self.modes.iter().all(of_mode)
    }

    fn at_rate_ns(&self, octets: u32, kbit: u32) -> u64 {
        let (bits, rate) = (8 * u64::from(octets), u64::from(kbit));
        match self.coding {
            Coding::Dsss => self.preamble_ns + (bits * 1_000_000).div_ceil(rate),
            Coding::HighThroughput { extension_ns } if self.coding.is_of_data(kbit) => {
                36_000 + symbols_ns(bits, rate) + extension_ns
            }
            Coding::Ofdm { extension_ns } | Coding::HighThroughput { extension_ns } => {
                20_000 + symbols_ns(bits, rate) + extension_ns
            }
        }
    }

    /// Returns whether a frame in this mode can have several packets.
    pub fn aggregates(&self, mode: usize) -> bool {
        self.coding.aggregates() && self.coding.is_of_data(self.kbit(mode))
    }

    /// Returns whether it has the shorter slots and frames of OFDM.
    pub fn is_ofdm(&self) -> bool {
        !matches!(self.coding, Coding::Dsss)
    }

    /// Returns the modes of unicast data, ascending.
    pub fn data_modes(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.modes.len()).filter(|mode| self.coding.is_of_data(self.kbit(*mode)))
    }

    /// Returns the slowest mode of unicast data.
    pub fn slowest(&self) -> usize {
        self.data_modes().next().unwrap_or(0)
    }

    /// Returns the mode of a rate in kbit/s.
    pub fn mode(&self, kbit: u32) -> Option<usize> {
        self.modes.iter().position(|mode| mode.kbit == kbit)
    }

    /// Returns the fastest mode.
    pub fn fastest(&self) -> usize {
        self.modes.len() - 1
    }

    /// Returns the mode of broadcast frames: the lowest basic rate.
    pub fn broadcast(&self) -> usize {
        self.lowest_basic
    }

    /// Returns the mode of the answers to a frame.
    pub fn control(&self, mode: usize) -> usize {
        self.modes[mode].control
    }

    /// Returns the rate of a mode in kbit/s.
    pub fn kbit(&self, mode: usize) -> u32 {
        self.modes[mode].kbit
    }

    /// Returns the time on air of a MAC frame of `octets`, FCS included.
    pub fn frame_ns(&self, octets: u32, mode: usize) -> u64 {
        self.at_rate_ns(octets, self.modes[mode].kbit)
    }

    /// Returns the time on air of a data frame with a packet of `bytes`.
    pub fn data_ns(&self, bytes: u32, mode: usize) -> u64 {
        self.frame_ns(bytes + self.overhead, mode)
    }

    /// Returns the time on air of the acknowledgement of a frame in `mode`.
    pub fn ack_ns(&self, mode: usize) -> u64 {
        self.modes[mode].ack_ns
    }

    /// Returns the time on air of the answer to a frame in `mode` with `packets`, in ns.
    pub fn answer_ns(&self, mode: usize, packets: u32) -> u64 {
        match packets {
            0 | 1 => self.modes[mode].ack_ns,
            _ => self.modes[mode].block_ack_ns,
        }
    }

    /// Returns the time on air of the longest answer to data.
    pub fn longest_answer_ns(&self) -> u64 {
        let answers = self.modes.iter();
        let answers = answers.map(|mode| mode.block_ack_ns.max(mode.ack_ns));
        answers.max().unwrap_or(0)
    }

    /// Returns the time on air of the CTS in front of a frame in `mode`.
    pub fn cts_ns(&self, mode: usize) -> u64 {
        self.modes[mode].cts_ns
    }

    /// Returns the time on air of the RTS in front of a frame in `mode`.
    pub fn rts_ns(&self, mode: usize) -> u64 {
        self.modes[mode].rts_ns
    }

    /// Returns how long a sender waits for an acknowledgement. It ends when those who could not decode
    /// the frame begin their DIFS, so that the sender has no advantage over them.
    pub fn ack_timeout_ns(&self) -> u64 {
        self.eifs_ns - self.difs_ns
    }

    /// Returns the octets of the answer to a frame with `packets`.
    pub fn answer_octets(&self, packets: u32) -> u32 {
        match packets {
            0 | 1 => ACK_OCTETS,
            _ => BLOCK_ACK_OCTETS,
        }
    }

    /// Returns the octets of a CTS.
    pub fn cts_octets(&self) -> u32 {
        CTS_OCTETS
    }

    /// Returns the octets of an RTS.
    pub fn rts_octets(&self) -> u32 {
        RTS_OCTETS
    }
}

/// Returns the symbols of a frame: 16 bits of service and 6 of tail are coded with it.
fn symbols_ns(bits: u64, kbit: u64) -> u64 {
    4_000 * ((bits + 22) * 1_000).div_ceil(4 * kbit)
}
