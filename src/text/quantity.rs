// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured quantities for people: three digits and the unit that fits.

type Units = [(&'static str, f64)];

const TIMES: &Units = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const RATES: &Units = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("Mbit", 1e6),
    ("Gbit", 1e9),
    ("Tbit", 1e12),
];

/// Formats ns as a duration: "12.3ms", "5ms".
pub fn time(ns: u64) -> String {
    short(ns as f64, TIMES)
}

/// Formats bit/s as a rate: "1.25Gbit", "5Mbit".
pub fn rate(bit_s: u64) -> String {
    short(bit_s as f64, RATES)
}

/// Formats ns with all three digits, for a column: "5.00ms".
pub(crate) fn full_time(ns: u64) -> String {
    let (number, unit) = digits(ns as f64, TIMES);
    number + unit
}

/// Formats bit/s with all three digits, for a column: "5.00Mbit".
pub(crate) fn full_rate(bit_s: f64) -> String {
    let (number, unit) = digits(bit_s, RATES);
    number + unit
}

fn short(value: f64, units: &Units) -> String {
    let (number, unit) = digits(value, units);
    let short = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => &number,
    };
    format!("{short}{unit}")
}

fn digits(value: f64, units: &Units) -> (String, &'static str) {
    // What rounds to 1000 of a unit is 1 of the next one.
    let fits = units.iter().rev().find(|(_, of)| value >= 0.9995 * of);
    let (unit, of) = *fits.unwrap_or(&units[0]);
    let figure = value / of;
    let places = match figure {
        _ if of == 1.0 => 0,
        f if f < 9.995 => 2,
        f if f < 99.95 => 1,
        _ => 0,
    };
    (format!("{figure:.places$}"), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_unit_that_fits() {
        for (ns, text, full) in [
            (0, "0ns", "0ns"),
            (999, "999ns", "999ns"),
            (1_000, "1us", "1.00us"),
            (12_345, "12.3us", "12.3us"),
            (999_600, "1ms", "1.00ms"),
            (250_000_000, "250ms", "250ms"),
            (3_600_000_000_000, "3600s", "3600s"),
        ] {
            assert_eq!(
                (time(ns), full_time(ns)),
                (text.to_owned(), full.to_owned())
            );
        }
        assert_eq!(rate(490_000_000), "490Mbit");
        assert_eq!(rate(1_234_567_890), "1.23Gbit");
        assert_eq!(full_rate(0.4), "0bit");
    }
}
