// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured quantities for people: four digits, in the units that profiles have.

pub(crate) use crate::text::count;
use crate::text::{Percent, Rate, Time};

/// Bits per second: "12.34Mbit".
pub(crate) fn rate(bit_s: f64) -> String {
    Rate(whole(bit_s)).to_string()
}

/// Nanoseconds: "12.34ms".
pub(crate) fn time(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", Time(whole(ns.abs())))
}

/// Returns a share of 0 to 1 as "1.234%".
pub(crate) fn share(share: f64) -> String {
    let sign = if share < 0.0 { "-" } else { "" };
    format!("{sign}{}", Percent(four_digits(share.abs())))
}

/// Returns a number of any unit, such as "1.234" or "-5".
pub(crate) fn number(value: f64) -> String {
    four_digits(value).to_string()
}

fn whole(value: f64) -> u64 {
    four_digits(value).round() as u64
}

fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_the_unit_that_fits() {
        assert_eq!(rate(12_345_678.9), "12.35Mbit");
        assert_eq!(rate(0.0), "0bit");
        assert_eq!(time(20_049_999.0), "20.05ms");
        assert_eq!(time(-1_500.0), "-1.5us");
        assert_eq!(share(0.012_345_6), "1.235%");
        assert_eq!(share(-0.5), "-50%");
        assert_eq!(
            [1.23456, -5.0, 12346.0].map(number),
            ["1.235", "-5", "12350"]
        );
    }
}
