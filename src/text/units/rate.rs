// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates in bit/s, in tc's units.

use std::fmt;
use std::str::FromStr;

use super::{Number, QuantityKind, Unit, UnitError, shifted};

/// A rate in bit/s, 1..=10^12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub u64);

impl Rate {
    pub(crate) const MAX: Self = Self(1_000_000_000_000);
}

const KIND: QuantityKind = QuantityKind {
    name: "a rate",
    plural: "rates",
    units: &[
        Unit::decimal("bit", 0),
        Unit::decimal("kbit", 3),
        Unit::decimal("Mbit", 6),
        Unit::decimal("Gbit", 9),
        Unit::decimal("Tbit", 12),
        Unit::times("Kibit", 1024.0),
        Unit::times("Mibit", 1024.0 * 1024.0),
        Unit::times("Gibit", 1024.0 * 1024.0 * 1024.0),
    ],
    ignore_case: true,
    examples: "\"384kbit\", \"1.5Mbit\", \"10Gbit\"",
    usual: "Mbit",
};

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        refuse_bytes(text)?;
        let bits = match Number::split(text) {
            // Zero is zero in every unit.
            Some((number, "")) if number.in_unit(&Unit::decimal("", 0)) == 0.0 => 0.0,
            _ => KIND.read(text)?.round(),
        };
        if bits < 1.0 {
            let help = format!(
                "for an outage write state = \"down\"; without the key there is no limit; the \
                 slowest rate is \"1bit\"; {}",
                KIND.looks()
            );
            return Err(UnitError::new(
                format!("a rate of `{text}` lets nothing through"),
                help,
            ));
        }
        if bits > Self::MAX.0 as f64 {
            let help = format!("the fastest rate is \"1Tbit\"; {}", KIND.looks());
            return Err(UnitError::new(format!("`{text}` is too fast"), help));
        }
        Ok(Self(bits as u64))
    }
}

/// Units of other programs, and their value in bits.
const OTHERS: [(&str, f64, &str); 12] = [
    ("b/s", 1.0, "bit"),
    ("kb/s", 1.0, "kbit"),
    ("Mb/s", 1.0, "Mbit"),
    ("Gb/s", 1.0, "Gbit"),
    ("B/s", 8.0, "bit"),
    ("kB/s", 8.0, "kbit"),
    ("KB/s", 8.0, "kbit"),
    ("MB/s", 8.0, "Mbit"),
    ("GB/s", 8.0, "Gbit"),
    ("KiB/s", 8.0, "Kibit"),
    ("MiB/s", 8.0, "Mibit"),
    ("GiB/s", 8.0, "Gibit"),
];

/// Rejects the bps family, which tc reads as bytes per second and most people as bits.
fn refuse_bytes(text: &str) -> Result<(), UnitError> {
    const BYTES: [(&str, &str); 7] = [
        ("bps", "bit"),
        ("kbps", "kbit"),
        ("mbps", "Mbit"),
        ("gbps", "Gbit"),
        ("kibps", "Kibit"),
        ("mibps", "Mibit"),
        ("gibps", "Gibit"),
    ];
    let Some((number, name)) = Number::split(text) else {
        return Ok(());
    };
    let times = |factor| number.in_unit(&Unit::times("", factor));
    if let Some((_, factor, bit)) = OTHERS.iter().find(|(other, ..)| *other == name) {
        let bytes = if *factor > 1.0 {
            ", which is the same rate"
        } else {
            ""
        };
        let help = format!("write \"{}{bit}\"{bytes}; {}", times(*factor), KIND.looks());
        return Err(UnitError::new(
            format!("`{name}` is not a unit of a rate"),
            help,
        ));
    }
    let Some((_, bit)) = BYTES.iter().find(|(bps, _)| bps.eq_ignore_ascii_case(name)) else {
        return Ok(());
    };
    let eightfold = times(8.0);
    let help = format!(
        "write \"{}{bit}\" for bits a second, or \"{eightfold}{bit}\" for that many bytes \
         a second (which is how tc reads `{name}`)",
        number.text
    );
    Err(UnitError::new(
        format!("`{name}` may mean bits or bytes a second"),
        help,
    ))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (places, unit) = match self.0 {
            0..1_000 => (0, "bit"),
            1_000..1_000_000 => (3, "kbit"),
            1_000_000..1_000_000_000 => (6, "Mbit"),
            1_000_000_000..1_000_000_000_000 => (9, "Gbit"),
            _ => (12, "Tbit"),
        };
        write!(f, "{}{unit}", shifted(self.0, places))
    }
}
