// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats a configuration as text, which reads back to an equal one.

use std::fmt::Write;

use emud_monitor::Config;
use emud_monitor::criteria::table::{Kind, Of, Value, Values};
use emud_monitor::criteria::{Section, sections};

use super::value::{IGNORED, OFF};
use crate::text::{Percent, Rate, Time};

/// Returns TOML with all values of `config`, including defaults; see docs/monitor.md.
pub fn to_toml(config: &Config) -> String {
    let mut out = String::new();
    for section in sections() {
        header(&mut out, section.name);
        let mut tables = String::new();
        match (section.get)(config) {
            Some(values) => {
                for key in section.keys {
                    match values.0.get(key.name) {
                        Some(Value::Named(devices)) if devices.is_empty() => {}
                        Some(Value::Named(devices)) => {
                            let _ = writeln!(tables, "\n[{}.{}]", section.name, key.name);
                            // Names may need quotes, which toml adds.
                            let one = |(name, value)| {
                                let value: &Value = value;
                                (String::clone(name), plain(key.kind, value).into())
                            };
                            let table: toml::Table = devices.iter().map(one).collect();
                            let _ = write!(tables, "{table}");
                        }
                        Some(value) => {
                            let _ = writeln!(out, "{} = {}", key.name, toml(key.kind, value));
                        }
                        None => {}
                    }
                }
            }
            None => {
                let single = |kind| !matches!(kind, Kind::Named(..));
                let thresholds = section.keys.iter();
                for key in thresholds.filter(|key| key.threshold && single(key.kind)) {
                    let _ = writeln!(out, "{} = \"{OFF}\"", key.name);
                }
            }
        }
        out += &tables;
    }
    out
}

/// Writes the header of a table. Writing to a String does not fail.
fn header(out: &mut String, name: &str) {
    let blank = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{blank}[{name}]");
}

/// Formats a value as TOML.
pub fn toml(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (Kind::Count(_, _), Value::Number(number)) => number.to_string(),
        _ => format!("\"{}\"", plain(kind, value)),
    }
}

/// Formats a value with its unit.
fn plain(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Word(word)) => (*word).into(),
        (Kind::Named(_, Of::Time(..)), Value::Off) => IGNORED.into(),
        (_, Value::Off) => OFF.into(),
        (Kind::Time(..) | Kind::Named(_, Of::Time(..) | Of::Window(..)), Value::Number(ns)) => {
            Time(*ns).to_string()
        }
        (Kind::Rate | Kind::Named(_, Of::Rate), Value::Number(bit_s)) => Rate(*bit_s).to_string(),
        (Kind::Share(..), Value::Number(millionths)) => {
            Percent(*millionths as f64 / 1e6).to_string()
        }
        (_, Value::Number(number)) => number.to_string(),
        (_, Value::Named(_)) => String::new(),
    }
}

/// Formats the value of a key, or of a device named under it; empty if it has none.
pub(crate) fn shown(section: &Section, key: &str, name: Option<&str>, values: &Values) -> String {
    let value = match (values.0.get(key), name) {
        (Some(Value::Named(devices)), Some(name)) => devices.get(name),
        (value, _) => value,
    };
    let described = section.keys.iter().find(|described| described.name == key);
    let both = described.zip(value);
    both.map_or(String::new(), |(key, value)| plain(key.kind, value))
}
