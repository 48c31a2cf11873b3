// SPDX-License-Identifier: MIT OR Apache-2.0
//! Amounts of data in bytes.

use std::str::FromStr;

use super::{QuantityKind, Unit, UnitError};

/// An amount of data in bytes, 1..=10^15.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

const MAX_BYTES: f64 = 1e15;

const KIND: QuantityKind = QuantityKind {
    name: "a size",
    plural: "sizes",
    units: &[
        Unit::decimal("B", 0),
        Unit::decimal("kB", 3),
        Unit::decimal("MB", 6),
        Unit::decimal("GB", 9),
        Unit::decimal("TB", 12),
        Unit::times("KiB", 1024.0),
        Unit::times("MiB", 1024.0 * 1024.0),
        Unit::times("GiB", 1024.0 * 1024.0 * 1024.0),
    ],
    ignore_case: false,
    examples: "\"256KiB\", \"100MB\", \"1.5GiB\"",
    usual: "MB",
};

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bytes = KIND.read(text)?.round();
        let bad = |problem: String| Err(UnitError::new(problem, KIND.looks()));
        match bytes {
            bytes if bytes < 1.0 => bad(format!("`{text}` is no data")),
            bytes if bytes > MAX_BYTES => bad(format!("`{text}` is more than 1000 TB")),
            bytes => Ok(Self(bytes as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("1B", 1),
            ("256KiB", 262_144),
            ("60MB", 60_000_000),
            ("1.5GiB", 1_610_612_736),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for (text, wanted) in [
            ("60", "`60` has no unit"),
            ("0B", "`0B` is no data"),
            ("2000TB", "`2000TB` is more than 1000 TB"),
            ("60Mb", "`Mb` is not a unit of a size"),
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert_eq!(error.problem, wanted);
        }
    }
}
