// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads single values: thresholds, windows, names of devices.

use std::ops::RangeInclusive;

use emud_monitor::criteria::table::{Device, Key, Kind, Of, Value as Setting};

use crate::text::{Located, Mistake, Percent, Rate, Time, Value, duration, one_of, quantity};

/// Value that switches a threshold off.
pub(crate) const OFF: &str = "off";
/// A disk that is not watched.
pub(crate) const IGNORED: &str = "ignored";

/// Maximum length of the name of an interface: IFNAMSIZ - 1 bytes.
const INTERFACE_BYTES: usize = 15;
/// Maximum length of the name of a block device: DISK_NAME_LEN - 1 bytes.
const DISK_BYTES: usize = 31;

/// Reads the value of a key that has a single one.
pub(crate) fn single(key: &Key, value: &Located<Value>) -> Result<Setting, Mistake> {
    match &value.value {
        Value::Text(text) if text == OFF && key.threshold => return Ok(Setting::Off),
        _ => {}
    }
    match key.kind {
        Kind::Time(least, most) => time(value, key.name, least..=most),
        Kind::Rate => rate(value, key.name),
        Kind::Share(least, most) => share(value, key.name, least..=most),
        Kind::Count(of, most) => count(value, key.name, of, most),
        Kind::Word(words) => return word(value, key.name, words),
        // Its values belong to devices.
        Kind::Named(..) => Ok(0),
    }
    .map(Setting::Number)
}

/// Reads the value of the device `name`.
pub(crate) fn device(of: Of, name: &str, value: &Located<Value>) -> Result<Setting, Mistake> {
    match (of, &value.value) {
        (Of::Word(words), _) => word(value, name, words),
        (Of::Rate | Of::Window(..), Value::Text(text)) if text == OFF => Ok(Setting::Off),
        (Of::Rate, _) => rate(value, name).map(Setting::Number),
        (Of::Time(..), Value::Text(text)) if text == IGNORED => Ok(Setting::Off),
        (Of::Time(..), Value::Text(text)) if text == OFF => Err(Mistake::new(
            &value.at,
            "a single disk cannot be `off`",
            "did you mean \"ignored\"?",
        )),
        (Of::Time(least, most) | Of::Window(least, most), _) => {
            time(value, name, least..=most).map(Setting::Number)
        }
    }
}

fn word(
    value: &Located<Value>,
    key: &str,
    words: &'static [&'static str],
) -> Result<Setting, Mistake> {
    one_of(value, key, words).map(|index| Setting::Word(words[index]))
}

/// Reads a duration in `range`.
fn time(value: &Located<Value>, key: &str, range: RangeInclusive<u64>) -> Result<u64, Mistake> {
    let ns = duration(value, key)?;
    if range.contains(&ns) {
        return Ok(ns);
    }
    let bounds = format!("{} to {}", Time(*range.start()), Time(*range.end()));
    Err(Mistake::new(
        &value.at,
        format!("`{key}` cannot be {}", Time(ns)),
        format!("the range is from {bounds}"),
    ))
}

/// Reads a rate in bit/s; `/s` is optional.
fn rate(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
    let mut value = value.clone();
    if let Value::Text(text) = &mut value.value
        && let Some(bare) = text.strip_suffix("bit/s")
    {
        *text = format!("{bare}bit");
    }
    if let Value::Text(text) = &value.value
        && is_zero(text)
    {
        let title = format!("even an idle device reaches `{text}`");
        let help = "the minimum is \"1bit\"; \"off\" switches the threshold off";
        return Err(Mistake::new(&value.at, title, help));
    }
    quantity(&value, key, "\"490Mbit\"").map(|Rate(bits)| bits)
}

/// Returns whether the number before a unit is 0.
fn is_zero(text: &str) -> bool {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    number.trim().parse::<f64>() == Ok(0.0)
}

/// Reads a whole number from 1 to `most`.
fn count(value: &Located<Value>, key: &str, of: &str, most: u64) -> Result<u64, Mistake> {
    let (Value::Number(text) | Value::Text(text)) = &value.value else {
        let help = format!("write a number of {of}, such as {key} = 1");
        return Err(Mistake::wrong_kind(value, key, help));
    };
    let number = text.parse::<u64>().ok();
    number.filter(|n| (1..=most).contains(n)).ok_or_else(|| {
        let help = match text.as_str() {
            "0" => format!("even an idle machine reaches 0 {of}: the minimum is 1"),
            _ => format!("write a whole number of {of} from 1 on, such as {key} = 1"),
        };
        Mistake::new(&value.at, format!("`{key}` cannot be {text}"), help)
    })
}

/// Reads a share in millionths.
fn share(value: &Located<Value>, key: &str, range: RangeInclusive<u64>) -> Result<u64, Mistake> {
    let written = match &value.value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    let millionths = written.map(|Percent(share)| (share * 1e6).round() as u64);
    let in_range = millionths.filter(|millionths| range.contains(millionths));
    in_range.ok_or_else(|| {
        let said = match &value.value {
            Value::Text(text) | Value::Number(text) => text,
            other => other.kind(),
        };
        let [least, most] = [range.start(), range.end()].map(|n| Percent(*n as f64 / 1e6));
        let help = format!("it is a share, such as \"5%\", from {least} to {most}");
        Mistake::new(&value.at, format!("`{key}` cannot be {said}"), help)
    })
}

/// Checks the name of a device.
pub(crate) fn device_name(of: Device, key: &Located<String>) -> Result<String, Mistake> {
    match of {
        Device::Interface => interface_name(key),
        Device::Disk => disk_name(key),
    }
}

fn interface_name(key: &Located<String>) -> Result<String, Mistake> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == ':';
    name(key, "an interface", INTERFACE_BYTES, bad)
}

fn disk_name(key: &Located<String>) -> Result<String, Mistake> {
    if let Some(bare) = key.value.strip_prefix("/dev/") {
        let help = format!("did you mean `{bare}`? Disks have the kernel's name, as in /sys/block");
        let title = format!("`{}` is a path", key.value);
        return Err(Mistake::new(&key.at, title, help));
    }
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    name(key, "a disk", DISK_BYTES, bad)
}

fn name(
    key: &Located<String>,
    of: &str,
    max_bytes: usize,
    bad: impl Fn(char) -> bool,
) -> Result<String, Mistake> {
    let name = &key.value;
    let dots = name == "." || name == "..";
    if !name.is_empty() && name.len() <= max_bytes && !name.contains(bad) && !dots {
        return Ok(name.clone());
    }
    let title = format!("`{}` is not a valid name of {of}", name.escape_debug());
    let help = format!("names have 1 to {max_bytes} bytes without blanks and slashes");
    Err(Mistake::new(&key.at, title, help))
}
