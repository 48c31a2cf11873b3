// SPDX-License-Identifier: MIT OR Apache-2.0
//! netem: its options as iproute2 reads them (`read`, `values`), and a link of a profile that does
//! the same (`link` and the files per option).

mod chances;
mod delay;
mod limit;
mod link;
mod loss;
mod rate;
mod read;
mod slot;
mod values;

use super::tc_shaper::Shaper;
use crate::text::{At, Located};
use delay::trimmed;
pub(super) use link::{Beside, link, seed};

const NARROW: &str = "netem's correlation squeezes its random numbers towards one half, so small \
    probabilities nearly vanish: with 25 % correlation a chance of 1 % becomes 0.0002 %, one of \
    10 % becomes 1.7 %. emud keeps the probability.";

/// A netem command; options that were not given are `None` or netem's default.
#[derive(Debug, Default)]
pub(crate) struct Netem {
    /// Its start.
    pub(crate) at: At,
    pub(crate) device: Option<String>,
    pub(crate) under: Under,
    /// The rate limiter beside it, if any.
    pub(crate) shaper: Option<Shaper>,
    /// Whether tc printed it.
    pub(crate) shown: bool,
    /// Names of options that come from the command before.
    pub(crate) kept: Vec<&'static str>,
    pub(crate) text: String,
    /// Maximum number of packets in netem, including those in flight; 1000 if not given.
    pub(crate) limit: Option<Located<u32>>,
    /// Rate of the class whose packets wait in it, bit/s: its limit is that of the class.
    pub(crate) class_rate: Option<u64>,
    pub(crate) latency_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) delay_correlation: f64,
    pub(crate) distribution: Option<Located<String>>,
    pub(crate) loss: Option<LossOption>,
    pub(crate) ecn: bool,
    pub(crate) corrupt: Option<Chance>,
    pub(crate) duplicate: Option<Chance>,
    pub(crate) reorder: Option<Chance>,
    pub(crate) gap: Option<Located<u32>>,
    pub(crate) rate: Option<RateOption>,
    pub(crate) slot: Option<SlotOption>,
    pub(crate) seed: Option<u64>,
    /// Whether a time was given without a unit.
    pub(crate) bare_time: bool,
    delay_at: Option<At>,
    delay_correlation_at: Option<At>,
    /// Options with their values, as written.
    spans: Vec<(&'static str, At)>,
}

/// Which packets it receives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Under {
    /// All packets of the device.
    #[default]
    Nothing,
    /// Packets that no filter matches.
    Default,
    /// The first class of a qdisc that is not in the text.
    FirstOf(String),
    /// Packets classified into it.
    Class(String),
}

/// A probability and its correlation, 0.0..=1.0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chance {
    pub probability: f64,
    pub correlation: f64,
}

/// Probabilities of netem's loss models, 0.0..=1.0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LossOption {
    Random(Chance),
    /// The four-state chain: 1 good, 2 good in a burst, 3 lost in a burst, 4 lost alone.
    State {
        p13: f64,
        p31: f64,
        p32: f64,
        p23: f64,
        p14: f64,
    },
    /// `bad` is 1-h, `good` 1-k: the loss probability in either state.
    Gemodel {
        p: f64,
        r: f64,
        bad: f64,
        good: f64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RateOption {
    /// Before netem rounds it to whole bytes.
    pub bits: f64,
    pub packet_overhead: i32,
    /// 0: no cells.
    pub cell_size: u32,
    pub cell_overhead: i32,
    pub(crate) at: At,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotOption {
    /// Text as written.
    pub text: String,
    /// Minimum and maximum distance in ns; `None` for a distribution.
    pub distances_ns: Option<(u64, u64)>,
    /// Packets per slot; 0: any.
    pub packets: u32,
    pub bytes: u32,
    /// Whether a time was given without a unit.
    pub bare_time: bool,
}
