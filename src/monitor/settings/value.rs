// SPDX-License-Identifier: MIT OR Apache-2.0
//! One value each: thresholds, windows, names of devices.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::text::{Located, Mistake, Rate, Time, Value, duration, quantity};

/// Switches a threshold off.
pub(crate) const OFF: &str = "off";
/// A disk that is not watched.
pub(crate) const IGNORED: &str = "ignored";

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;

/// Busy time that is contention, as in [`emud_monitor::config::Cpu`].
pub(crate) const THETA_NS: RangeInclusive<u64> = MS..=3600 * S;
/// Sliding window, as in [`emud_monitor::config::Network`].
pub(crate) const WINDOW_NS: RangeInclusive<u64> = MS..=10 * S;
/// Below it lies what fq's timer and the holder's clock are good for.
pub(crate) const LATE_NS: RangeInclusive<u64> = US..=3600 * S;
/// The kernel counts stalls in us.
pub(crate) const STALL_NS: RangeInclusive<u64> = US..=10 * S;
/// What the kernel takes (kernel/sched/psi.c).
pub(crate) const PSI_WINDOW_NS: RangeInclusive<u64> = 500 * MS..=10 * S;

/// The longest name of an interface: IFNAMSIZ - 1 bytes.
const INTERFACE_BYTES: usize = 15;
/// The longest name of a block device: DISK_NAME_LEN - 1 bytes.
const DISK_BYTES: usize = 31;

/// A threshold: a value, or none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting<T> {
    Off,
    On(T),
}

/// `"off"`, or what `read` makes of the value.
pub(crate) fn or_off<T>(
    value: &Located<Value>,
    read: impl FnOnce(&Located<Value>) -> Result<T, Mistake>,
) -> Result<Setting<T>, Mistake> {
    match &value.value {
        Value::Text(text) if text == OFF => Ok(Setting::Off),
        _ => read(value).map(Setting::On),
    }
}

/// A duration in `range`.
pub(crate) fn time(
    value: &Located<Value>,
    key: &str,
    range: RangeInclusive<u64>,
) -> Result<Duration, Mistake> {
    let ns = duration(value, key)?;
    if range.contains(&ns) {
        return Ok(Duration::from_nanos(ns));
    }
    let bounds = format!("{} to {}", Time(*range.start()), Time(*range.end()));
    Err(Mistake::new(
        &value.at,
        format!("`{key}` cannot be {}", Time(ns)),
        format!("it is from {bounds}"),
    ))
}

/// A rate in bit/s; `/s` may be written out.
pub(crate) fn rate(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
    let mut value = value.clone();
    if let Value::Text(text) = &mut value.value
        && let Some(bare) = text.strip_suffix("bit/s")
    {
        *text = format!("{bare}bit");
    }
    if let Value::Text(text) = &value.value
        && is_zero(text)
    {
        let title = format!("`{text}` is reached by an idle device");
        let help = "the least is \"1bit\"; \"off\" switches the threshold off";
        return Err(Mistake::new(&value.at, title, help));
    }
    quantity(&value, key, "\"490Mbit\"").map(|Rate(bits)| bits)
}

/// Whether the number in front of a unit is 0.
fn is_zero(text: &str) -> bool {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    number.trim().parse::<f64>() == Ok(0.0)
}

/// A whole number from 1 on.
pub(crate) fn count<T: TryFrom<u64>>(
    value: &Located<Value>,
    key: &str,
    of: &str,
) -> Result<T, Mistake> {
    let (Value::Number(text) | Value::Text(text)) = &value.value else {
        let title = format!("`{key}` cannot be {}", value.value.kind());
        let help = format!("write a number of {of}, such as {key} = 1");
        return Err(Mistake::new(&value.at, title, help));
    };
    let number = text.parse::<u64>().ok().filter(|number| *number > 0);
    number.and_then(|n| T::try_from(n).ok()).ok_or_else(|| {
        let help = match text.as_str() {
            "0" => format!("0 {of} are reached by an idle machine: the least is 1"),
            _ => format!("write a whole number of {of} from 1 on, such as {key} = 1"),
        };
        Mistake::new(&value.at, format!("`{key}` cannot be {text}"), help)
    })
}

/// What a single disk is judged by; none: it is ignored.
pub(crate) fn disk(value: &Located<Value>, name: &str) -> Result<Option<Duration>, Mistake> {
    match &value.value {
        Value::Text(text) if text == IGNORED => Ok(None),
        Value::Text(text) if text == OFF => Err(Mistake::new(
            &value.at,
            "a single disk cannot be `off`",
            "did you mean \"ignored\"?",
        )),
        _ => time(value, name, THETA_NS).map(Some),
    }
}

pub(crate) fn interface_name(key: &Located<String>) -> Result<String, Mistake> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == ':';
    name(key, "an interface", INTERFACE_BYTES, bad)
}

pub(crate) fn disk_name(key: &Located<String>) -> Result<String, Mistake> {
    if let Some(bare) = key.value.strip_prefix("/dev/") {
        let help =
            format!("did you mean `{bare}`? Disks go by the kernel's name, as in /sys/block");
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
    let title = format!("`{}` cannot be the name of {of}", name.escape_debug());
    let help = format!("names have 1 to {max_bytes} bytes without blanks and slashes");
    Err(Mistake::new(&key.at, title, help))
}
