// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations.

use std::fmt;
use std::str::FromStr;

use super::{QuantityKind, Unit, UnitError, shifted};

/// A duration in whole ns, up to one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

/// A duration in ns with a fraction, up to one hour: a standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nanoseconds(pub f64);

impl Time {
    /// An hour.
    pub(crate) const MAX: Self = Self(3_600_000_000_000);
}

const KIND: QuantityKind = QuantityKind {
    name: "a duration",
    plural: "durations",
    units: &[
        Unit::decimal("ns", 0),
        Unit::decimal("us", 3),
        Unit::decimal("\u{b5}s", 3),  // micro sign
        Unit::decimal("\u{3bc}s", 3), // small mu
        Unit::decimal("ms", 6),
        Unit::decimal("s", 9),
        Unit::times("min", 60e9),
    ],
    ignore_case: false,
    examples: "\"50ms\", \"0.5ms\", \"800us\", \"1.2s\"",
    usual: "ms",
};

impl FromStr for Nanoseconds {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        spread(text)?;
        let ns = KIND.read(text)?;
        if ns > Time::MAX.0 as f64 {
            return Err(UnitError::new(
                format!("`{text}` is too long"),
                "the limit is one hour",
            ));
        }
        Ok(Self(ns))
    }
}

/// Rejects a mean and a jitter in one text.
fn spread(text: &str) -> Result<(), UnitError> {
    let signs = ["+-", "+/-", "\u{b1}"];
    let parts = signs.iter().find_map(|sign| text.split_once(sign));
    let Some((mean, jitter)) = parts else {
        return Ok(());
    };
    let help = format!(
        "write them as a table: delay = {{ mean = \"{}\", jitter = \"{}\" }}",
        mean.trim(),
        jitter.trim()
    );
    Err(UnitError::new(format!("`{text}` is two durations"), help))
}

impl FromStr for Time {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let Nanoseconds(ns) = text.parse()?;
        Ok(Self(ns.round() as u64))
    }
}

/// A duration that may be longer than an hour: up to 100 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub u64);

impl Span {
    /// Large enough for a time since 1970.
    pub const MAX_NS: u64 = 3_200_000_000_000_000_000;
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match KIND.read(text)? {
            ns if ns <= Self::MAX_NS as f64 => Ok(Self(ns.round() as u64)),
            _ => Err(UnitError::new(
                format!("`{text}` is too long"),
                "the limit is 100 years",
            )),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (places, unit) = match self.0 {
            0 => (0, "ms"),
            1..1_000 => (0, "ns"),
            1_000..1_000_000 => (3, "us"),
            1_000_000..1_000_000_000 => (6, "ms"),
            _ => (9, "s"),
        };
        write!(f, "{}{unit}", shifted(self.0, places))
    }
}

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 && (0.0..=Time::MAX.0 as f64).contains(&self.0) {
            return Time(self.0 as u64).fmt(f);
        }
        write!(f, "{}ns", self.0)
    }
}
