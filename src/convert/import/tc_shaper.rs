// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate that a tbf, or a class of htb, gives to a netem beside it.

use super::tc_command::{Made, Word, Words, begins};
use super::tc_units::{rate_bits, size, time_ns, whole};
use crate::text::Mistake;

/// What it makes of the link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shaper {
    pub kind: String,
    /// As tc counts, bit/s.
    pub bits: f64,
    pub burst: u32,
    /// Bytes that wait in front of it, or the longest wait in ns; of htb neither.
    pub limit: Option<Limit>,
    pub overhead: i32,
    pub mpu: u32,
    pub is_atm: bool,
    /// What it has beside that.
    pub others: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Bytes(u32),
    Ns(u64),
}

/// In tc's order; the first that begins with a word is meant by it.
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
    /// `None`: this is no shaper.
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
                Some("latency") => shaper.limit = Some(Limit::Ns(time_ns(&value("400ms")?)?)),
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
                // Of them none changes what arrives when.
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

/// An option's value, of an option that is not known here.
fn skip(words: &mut Words) {
    words.number();
}

/// Bytes; behind a slash the cell's, which tc prints.
fn burst(word: &Word) -> Result<u32, Mistake> {
    let value = word.value.split('/').next().unwrap_or_default();
    size(&Word {
        value,
        at: word.at.clone(),
    })
}
