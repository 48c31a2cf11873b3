// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of values that several tables of a profile have.

use super::queue::{Bytes, Packets, is_nothing};
use crate::text::{
    Distance, Kind, Located, Mistake, Percent, Rate, Span, Time, Value, Word, duration, kinds,
    quantity, word,
};

/// A share or probability, 0.0..=1.0, in percent.
pub(crate) struct Share;
/// A share below 1.0: at 1.0 one packet would decide for all.
pub(crate) struct Correlation;
/// ns, up to an hour.
pub(crate) struct Duration;
/// ns, 1 at least.
pub(crate) struct SomeTime;
/// Bytes, 1 at least, 32 bits.
pub(crate) struct SomeBytes;
/// Packets, 1..=65536, with or without the unit.
pub(crate) struct SomePackets;
/// A whole number between bounds.
pub(crate) struct Count<const MIN: u32, const MAX: u32>;
/// A share of bits as a bare number, 0.0..=1.0.
pub(crate) struct BitErrorRate;
/// bit/s, 1 at least.
pub(crate) struct BitRate;
/// Bytes a packet, which may be negative.
pub(crate) struct Overhead;
pub(crate) struct Text;
/// Whole numbers.
pub(crate) struct Numbers;
pub(crate) struct Flag;
/// One of a few names.
pub(crate) struct OneOf<T>(std::marker::PhantomData<T>);

pub(super) fn quoted(value: impl std::fmt::Display) -> String {
    format!("\"{value}\"")
}

impl Kind for Share {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        quantity(value, key, "\"0.5%\"").map(|Percent(share)| share)
    }

    fn text(share: &f64) -> String {
        quoted(Percent(*share))
    }
}

impl Kind for Correlation {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        let Percent(share) = quantity(value, key, "\"25%\"")?;
        if share < 1.0 {
            return Ok(share);
        }
        let help = "at 100 % all packets share the fate of the first: write less, such as \"25%\"";
        let title = "a correlation is below 100 %";
        Err(Mistake::new(&value.at, title, help))
    }

    fn text(share: &f64) -> String {
        quoted(Percent(*share))
    }
}

impl Kind for Duration {
    type Value = u64;

    fn read(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
        duration(value, key)
    }

    fn text(ns: &u64) -> String {
        quoted(Time(*ns))
    }
}

impl Kind for SomeTime {
    type Value = u64;

    fn read(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
        match duration(value, key)? {
            0 => Err(Mistake::new(
                &value.at,
                format!("`{key}` is zero"),
                "give it some time, such as \"5ms\", or leave it out for the usual",
            )),
            ns => Ok(ns),
        }
    }

    fn text(ns: &u64) -> String {
        quoted(Time(*ns))
    }
}

impl Kind for SomeBytes {
    type Value = u32;

    fn read(value: &Located<Value>, key: &str) -> Result<u32, Mistake> {
        super::queue::some_bytes(value, key, "\"64kB\"").map(|bytes| bytes as u32)
    }

    fn text(bytes: &u32) -> String {
        quoted(Bytes(u64::from(*bytes)))
    }
}

impl Kind for SomePackets {
    type Value = u32;

    fn read(value: &Located<Value>, key: &str) -> Result<u32, Mistake> {
        if let Value::Number(text) = &value.value {
            let with_unit = Located {
                value: Value::Text(format!("{text}p")),
                at: value.at.clone(),
            };
            return Self::read(&with_unit, key);
        }
        if let Value::Text(text) = &value.value
            && is_nothing(text)
        {
            let help = format!("leave it out for any number, or write {key} = 1");
            return Err(Mistake::new(&value.at, "a slot of 0 packets", help));
        }
        quantity(value, key, "32").map(|Packets(packets)| packets)
    }

    fn text(packets: &u32) -> String {
        packets.to_string()
    }
}

impl<const MIN: u32, const MAX: u32> Kind for Count<MIN, MAX> {
    type Value = u32;

    fn read(value: &Located<Value>, key: &str) -> Result<u32, Mistake> {
        let help = || format!("write a whole number from {MIN} to {MAX}, without a unit");
        let (Value::Number(text) | Value::Text(text)) = &value.value else {
            return Err(Mistake::wrong_kind(value, key, help()));
        };
        let title = match text.parse::<i128>() {
            Ok(count) if (MIN.into()..=MAX.into()).contains(&count) => return Ok(count as u32),
            Ok(_) => format!("`{key}` of {text} is out of range"),
            Err(_) if text.parse::<f64>().is_ok() => format!("`{text}` is not a whole number"),
            Err(_) => format!("`{text}` is not a plain number"),
        };
        Err(Mistake::new(&value.at, title, help()))
    }

    fn text(count: &u32) -> String {
        count.to_string()
    }
}

impl Kind for Flag {
    type Value = bool;

    /// As text too, which is what `emud set` gives.
    fn read(value: &Located<Value>, key: &str) -> Result<bool, Mistake> {
        match &value.value {
            Value::Flag(flag) => Ok(*flag),
            Value::Text(text) if text == "true" => Ok(true),
            Value::Text(text) if text == "false" => Ok(false),
            _ => {
                let help = format!("write {key} = true or false");
                Err(Mistake::wrong_kind(value, key, help))
            }
        }
    }

    fn text(flag: &bool) -> String {
        flag.to_string()
    }
}

impl<T: Word> Kind for OneOf<T> {
    type Value = T;

    fn read(value: &Located<Value>, key: &str) -> Result<T, Mistake> {
        word(value, key)
    }

    fn text(value: &T) -> String {
        quoted(value.word())
    }
}

impl Kind for BitErrorRate {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        let (Value::Number(text) | Value::Text(text)) = &value.value else {
            return Err(wrong_kind(value, key, "1e-6"));
        };
        let (title, help) = match text.replace('_', "").parse::<f64>() {
            Ok(rate) if (0.0..=1.0).contains(&rate) => return Ok(rate),
            Ok(rate) if rate.is_finite() && rate > 1.0 => (
                "a bit-error rate of more than 1".to_owned(),
                format!("it is the share of wrong bits, from 0 to 1, such as {key} = 1e-6"),
            ),
            Ok(_) => (
                format!("`{key}` cannot be {text}"),
                format!("it is a number from 0 on, such as {key} = 1e-6"),
            ),
            Err(_) => (
                format!("`{text}` is not a number"),
                format!("write {key} = 1e-6"),
            ),
        };
        Err(Mistake::new(&value.at, title, help))
    }

    fn text(rate: &f64) -> String {
        format!("{rate:e}")
    }
}

impl Kind for Text {
    type Value = String;

    fn read(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
        match &value.value {
            Value::Text(text) | Value::Number(text) => Ok(text.clone()),
            _ => Err(wrong_kind(value, key, "\"...\"")),
        }
    }

    fn text(text: &String) -> String {
        toml::Value::String(text.clone()).to_string()
    }
}

impl Kind for Numbers {
    type Value = Vec<u64>;

    fn read(value: &Located<Value>, key: &str) -> Result<Vec<u64>, Mistake> {
        let Value::List(items) = &value.value else {
            return Err(wrong_kind(value, key, "[3, 7]"));
        };
        let one = |item| Count::<0, { u32::MAX }>::read(item, key).map(u64::from);
        items.iter().map(one).collect()
    }

    fn text(numbers: &Vec<u64>) -> String {
        format!("{numbers:?}")
    }
}

kinds! {
    /// ns, up to 100 years.
    Long: u64 = |value, key| quantity(value, key, "\"10s\"").map(|Span(ns)| ns), |ns| quoted(Time(*ns));
    /// Metres.
    Length: f64 = |value, key| quantity(value, key, "\"300km\"").map(|Distance(m)| m), |m| quoted(format_args!("{m}m"));
    /// A share of the speed of light, above 0.0.
    VelocityFactor: f64 = velocity_factor, |share| quoted(Percent(*share));
}

fn velocity_factor(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
    match quantity(value, key, "\"66%\"")? {
        Percent(share) if share > 0.0 => Ok(share),
        _ => {
            let help = "it is the propagation speed as a share of that of light in vacuum: \"66%\" \
                        in fibre, \"100%\" for radio";
            Err(Mistake::new(&value.at, format!("`{key}` is zero"), help))
        }
    }
}

fn wrong_kind(value: &Located<Value>, key: &str, example: &str) -> Mistake {
    Mistake::wrong_kind(value, key, format!("write {key} = {example}"))
}

impl Kind for BitRate {
    type Value = u64;

    fn read(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
        quantity(value, key, "\"1.5Mbit\"").map(|Rate(bits)| bits)
    }

    fn text(bits: &u64) -> String {
        quoted(Rate(*bits))
    }
}

impl Kind for Overhead {
    type Value = i32;

    fn read(value: &Located<Value>, key: &str) -> Result<i32, Mistake> {
        const RANGE: std::ops::RangeInclusive<i32> = -64..=4096;
        let (Value::Number(text) | Value::Text(text)) = &value.value else {
            return Err(Mistake::wrong_kind(
                value,
                key,
                "write bytes a packet, such as overhead = 18",
            ));
        };
        match text.parse::<i32>() {
            Ok(bytes) if RANGE.contains(&bytes) => Ok(bytes),
            Ok(_) => Err(Mistake::new(
                &value.at,
                format!("an overhead of {text} bytes is out of range"),
                "it is from -64 to 4096 bytes a packet",
            )),
            Err(_) => Err(Mistake::new(
                &value.at,
                format!("`{text}` is not a whole number of bytes"),
                "write bytes a packet from -64 to 4096, without a unit, such as overhead = 18",
            )),
        }
    }

    fn text(bytes: &i32) -> String {
        bytes.to_string()
    }
}
