// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities as tc reads them (iproute2: lib/utils.c, lib/utils_math.c), which differs from
//! profiles: bare numbers are valid, `bps` is bytes, sizes are powers of 1024.

use super::shell::Word;
use crate::text::units::{QuantityKind, Unit};
use crate::text::{Mistake, Rate, Time};

const TIME: QuantityKind = QuantityKind {
    name: "a time",
    plural: "times",
    units: &[
        Unit::decimal("ms", 6),
        Unit::decimal("s", 9),
        Unit::decimal("sec", 9),
        Unit::decimal("secs", 9),
        Unit::decimal("msec", 6),
        Unit::decimal("msecs", 6),
        Unit::decimal("us", 3),
        Unit::decimal("usec", 3),
        Unit::decimal("usecs", 3),
        Unit::decimal("ns", 0),
        Unit::decimal("nsec", 0),
        Unit::decimal("nsecs", 0),
    ],
    ignore_case: true,
    examples: "100ms, 800us, 1.5s",
    usual: "ms",
};

const RATE: QuantityKind = QuantityKind {
    name: "a rate",
    plural: "rates",
    units: &[
        Unit::decimal("bit", 0),
        Unit::times("Kibit", 1024.0),
        Unit::decimal("kbit", 3),
        Unit::times("mibit", 1_048_576.0),
        Unit::decimal("mbit", 6),
        Unit::times("gibit", 1_073_741_824.0),
        Unit::decimal("gbit", 9),
        Unit::times("tibit", 1_099_511_627_776.0),
        Unit::decimal("tbit", 12),
        Unit::times("Bps", 8.0),
        Unit::times("KiBps", 8.0 * 1024.0),
        Unit::times("KBps", 8e3),
        Unit::times("MiBps", 8.0 * 1_048_576.0),
        Unit::times("MBps", 8e6),
        Unit::times("GiBps", 8.0 * 1_073_741_824.0),
        Unit::times("GBps", 8e9),
        Unit::times("TiBps", 8.0 * 1_099_511_627_776.0),
        Unit::times("TBps", 8e12),
    ],
    ignore_case: true,
    examples: "5kbit, 1mbit, 125KBps (bytes a second)",
    usual: "kbit",
};

/// `kbit` is also a size: bits of 1024, an eighth of a `kb`.
const SIZE: QuantityKind = QuantityKind {
    name: "a size",
    plural: "sizes",
    units: &[
        Unit::decimal("b", 0),
        Unit::times("k", 1024.0),
        Unit::times("kb", 1024.0),
        Unit::times("kbit", 128.0),
        Unit::times("m", 1_048_576.0),
        Unit::times("mb", 1_048_576.0),
        Unit::times("mbit", 131_072.0),
        Unit::times("g", 1_073_741_824.0),
        Unit::times("gb", 1_073_741_824.0),
        Unit::times("gbit", 134_217_728.0),
    ],
    ignore_case: true,
    examples: "1000, 10k",
    usual: "",
};

const PERCENT: Unit = Unit::decimal("%", -2);

/// Reads `kind`, or a number without a unit, for which tc uses the base unit.
fn read(word: &Word, kind: &QuantityKind) -> Result<f64, Mistake> {
    match bare(word.value) {
        Some(value) => Ok(value),
        None => kind
            .read(word.value)
            .map_err(|error| Mistake::unit(&word.at, error)),
    }
}

/// Reads a plain number.
fn bare(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Reads nanoseconds, up to an hour, the maximum of emud's delay.
pub(crate) fn time_ns(word: &Word) -> Result<u64, Mistake> {
    let ns = read(word, &TIME)?;
    if ns > Time::MAX.0 as f64 {
        let title = format!("`{}` is too long", word.value);
        return Err(Mistake::new(
            &word.at,
            title,
            "emud's maximum delay is one hour",
        ));
    }
    // Like tc, which cuts off the fraction of a nanosecond.
    Ok(ns as u64)
}

/// Returns the same for the options of which tc keeps microseconds: those are also meant without a unit.
pub(crate) fn time_us(word: &Word) -> Result<u64, Mistake> {
    let ns = time_ns(word)?;
    Ok(match is_bare(word) {
        true => ns.saturating_mul(1000),
        false => ns,
    })
}

/// Returns whether `word` has no unit: its meaning changed between versions of iproute2.
pub(crate) fn is_bare(word: &Word) -> bool {
    bare(word.value).is_some_and(|value| value != 0.0)
}

/// Reads bits per second; netem uses whole bytes.
pub(crate) fn rate_bits(word: &Word) -> Result<f64, Mistake> {
    if word.value.contains('%') {
        return Err(Mistake::new(
            &word.at,
            format!("`{}` is a share of the device's speed", word.value),
            "write the rate itself, such as 100mbit (ethtool shows the device's speed)",
        ));
    }
    let bits = read(word, &RATE)?;
    if bits > Rate::MAX.0 as f64 {
        let title = format!("`{}` is too fast", word.value);
        return Err(Mistake::new(
            &word.at,
            title,
            "emud's fastest rate is 1tbit",
        ));
    }
    Ok(bits)
}

/// Reads a number of packets or bytes with tc's suffixes.
pub(crate) fn size(word: &Word) -> Result<u32, Mistake> {
    let size = read(word, &SIZE)?;
    if size > f64::from(u32::MAX) {
        let title = format!("`{}` is too large", word.value);
        return Err(Mistake::new(&word.at, title, "tc takes up to 4294967295"));
    }
    Ok(size as u32)
}

/// Reads a probability; the percent sign is optional.
pub(crate) fn percent(word: &Word) -> Result<f64, Mistake> {
    let number = word.value.strip_suffix('%').unwrap_or(word.value);
    let looks = "probabilities are from 0% to 100%, such as 0.3%";
    let Some(value) = bare(number) else {
        let title = format!("`{}` is not a probability", word.value);
        return Err(Mistake::new(&word.at, title, looks));
    };
    if value > 100.0 {
        let title = format!("`{}` is more than 100 %", word.value);
        return Err(Mistake::new(&word.at, title, looks));
    }
    // In decimal, so that "0.3%" is the same 0.003 as in a profile.
    Ok(PERCENT.of(number).unwrap_or(value / 100.0))
}

/// Reads a whole number like C: 0x for hexadecimal, a leading 0 for octal.
pub(crate) fn whole(word: &Word, range: std::ops::RangeInclusive<i64>) -> Result<i64, Mistake> {
    let text = word.value;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (radix, digits) = match digits {
        d if d.starts_with("0x") || d.starts_with("0X") => (16, &d[2..]),
        d if d.starts_with('0') && d.len() > 1 => (8, &d[1..]),
        d => (10, d),
    };
    // from_str_radix would accept a second sign.
    let value = match digits.starts_with(['+', '-']) {
        true => None,
        false => i64::from_str_radix(digits, radix).ok(),
    };
    match value.map(|value| sign * value) {
        Some(value) if range.contains(&value) => Ok(value),
        Some(_) => Err(Mistake::new(
            &word.at,
            format!("`{text}` is out of range"),
            format!("write a number from {} to {}", range.start(), range.end()),
        )),
        None => Err(Mistake::new(
            &word.at,
            format!("`{text}` is not a whole number"),
            format!("write a number from {} to {}", range.start(), range.end()),
        )),
    }
}
