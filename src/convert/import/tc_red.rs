// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads tc's red (iproute2: tc/q_red.c, tc/tc_red.c).

use super::tc_made::{Made, begins};
use super::tc_units::{size, whole};
use crate::convert::tc_red::{AVERAGE_PACKET, log_of};
use crate::text::Mistake;

/// tc's default for `probability`.
const PROBABILITY: f64 = 0.02;

/// RED as the kernel runs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Red {
    /// Bytes.
    pub limit: u32,
    pub min: u32,
    pub max: u32,
    pub probability: f64,
    /// A power of 1/2.
    pub weight: f64,
    pub ecn: bool,
}

/// In tc's order: an abbreviation stands for the first match.
const OPTIONS: [&str; 11] = [
    "limit",
    "min",
    "max",
    "burst",
    "avpkt",
    "probability",
    "bandwidth",
    "ecn",
    "harddrop",
    "nodrop",
    "adaptive",
];

impl Red {
    /// Reads the options; `warnings` gets those without an equivalent.
    pub fn read(made: &mut Made, warnings: &mut Vec<String>) -> Result<Self, Mistake> {
        let at = made.kind.at.clone();
        let (mut limit, mut min, mut max) = (0, 0, 0);
        let (mut burst, mut average_packet, mut ewma) = (0, AVERAGE_PACKET, None);
        let (mut probability, mut ecn) = (PROBABILITY, false);
        let words = &mut made.options;
        while let Some(word) = words.next() {
            // tc prints the size of a queue with its unit, and other options as adaptive/adaptative.
            let option = OPTIONS.iter().find(|option| begins(word.value, option));
            let mut value = |example| words.argument(word.value, example);
            match option.copied() {
                Some("limit") => limit = size(&value("60KB")?)?,
                Some("min") => min = size(&value("15KB")?)?,
                Some("max") => max = size(&value("45KB")?)?,
                Some("burst") => burst = whole(&value("20")?, 0..=i64::from(u32::MAX))? as u32,
                Some("avpkt") => average_packet = size(&value("1000")?)?.max(1),
                Some("probability") => {
                    let word = value("0.02")?;
                    let parsed = word.value.parse().ok();
                    let parsed = parsed.filter(|value| (0.0..=1.0).contains(value));
                    probability = parsed.ok_or_else(|| {
                        let title = format!("`{}` is not a probability", word.value);
                        Mistake::new(&word.at, title, "red's are from 0.0 to 1.0, such as 0.02")
                    })?;
                }
                // Of the average in idle times; emud knows the rate.
                Some("bandwidth") => {
                    value("10mbit")?;
                }
                Some("ecn") => ecn = true,
                Some(other) => warnings.push(format!("`{other}` of red: {}", instead(other))),
                // `adaptative` in older versions.
                None if word.value == "adaptative" => {
                    warnings.push(format!("`adaptative` of red: {}", instead("adaptive")));
                }
                // What tc prints instead of a burst.
                None if word.value == "ewma" => {
                    ewma = Some(whole(&words.argument("ewma", "9")?, 0..=31)? as i32);
                }
                None => drop(words.number()),
            }
        }
        if made.shown && ewma.is_none() {
            warnings.push("probability and weight of red: tc prints them with -d only".to_owned());
        }
        let mistake = |title: &str, help: &str| Err(Mistake::new(&at, title, help));
        if limit == 0 {
            return mistake("red without `limit`", "write red limit 60KB avpkt 1000");
        }
        // tc's defaults.
        if max == 0 {
            max = limit / 4;
        }
        if min == 0 {
            min = max / 3;
        }
        if min == 0 || max <= min {
            let help = "write min and max in bytes, such as min 15KB max 45KB";
            return mistake("red's `max` is not above its `min`", help);
        }
        if burst == 0 {
            let sum = 2 * u64::from(min) + u64::from(max);
            burst = (sum / (3 * u64::from(average_packet))) as u32;
        }
        let log = ewma.or_else(|| log_of(min, burst, average_packet).map(|log| log as i32));
        let Some(log) = log else {
            let title = format!("red's `burst` of {burst} is too small for its `min`");
            let help = format!(
                "tc rejects it: write at least burst {}",
                min.div_ceil(average_packet)
            );
            return Err(Mistake::new(&at, title, help));
        };
        Ok(Self {
            limit,
            min,
            max,
            probability,
            weight: 0.5f64.powi(log),
            ecn,
        })
    }
}

fn instead(option: &str) -> &'static str {
    match option {
        "adaptive" => "the probability stays; aqm = \"ared\" adapts it to a target",
        "harddrop" => "above `max` emud marks packets whose senders support ECN",
        _ => "emud drops packets whose senders do not support ECN",
    }
}
