// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats measured quantities with three digits.

pub use emud::text::count;

/// Formats ns as a duration: "12.3ms".
pub fn duration(ns: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    scaled(ns as f64, &units)
}

/// Formats bit/s as a rate: "1.25Gbit".
pub fn rate(bit_s: u64) -> String {
    let units = [
        (1e12, "Tbit"),
        (1e9, "Gbit"),
        (1e6, "Mbit"),
        (1e3, "kbit"),
        (1.0, "bit"),
    ];
    scaled(bit_s as f64, &units)
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units.len() - 1;
    // A value that rounds to 1000 of a unit is 1 of the next.
    let fits = |factor: f64| value / factor >= 0.9995;
    let unit = units.iter().position(|(f, _)| fits(*f)).unwrap_or(last);
    let (factor, name) = units[unit];
    let value = value / factor;
    let places = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.places$}");
    let text = if places > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_unit_that_fits() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1us"),
            (12_345, "12.3us"),
            (999_600, "1ms"),
            (250_000_000, "250ms"),
            (3_600_000_000_000, "3600s"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(rate(490_000_000), "490Mbit");
        assert_eq!(rate(1_234_567_890), "1.23Gbit");
    }
}
