// SPDX-License-Identifier: MIT OR Apache-2.0
//! RED and what was made of it: A-RED and RIO.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::ser::Error;
use serde::{Serialize, Serializer};

use crate::profile::kinds::{Numbers, Share, SomeTime};
use crate::profile::queue::{Limit, no_bare_bytes};
use crate::text::{At, Kind, Located, Mistake, Reader, UnitError, Value, number, quantity, table};

table! {
    /// Floyd and Jacobson 1993.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    #[schemars(inline)]
    pub struct Red {
        /// Average backlog from which packets are dropped.
        #[serde(rename = "min_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        min: Length = Length::Bytes(0), "min" as Backlog;
        /// Average backlog from which all are; in the same unit as `min`, and more.
        #[serde(rename = "max_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        max: Length = Length::Bytes(0), "max" as Backlog;
        /// Share dropped just below `max`, 0.0..=1.0; tc-red(8)'s.
        probability: f64 = 0.02, "probability" as Share;
        /// Of the newest length in the average, above 0.0, at most 1.0; the paper's.
        weight: f64 = 0.002, "weight" as Weight;
    }
    beside {
        /// Mark instead of dropping where the sender understands it.
        ecn: bool = false;
    }
    struct RedDraft {}
}

table! {
    /// Floyd, Gummadi and Shenker 2001; the defaults are theirs and ns-2's.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    #[schemars(inline)]
    pub struct Ared {
        /// Average backlog to aim at, between the thresholds: `min` is a half of it, `max` three.
        #[serde(flatten, serialize_with = "around")]
        #[schemars(with = "Thresholds")]
        target: Length = Length::Time(5_000_000), "target" as Backlog;
        /// Of the newest length in the average; by default the one of which a second's packets
        /// leave 1/e.
        #[schemars(with = "f64")]
        weight: Option<f64> = None, "weight" as Weight;
        /// Share dropped just below `max` at first, 0.0..=1.0.
        probability: f64 = 0.1, "probability" as Share;
        /// Between two moves of the probability, ns.
        interval_ns: u64 = 500_000_000, "interval" as SomeTime;
        /// Added to the probability, above 0.0, at most 1.0.
        alpha: f64 = 0.01, "alpha" as Weight;
        /// What is left of the probability, above 0.0, at most 1.0.
        beta: f64 = 0.9, "beta" as Weight;
    }
    beside {
        ecn: bool = false;
    }
    struct AredDraft {}
}

table! {
    /// Clark and Fang 1998.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    #[schemars(inline)]
    pub struct Rio {
        /// Average backlog of all packets from which those that are not assured are dropped.
        #[serde(rename = "min_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        min: Length = Length::Bytes(0), "min" as Backlog;
        #[serde(rename = "max_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        max: Length = Length::Bytes(0), "max" as Backlog;
        probability: f64 = 0.1, "probability" as Share;
        /// Average backlog of assured packets from which those are dropped.
        #[serde(rename = "assured_min_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        assured_min: Length = Length::Bytes(0), "assured-min" as Backlog;
        #[serde(rename = "assured_max_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        assured_max: Length = Length::Bytes(0), "assured-max" as Backlog;
        assured_probability: f64 = 0.02, "assured-probability" as Share;
        /// DSCPs of assured packets, bit n for DSCP n. The default is AF11, AF21, AF31 and AF41 (RFC 2597).
        #[serde(serialize_with = "list")]
        #[schemars(with = "Vec<u64>")]
        assured: u64 = 1 << 10 | 1 << 18 | 1 << 26 | 1 << 34, "assured" as Codes;
        weight: f64 = 0.002, "weight" as Weight;
    }
    beside {
        ecn: bool = false;
    }
    struct RioDraft {}
}

/// Length of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// On the wire.
    Bytes(u64),
    /// ns to serialise it.
    Time(u64),
}

impl Length {
    /// Returns the time in ns, if it is one.
    pub fn ns(self) -> Option<u64> {
        match self {
            Self::Time(ns) => Some(ns),
            Self::Bytes(_) => None,
        }
    }
}

impl FromStr for Length {
    type Err = UnitError;

    /// Packets are not taken: the average is one of the backlog's bytes, which is what is known.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        no_bare_bytes(text)?;
        match text.parse()? {
            Limit::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            Limit::Time(ns) => Ok(Self::Time(ns)),
            Limit::Packets(packets) => Err(UnitError::new(
                format!("`{text}` counts packets"),
                format!(
                    "the average is of bytes: for packets of 1500 bytes write \"{}B\", or a time",
                    u64::from(packets) * 1514
                ),
            )),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) => Limit::Bytes(bytes).fmt(f),
            Self::Time(ns) => Limit::Time(ns).fmt(f),
        }
    }
}

/// Serialises a length that has been decoded, and so is a time.
pub(super) fn in_ns<S: Serializer>(length: &Length, to: S) -> Result<S::Ok, S::Error> {
    let ns = length.ns();
    to.serialize_u64(ns.ok_or_else(|| S::Error::custom("bytes without a rate"))?)
}

/// The thresholds of adaptive RED around its target.
#[derive(Serialize, JsonSchema)]
struct Thresholds {
    /// A half of the target.
    min_ns: u64,
    /// Three halves of it.
    max_ns: u64,
}

fn around<S: Serializer>(target: &Length, to: S) -> Result<S::Ok, S::Error> {
    let ns = target.ns();
    let min_ns = ns.ok_or_else(|| S::Error::custom("bytes without a rate"))? / 2;
    let max_ns = 3 * min_ns;
    Thresholds { min_ns, max_ns }.serialize(to)
}

fn list<S: Serializer>(codes: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(listed(*codes))
}

impl Rio {
    /// Returns the DSCPs of assured packets.
    pub fn codes(&self) -> impl Iterator<Item = u64> {
        listed(self.assured)
    }
}

fn listed(codes: u64) -> impl Iterator<Item = u64> {
    (0..64).filter(move |code| codes >> code & 1 == 1)
}

/// A length in bytes or in time.
pub(crate) struct Backlog;
/// A number above 0, at most 1.
pub(crate) struct Weight;
/// Differentiated services code points.
pub(crate) struct Codes;

type Threshold = Option<Located<Length>>;

impl Reader {
    pub(super) fn finish_red(&mut self, draft: &RedDraft, at: &At, ecn: bool) -> Option<Red> {
        self.thresholds(at, "red", ("min", &draft.min), ("max", &draft.max))
            .then(|| Red {
                ecn,
                ..draft.values()
            })
    }

    pub(super) fn finish_rio(&mut self, draft: &RioDraft, at: &At, ecn: bool) -> Option<Rio> {
        let (min, max) = (("min", &draft.min), ("max", &draft.max));
        let assured_min = ("assured-min", &draft.assured_min);
        let assured_max = ("assured-max", &draft.assured_max);
        let both = self.thresholds(at, "rio", min, max)
            && self.thresholds(at, "rio", assured_min, assured_max);
        both.then(|| Rio {
            ecn,
            ..draft.values()
        })
    }

    /// Returns whether there are two of one unit; and a mistake if they are in the wrong order.
    fn thresholds(
        &mut self,
        at: &At,
        manager: &str,
        (min_key, min): (&str, &Threshold),
        (max_key, max): (&str, &Threshold),
    ) -> bool {
        let (Some(min), Some(max)) = (min, max) else {
            let help = format!(
                "give the average backlog from which some packets are dropped, and from which all: {min_key} \
                 = \"30kB\", {max_key} = \"90kB\""
            );
            let title = format!("aqm = \"{manager}\" without `{min_key}` and `{max_key}`");
            // One that could not be read has been answered.
            if self.mistakes.is_empty() {
                self.mistake(at, title, help);
            }
            return false;
        };
        let above = match (min.value, max.value) {
            (Length::Bytes(min), Length::Bytes(max)) | (Length::Time(min), Length::Time(max)) => {
                max > min
            }
            _ => {
                let help = "write both as bytes or both as times";
                let title = format!("`{min_key}` and `{max_key}` are in different units");
                self.mistake(&max.at, title, help);
                return false;
            }
        };
        if !above {
            let title = format!("a `{max_key}` of {} is not above `{min_key}`", max.value);
            let help = format!(
                "`{min_key}` is {}; the paper takes at least twice that",
                min.value
            );
            self.mistake(&max.at, title, help);
        }
        true
    }
}

impl Kind for Backlog {
    type Value = Length;

    fn read(value: &Located<Value>, key: &str) -> Result<Length, Mistake> {
        quantity(value, key, "\"30kB\" or \"20ms\"")
    }

    fn text(length: &Length) -> String {
        format!("\"{length}\"")
    }
}

impl Kind for Weight {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        let help = format!("write a number above 0, at most 1, such as {key} = 0.002");
        number(value, key, f64::MIN_POSITIVE..=1.0, &help)
    }

    fn text(weight: &f64) -> String {
        weight.to_string()
    }
}

impl Kind for Codes {
    type Value = u64;

    /// As text too, separated by spaces or commas, which is what `emud set` gives.
    fn read(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
        let numbers = match &value.value {
            Value::Text(text) => text
                .split([' ', ','])
                .filter(|part| !part.is_empty())
                .map(|part| part.parse().ok())
                .collect::<Option<Vec<u64>>>(),
            _ => Some(Numbers::read(value, key)?),
        };
        let codes = numbers.filter(|codes| codes.iter().all(|code| *code < 64));
        let Some(codes) = codes else {
            let title = "a DSCP is a number from 0 to 63";
            let help = format!("write {key} = [10, 18] for AF11 and AF21");
            return Err(Mistake::new(&value.at, title, help));
        };
        Ok(codes.iter().fold(0, |set, code| set | 1 << code))
    }

    fn text(codes: &u64) -> String {
        Numbers::text(&listed(*codes).collect())
    }
}
