// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate limiter of a netem: a tbf, or a class of htb.

use super::tc_command::{Made, Word, Words, begins};
use super::tc_units::{rate_bits, size, time_us, whole};
use crate::text::Mistake;

/// The effect on the link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shaper {
    pub kind: String,
    /// Rate as tc counts it, bit/s.
    pub bits: f64,
    pub burst: u32,
    /// Limit of the queue before it in bytes or ns; htb has neither.
    pub limit: Option<Limit>,
    pub overhead: i32,
    pub mpu: u32,
    pub is_atm: bool,
    /// Its other options.
    pub others: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Bytes(u32),
    Ns(u64),
}

/// In tc's order: an abbreviation stands for the first match.
const OPTIONS: [&str; 15] = [
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
            bits: 0.0,
            burst: 0,
            limit: None,
            overhead: 0,
            mpu: 0,
            is_atm: false,
            others: Vec::new(),
        };
        let (mut rate, mut ceil) = (None, None);
        let words = &mut made.options;
        while let Some(word) = words.next() {
            let option = OPTIONS.iter().find(|option| begins(word.value, option));
            let mut value = |example| words.argument(word.value, example);
            match option.copied() {
                Some("rate") => rate = Some(rate_bits(&value("1mbit")?)?),
                Some("ceil") => ceil = Some(rate_bits(&value("1mbit")?)?),
                Some("limit") => shaper.limit = Some(Limit::Bytes(size(&value("10k")?)?)),
                Some("latency") => shaper.limit = Some(Limit::Ns(time_us(&value("400ms")?)?)),
                Some("burst" | "buffer" | "maxburst") => shaper.burst = burst(&value("32k")?)?,
                Some("mpu") => shaper.mpu = whole(&value("64")?, 0..=4096)? as u32,
                Some("overhead") => shaper.overhead = whole(&value("18")?, -64..=4096)? as i32,
                Some("linklayer") => {
                    let layer = value("atm")?.value;
                    shaper.is_atm = matches!(layer, "atm" | "adsl");
                }
                Some(other @ "peakrate") => {
                    let peak = value("1mbit")?.value;
                    shaper.others.push(format!("{other} {peak}"));
                }
                // None of these changes the time of an arrival.
                Some(_) => {
                    value("1")?;
                }
                None => skip(words),
            }
        }
        let bits = ceil.or(rate).unwrap_or_default();
        if let (Some(rate), Some(ceil)) = (rate, ceil)
            && ceil > rate
        {
            let text =
                format!("a rate of {rate} bit/s that may grow to {ceil} if others leave room");
            shaper.others.push(text);
        }
        Ok((bits >= 1.0).then_some(Self { bits, ..shaper }))
    }
}

/// Skips the value of an unknown option.
fn skip(words: &mut Words) {
    words.number();
}

/// Reads bytes; the part after a slash, which tc prints, is the cell's.
fn burst(word: &Word) -> Result<u32, Mistake> {
    let value = word.value.split('/').next().unwrap_or_default();
    size(&Word {
        value,
        at: word.at.clone(),
    })
}
