// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured quantities, and their values for people: four digits, in the units that profiles have.

use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use crate::text::count;
use crate::text::{Percent, Rate, Time};

/// A measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Mean throughput.
    Throughput,
    /// Mean delay.
    DelayMean,
    /// Median of the delay.
    DelayP50,
    /// 99th percentile of the delay.
    DelayP99,
    /// Share of packets lost on the wire.
    Loss,
    /// Share of packets dropped by the queue.
    Drops,
    /// A figure that programs reported: the mean of a run.
    Metric,
}

/// Unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bits per second.
    BitS,
    /// Nanoseconds.
    Ns,
    /// A share, 0 to 1.
    Share,
    /// Unit that the program gave; it is a part of the name.
    OfProgram,
}

impl Quantity {
    /// Returns the unit of its values.
    pub fn unit(self) -> Unit {
        match self {
            Self::Throughput => Unit::BitS,
            Self::DelayMean | Self::DelayP50 | Self::DelayP99 => Unit::Ns,
            Self::Loss | Self::Drops => Unit::Share,
            Self::Metric => Unit::OfProgram,
        }
    }

    /// Returns its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::DelayMean => "delay mean",
            Self::DelayP50 => "delay p50",
            Self::DelayP99 => "delay p99",
            Self::Loss => "loss",
            Self::Drops => "queue drops",
            Self::Metric => "metric",
        }
    }

    /// Returns a value with its unit, as the tables of reports and comparisons show it.
    pub fn text(self, value: f64) -> String {
        match self.unit() {
            Unit::BitS if value < 0.0 => format!("-{}", rate(-value)),
            Unit::BitS => rate(value),
            Unit::Ns => time(value),
            Unit::Share => share(value),
            Unit::OfProgram => number(value),
        }
    }
}

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
