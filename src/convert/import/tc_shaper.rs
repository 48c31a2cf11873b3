// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate limiter: a tbf, or a class of htb.

use super::shell::Word;
use super::tc_made::{Made, begins};
use super::tc_units::{rate_bits, size, time_us, whole};
use crate::text::Mistake;

/// The options that change what passes, and when.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Shaper {
    pub kind: String,
    /// As tc counts it, bit/s.
    pub rate: Option<f64>,
    /// Highest rate of a class that may borrow.
    pub ceil: Option<f64>,
    pub priority: Option<u32>,
    /// Bytes; 0: the kernel chooses.
    pub quantum: u32,
    pub burst: u32,
    /// Limit of the queue before it, bytes; htb has none.
    pub limit: Option<u32>,
    pub overhead: i32,
    pub mpu: u32,
    pub is_atm: bool,
    /// `peakrate`, as written.
    pub peak: Option<String>,
}

/// In tc's order: an abbreviation stands for the first match.
const OPTIONS: [&str; 16] = [
    "rate",
    "ceil",
    "limit",
    "latency",
    "burst",
    "buffer",
    "maxburst",
    "cburst",
    "mpu",
    "mtu",
    "minburst",
    "overhead",
    "linklayer",
    "peakrate",
    "prio",
    "quantum",
];

impl Shaper {
    /// Reads the options; returns `None` if this is not a rate limiter.
    pub fn read(made: &mut Made) -> Result<Option<Self>, Mistake> {
        let is_shaper = made.kind.value == "tbf" || (made.is_class && made.kind.value == "htb");
        if !is_shaper {
            return Ok(None);
        }
        let mut shaper = Self {
            kind: made.kind.value.to_owned(),
            ..Self::default()
        };
        let (mut latency_ns, mut peak, mut mtu) = (None, None, 0);
        let words = &mut made.options;
        while let Some(word) = words.next() {
            let option = OPTIONS.iter().find(|option| begins(word.value, option));
            let mut value = |example| words.argument(word.value, example);
            match option.copied() {
                Some("rate") => shaper.rate = Some(rate_bits(&value("1mbit")?)?),
                Some("ceil") => shaper.ceil = Some(rate_bits(&value("1mbit")?)?),
                Some("limit") => shaper.limit = Some(size(&value("10k")?)?),
                Some("latency") => latency_ns = Some(time_us(&value("400ms")?)?),
                Some("burst" | "buffer" | "maxburst") => shaper.burst = burst(&value("32k")?)?,
                // tc prints it as a size.
                Some("mpu") => shaper.mpu = size(&value("64")?)?,
                Some("overhead") => shaper.overhead = whole(&value("18")?, -64..=4096)? as i32,
                Some("linklayer") => {
                    let layer = value("atm")?.value;
                    shaper.is_atm = matches!(layer, "atm" | "adsl");
                }
                Some("peakrate") => {
                    let word = value("1mbit")?;
                    peak = rate_bits(&word).ok();
                    shaper.peak = Some(word.value.to_owned());
                }
                Some("mtu" | "minburst") => mtu = burst(&value("1540")?)?,
                Some("quantum") => {
                    shaper.quantum = whole(&value("1514")?, 0..=u32::MAX.into())? as u32
                }
                Some("prio") => shaper.priority = Some(whole(&value("0")?, 0..=7)? as u32),
                // None of these changes the time of an arrival.
                Some(_) => {
                    value("1")?;
                }
                // The value of an unknown option.
                None => drop(words.number()),
            }
        }
        if let (Some(ns), None) = (latency_ns, shaper.limit) {
            // As tc computes it (tc/q_tbf.c); the conversion to an integer has its limits.
            let bytes = |bits: f64, bucket: u32| bits / 8.0 * ns as f64 / 1e9 + f64::from(bucket);
            let own = bytes(shaper.rate.unwrap_or_default(), shaper.burst);
            let least = peak.map_or(own, |peak| own.min(bytes(peak, mtu)));
            shaper.limit = Some(least as u32);
        }
        Ok(Some(shaper))
    }

    /// Returns the fastest rate at which it lets packets pass, bit/s.
    pub fn bits(&self) -> f64 {
        self.ceil.or(self.rate).unwrap_or_default()
    }

    /// Returns the same of a class whose class above sends `lent`, 0 for the highest: it sends its own rate whatever
    /// that one has (`htb_dequeue` serves a class with tokens at its own level), and borrows the rest up to its ceil;
    /// the highest has no class to borrow from (`htb_activate_prios`).
    pub fn most(&self, lent: f64) -> f64 {
        let rate = self.rate.unwrap_or_else(|| self.bits());
        rate.max(lent).min(self.bits())
    }

    /// Returns the options that change what a packet takes on the wire, which a bottleneck does not have.
    pub fn wire(&self) -> impl Iterator<Item = String> {
        let options = [
            ("mpu", (self.mpu > 0).then(|| self.mpu.to_string())),
            (
                "overhead",
                (self.overhead != 0).then(|| self.overhead.to_string()),
            ),
            ("linklayer", self.is_atm.then(|| "atm".to_owned())),
            ("peakrate", self.peak.clone()),
        ];
        let written = options
            .into_iter()
            .filter_map(|(option, value)| Some((option, value?)));
        written.map(|(option, value)| format!("`{option} {value}` of {}", self.kind))
    }
}

/// Reads bytes; the part after a slash, which tc prints, is the cell's.
fn burst(word: &Word) -> Result<u32, Mistake> {
    let value = word.value.split('/').next().unwrap_or_default();
    size(&Word {
        value,
        at: word.at.clone(),
    })
}
