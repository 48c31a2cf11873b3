// SPDX-License-Identifier: MIT OR Apache-2.0
//! A decimal number and its unit.

use super::{UnitError, closest};

/// A unit: its value is `factor * 10^exponent` of the base unit.
pub(crate) struct Unit {
    pub name: &'static str,
    pub factor: f64,
    pub exponent: i32,
}

impl Unit {
    pub const fn decimal(name: &'static str, exponent: i32) -> Self {
        Self {
            name,
            factor: 1.0,
            exponent,
        }
    }

    pub const fn times(name: &'static str, factor: f64) -> Self {
        Self {
            name,
            factor,
            exponent: 0,
        }
    }

    /// Reads `number` in this unit; `None` if it is not a plain number.
    pub fn of(&self, number: &str) -> Option<f64> {
        match Number::split(number)? {
            (number, "") => Some(number.in_unit(self)),
            _ => None,
        }
    }
}

/// A number as written, kept in decimal so that a unit shifts it without rounding.
#[derive(Clone, Copy)]
pub(crate) struct Number<'a> {
    mantissa: &'a str,
    exponent: i32,
    negative: bool,
    /// Without the sign, as written.
    pub text: &'a str,
}

impl<'a> Number<'a> {
    /// Splits `text` into a number and the rest, without the blanks in between; `None` if there is
    /// no number.
    pub fn split(text: &'a str) -> Option<(Self, &'a str)> {
        let text = text.trim();
        let negative = text.starts_with('-');
        let text = text.strip_prefix('-').unwrap_or(text);
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(text);
        let mut end = whole;
        if text[end..].starts_with('.') {
            let fraction = digits(&text[end + 1..]);
            if fraction == 0 {
                return None;
            }
            end += 1 + fraction;
        }
        if end == 0 {
            return None;
        }
        let mantissa = &text[..end];
        let (exponent, length) = exponent_of(&text[end..]);
        end += length;
        let number = Self {
            mantissa,
            exponent,
            negative,
            text: &text[..end],
        };
        Some((number, text[end..].trim_start()))
    }

    /// Returns the value in the base unit, correctly rounded if the unit is a power of ten.
    pub fn in_unit(&self, unit: &Unit) -> f64 {
        let exponent = self.exponent.saturating_add(unit.exponent);
        // The mantissa is digits with at most one point: this always reads as a number.
        format!("{}e{exponent}", self.mantissa)
            .parse::<f64>()
            .unwrap_or(f64::NAN)
            * unit.factor
    }

    pub fn is_negative(&self) -> bool {
        self.negative && self.mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'))
    }
}

/// Returns the value and the length of an exponent such as `e-3`; 0 and 0 without one.
fn exponent_of(text: &str) -> (i32, usize) {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return (0, 0);
    };
    let sign = usize::from(rest.starts_with(['+', '-']));
    let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
    match rest[..sign + digits].parse() {
        Ok(exponent) if digits > 0 => (exponent, 1 + sign + digits),
        _ => (0, 0),
    }
}

/// How a kind of quantity is read.
pub(crate) struct QuantityKind {
    /// Name with its article: "a rate".
    pub name: &'static str,
    pub plural: &'static str,
    pub units: &'static [Unit],
    /// Whether "Kbit" is "kbit".
    pub ignore_case: bool,
    /// Examples of such quantities: `"50ms", "0.5s"`.
    pub examples: &'static str,
    /// The unit to suggest for a bare number.
    pub usual: &'static str,
}

impl QuantityKind {
    pub fn looks(&self) -> String {
        format!("{} look like {}", self.plural, self.examples)
    }

    /// Reads `text` into the base unit: finite and not negative.
    pub fn read(&self, text: &str) -> Result<f64, UnitError> {
        self.read_with_unit(text).map(|(value, _)| value)
    }

    /// Returns the same, with the unit it was written in.
    pub fn read_with_unit(&self, text: &str) -> Result<(f64, &'static Unit), UnitError> {
        if let Some(error) = comma(text) {
            return Err(error);
        }
        let Some((number, unit)) = Number::split(text) else {
            return Err(UnitError::new(
                format!("`{text}` is not {}", self.name),
                self.looks(),
            ));
        };
        if number.is_negative() {
            let help = format!("{} cannot be below zero; {}", self.name, self.looks());
            return Err(UnitError::new(format!("`{text}` is negative"), help));
        }
        let unit = self.unit(&number, unit)?;
        let value = number.in_unit(unit);
        if !value.is_finite() {
            return Err(UnitError::new(
                format!("`{text}` is too large"),
                self.looks(),
            ));
        }
        Ok((value, unit))
    }

    fn unit(&self, number: &Number, name: &str) -> Result<&'static Unit, UnitError> {
        if name.is_empty() {
            let help = format!(
                "did you mean \"{}{}\"? ({})",
                number.text,
                self.usual,
                self.looks()
            );
            return Err(UnitError::new(
                format!("`{}` has no unit", number.text),
                help,
            ));
        }
        let same =
            |u: &&Unit| u.name == name || (self.ignore_case && u.name.eq_ignore_ascii_case(name));
        if let Some(unit) = self.units.iter().find(same) {
            return Ok(unit);
        }
        let help = match self.nearest(name) {
            _ if self.in_hours(name) => {
                let hour = Unit::times("h", 3600.0);
                let seconds = number.in_unit(&hour);
                format!("write \"{seconds}s\": {} is not given in hours", self.name)
            }
            Some(near) => format!("did you mean \"{}{near}\"? ({})", number.text, self.looks()),
            None => self.looks(),
        };
        Err(UnitError::new(
            format!("`{name}` is not a unit of {}", self.name),
            help,
        ))
    }

    /// Returns whether `name` means hours, which no time in a profile has.
    fn in_hours(&self, name: &str) -> bool {
        let hours = ["h", "hr", "hrs", "hour", "hours"];
        self.units.iter().any(|unit| unit.name == "s") && hours.contains(&name)
    }

    /// Returns the unit that `name` shortens ("M"), lengthens ("Mbit/s") or misspells.
    fn nearest(&self, name: &str) -> Option<&'static str> {
        let lower = name.to_lowercase();
        let names = || self.units.iter().map(|unit| unit.name);
        names()
            .find(|unit| unit.eq_ignore_ascii_case(name))
            .or_else(|| names().find(|unit| unit.to_lowercase().starts_with(&lower)))
            .or_else(|| {
                names()
                    .filter(|unit| lower.starts_with(&unit.to_lowercase()))
                    .max_by_key(|unit| unit.len())
            })
            .or_else(|| closest(name, names()))
    }
}

/// Returns the mistake for a comma between digits, which may be a decimal point or a separator of
/// thousands.
pub(super) fn comma(text: &str) -> Option<UnitError> {
    let text = text.trim();
    let (whole, rest) = text.split_once(',')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = whole.bytes().all(|b| b.is_ascii_digit()) && !whole.is_empty();
    if !is_number || digits == 0 {
        return None;
    }
    let help = match digits {
        3 => format!("write \"{whole}.{rest}\", or \"{whole}{rest}\" for thousands"),
        _ => format!("did you mean \"{whole}.{rest}\"?"),
    };
    Some(UnitError::new(format!("`{text}` has a comma"), help))
}

/// Formats `value / 10^digits` in plain decimals, exact, without trailing zeros.
pub(crate) fn shifted(value: u64, places: u32) -> String {
    let one = 10u64.pow(places);
    let (whole, fraction) = (value / one, value % one);
    if fraction == 0 {
        return whole.to_string();
    }
    let digits = format!("{fraction:0width$}", width = places as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}
