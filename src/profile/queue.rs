// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a queue: packets, bytes or time, distinguished by the unit.

use std::fmt;
use std::str::FromStr;

use crate::abi::EMUD_RING_LEN;
use crate::text::units::{QuantityKind, Unit, shifted};
use crate::text::{Located, Mistake, Time, UnitError, Value, quantity};

/// tc's byte limits are 32 bits wide.
const MAX_BYTES: f64 = u32::MAX as f64;

const KIND: QuantityKind = QuantityKind {
    name: "a queue's length",
    plural: "queues",
    units: &[
        Unit::decimal("p", 0),
        Unit::decimal("packet", 0),
        Unit::decimal("packets", 0),
        Unit::decimal("B", 0),
        Unit::decimal("kB", 3),
        Unit::decimal("MB", 6),
        Unit::decimal("GB", 9),
        Unit::times("KiB", 1024.0),
        Unit::times("MiB", 1024.0 * 1024.0),
        Unit::times("GiB", 1024.0 * 1024.0 * 1024.0),
        Unit::decimal("ns", 0),
        Unit::decimal("us", 3),
        Unit::decimal("\u{b5}s", 3),
        Unit::decimal("\u{3bc}s", 3),
        Unit::decimal("ms", 6),
        Unit::decimal("s", 9),
        Unit::times("min", 60e9),
    ],
    ignore_case: false,
    examples: "\"1000p\" (packets), \"256KiB\", \"200ms\"",
    usual: "p",
};

/// Limit of the backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Packets, the one on the wire included; 1..=65536.
    Packets(u32),
    /// Bytes on the wire not yet serialised, the arriving packet included.
    Bytes(u64),
    /// Longest wait in ns before a packet's own serialisation begins.
    Time(u64),
}

impl FromStr for Limit {
    type Err = UnitError;

    /// Rejects a limit of no packet at all; the bytes of a packet depend on the link.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (value, unit) = KIND.read_with_unit(text)?;
        match unit.name {
            "p" | "packet" | "packets" => packets(text, value),
            "B" | "kB" | "MB" | "GB" | "KiB" | "MiB" | "GiB" => bytes(text, value),
            _ => time(text),
        }
    }
}

fn packets(text: &str, value: f64) -> Result<Limit, UnitError> {
    if value.fract() != 0.0 {
        let help = format!("did you mean \"{}p\"?", value.ceil());
        return Err(UnitError::new(
            format!("`{text}` is not a whole number of packets"),
            help,
        ));
    }
    if value < 1.0 {
        return Err(too_small(text, "the smallest queue is \"1p\""));
    }
    if value > EMUD_RING_LEN.into() {
        return Err(UnitError::new(
            format!("`{text}` is too long"),
            format!("the limit is \"{EMUD_RING_LEN}p\""),
        ));
    }
    Ok(Limit::Packets(value as u32))
}

fn bytes(text: &str, value: f64) -> Result<Limit, UnitError> {
    if value < 1.0 {
        return Err(too_small(
            text,
            "give it a packet's bytes at least, \"1514B\" on Ethernet",
        ));
    }
    if value > MAX_BYTES {
        return Err(UnitError::new(
            format!("`{text}` is too long"),
            "the limit is 4 GiB less 1",
        ));
    }
    Ok(Limit::Bytes(value.round() as u64))
}

fn time(text: &str) -> Result<Limit, UnitError> {
    match text.parse()? {
        Time(0) => Err(too_small(
            text,
            "a queue in packets can be as short as \"1p\"",
        )),
        Time(ns) => Ok(Limit::Time(ns)),
    }
}

fn too_small(text: &str, help: &str) -> UnitError {
    UnitError::new(
        format!("a queue of `{text}` is smaller than one packet"),
        help,
    )
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Time(ns) => Time(ns).fmt(f),
            Self::Bytes(bytes) => match bytes {
                b if b >= 1 << 20 && b % (1 << 20) == 0 => write!(f, "{}MiB", b >> 20),
                b if b >= 1 << 10 && b % (1 << 10) == 0 => write!(f, "{}KiB", b >> 10),
                b if b >= 1000 && b % 100 == 0 => write!(f, "{}kB", shifted(b, 3)),
                b => write!(f, "{b}B"),
            },
        }
    }
}

/// Bytes, 1..=4 GiB less 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        no_bare_bytes(text)?;
        match text.parse()? {
            Limit::Bytes(bytes) => Ok(Self(bytes)),
            Limit::Packets(_) | Limit::Time(_) => Err(UnitError::new(
                format!("`{text}` is not a number of bytes"),
                "write bytes, such as \"32kB\", \"256KiB\"",
            )),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Limit::Bytes(self.0).fmt(f)
    }
}

/// Rejects a bare number where packets are not allowed: it may mean bytes.
pub(super) fn no_bare_bytes(text: &str) -> Result<(), UnitError> {
    let number = text.trim();
    if !number.parse::<f64>().is_ok_and(f64::is_finite) {
        return Ok(());
    }
    let help = format!("did you mean \"{number}B\"? (bytes look like \"32kB\", \"256KiB\")");
    Err(UnitError::new(format!("`{number}` has no unit"), help))
}

/// Returns whether it is 0 of some unit.
pub(super) fn is_nothing(text: &str) -> bool {
    KIND.read(text).is_ok_and(|value| value == 0.0)
}

/// Bytes that are not those of a queue, 1 at least.
pub(super) fn some_bytes(value: &Located<Value>, key: &str, example: &str) -> Result<u64, Mistake> {
    if let Value::Text(text) | Value::Number(text) = &value.value
        && (is_nothing(text) || text.parse() == Ok(0.0))
    {
        let title = format!("`{key}` is 0 bytes");
        let help = format!("leave it out, or write one byte at least, such as {key} = {example}");
        return Err(Mistake::new(&value.at, title, help));
    }
    quantity(value, key, example).map(|Bytes(bytes)| bytes)
}

/// Packets, 1..=65536.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packets(pub u32);

impl FromStr for Packets {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.parse()? {
            Limit::Packets(packets) => Ok(Self(packets)),
            Limit::Bytes(_) => Err(UnitError::new(
                format!("`{text}` is not a number of packets"),
                format!("`limit` counts packets: write bytes = \"{text}\""),
            )),
            Limit::Time(_) => Err(UnitError::new(
                format!("`{text}` is not a number of packets"),
                format!("`limit` counts packets: write time = \"{text}\""),
            )),
        }
    }
}
