// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probabilities, written in percent.

use std::fmt;
use std::str::FromStr;

use super::{Number, Unit, UnitError, comma};

/// A probability, 0.0..=1.0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

const LOOKS: &str = "probabilities look like \"0.5%\", \"1%\"";
const PERCENT: Unit = Unit::decimal("%", -2);

impl Percent {
    /// Rounds to eight decimals, or to six digits if these are less.
    pub fn rounded(self) -> Self {
        let Self(share) = self;
        Self(match share < 0.01 {
            true => format!("{share:.5e}").parse().unwrap_or(share),
            false => (share * 1e8).round() / 1e8,
        })
    }
}

impl FromStr for Percent {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if let Some(error) = comma(text) {
            return Err(error);
        }
        let Some((number, unit)) = Number::split(text) else {
            return Err(UnitError::new(
                format!("`{text}` is not a probability"),
                LOOKS,
            ));
        };
        if number.is_negative() {
            return Err(UnitError::new(
                format!("`{text}` is negative"),
                format!("a probability is from \"0%\" to \"100%\"; {LOOKS}"),
            ));
        }
        let probability = number.in_unit(&PERCENT);
        match unit {
            "%" => {}
            "" if probability == 0.0 => {}
            "" => return Err(no_sign(number.text, probability)),
            _ => {
                let problem = format!("`{unit}` is not a percent sign");
                let help = format!("did you mean \"{}%\"? ({LOOKS})", number.text);
                return Err(UnitError::new(problem, help));
            }
        }
        if probability > 1.0 {
            let help = "the most is \"100%\": every packet";
            return Err(UnitError::new(format!("`{text}` is more than 100 %"), help));
        }
        Ok(Self(probability))
    }
}

fn no_sign(number: &str, as_percent: f64) -> UnitError {
    let help = if as_percent * 100.0 < 1.0 {
        let as_share = Percent(as_percent * 100.0);
        format!("write \"{number}%\", or \"{as_share}\" if it is a share of 1")
    } else {
        format!("write \"{number}%\"")
    };
    UnitError::new(format!("`{number}` has no percent sign"), help)
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 {
            return write!(f, "0%");
        }
        // The shortest digits that read back to this value, with the point moved by two.
        let text = format!("{:e}", self.0);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent = exponent.parse::<i32>().unwrap_or(0) + 2;
        let digits = mantissa.replace('.', "");
        let point = 1 + exponent;
        if point < -8 {
            return write!(f, "{mantissa}e{exponent}%");
        }
        if point <= 0 {
            let zeros = "0".repeat(point.unsigned_abs() as usize);
            return write!(f, "0.{zeros}{digits}%");
        }
        let point = point as usize;
        match digits.len() {
            len if len <= point => write!(f, "{digits}{}%", "0".repeat(point - len)),
            _ => write!(f, "{}.{}%", &digits[..point], &digits[point..]),
        }
    }
}
