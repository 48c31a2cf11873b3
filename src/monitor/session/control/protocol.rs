// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol: one line of JSON in each direction (docs/log-format.md).

use emud_monitor::event::{Alarm, Resource, Scope, TAMPERED, Unit};
use emud_monitor::log::MetricLine;
use serde::Deserialize;
use serde_json::{Number, Value, json};

use crate::text::{Time, printable};

/// Maximum length of a name, which is part of every line.
const MAX_NAME: usize = 256;
/// Readers of JSON may round larger numbers.
const MAX_NUMBER: u64 = 1 << 53;

/// The request in a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Alarm(Box<Alarm>),
    Metric(MetricLine),
    Reset,
}

/// Why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Malformed(String),
    /// Only root is permitted to do it.
    NotAllowed(&'static str),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Application {
    #[expect(dead_code, reason = "already checked")]
    r#type: Option<String>,
    name: String,
    value: Option<Quantity>,
    threshold: Option<Quantity>,
    mono_ns: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Emulator {
    #[expect(dead_code, reason = "already checked")]
    r#type: String,
    failure: Failure,
    /// The missing or changed parts of a link that was tampered with.
    what: Option<String>,
    name: String,
    ifindex: u32,
    netns: u32,
    value: u64,
    threshold: u64,
    since_mono_ns: u64,
    mono_ns: Option<u64>,
    #[expect(dead_code, reason = "a batch reports the worst packet")]
    count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    #[expect(dead_code, reason = "already checked")]
    r#type: String,
    name: String,
    value: f64,
    unit: Option<String>,
    mono_ns: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    #[expect(dead_code, reason = "already checked")]
    r#type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Failure {
    Late,
    Dropped,
    Tampered,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Quantity {
    Number(Number),
    Text(String),
}

/// Parses a line that arrived at `now_mono_ns`; `trusted`: from root or the monitor's user.
///
/// # Errors
/// The problem of the line.
pub fn parse(line: &[u8], now_mono_ns: u64, trusted: bool) -> Result<Message, Refusal> {
    let malformed = |e: serde_json::Error| Refusal::Malformed(e.to_string());
    let value: Value = serde_json::from_slice(line).map_err(malformed)?;
    if !value.is_object() {
        return Err(Refusal::Malformed("not an object".into()));
    }
    let kind = match value.get("type") {
        None => "alarm",
        Some(kind) => kind.as_str().unwrap_or_default(),
    };
    match kind {
        "alarm" => {
            let report = serde_json::from_value(value).map_err(malformed)?;
            application(report, now_mono_ns)
        }
        "metric" => {
            let report = serde_json::from_value(value).map_err(malformed)?;
            metric(report, now_mono_ns).map(Message::Metric)
        }
        "reset" if trusted => {
            let Reset { .. } = serde_json::from_value(value).map_err(malformed)?;
            Ok(Message::Reset)
        }
        "reset" => Err(Refusal::NotAllowed("only root may reset the limits")),
        "emulator" if trusted => {
            let report = serde_json::from_value(value).map_err(malformed)?;
            emulator(report, now_mono_ns)
        }
        "emulator" => Err(Refusal::NotAllowed("only root may report for the emulator")),
        _ => Err(Refusal::Malformed(
            "`type` must be \"alarm\", \"metric\", \"reset\" or \"emulator\"".into(),
        )),
    }
}

fn application(report: Application, now_mono_ns: u64) -> Result<Message, Refusal> {
    let quantity = |quantity: &Option<Quantity>| quantity.as_ref().map(Quantity::read).transpose();
    let (value, threshold) = (quantity(&report.value)?, quantity(&report.threshold)?);
    let (value, threshold, unit) = match (value, threshold) {
        (None, None) => (0, 0, Unit::None),
        (Some((value, unit)), None) => (value, 0, unit),
        (Some((value, unit)), Some((threshold, same))) if unit == same => (value, threshold, unit),
        (Some(_), Some(_)) => return Err(bad("`value` and `threshold` have different units")),
        (None, Some(_)) => return Err(bad("`threshold` without `value`")),
    };
    let mono_ns = past(report.mono_ns, now_mono_ns)?;
    Ok(Message::Alarm(Box::new(Alarm {
        episode: 0,
        mono_ns,
        resource: Resource::Application,
        scope: Scope::Application {
            name: name(report.name)?,
        },
        since_mono_ns: mono_ns,
        value,
        threshold,
        unit,
        hook: "socket".into(),
        shares: vec![],
        rest: 0.0,
    })))
}

/// Checks a reported figure: JSON has no infinite numbers.
fn metric(report: Metric, now_mono_ns: u64) -> Result<MetricLine, Refusal> {
    let unit = report.unit.filter(|unit| !unit.is_empty());
    Ok(MetricLine {
        mono_ns: past(report.mono_ns, now_mono_ns)?,
        name: name(report.name)?,
        value: report.value,
        unit: unit
            .map(name)
            .transpose()
            .map_err(|_| bad("`unit` must be text of 1 to 256 bytes"))?,
    })
}

fn emulator(report: Emulator, now_mono_ns: u64) -> Result<Message, Refusal> {
    let (failure, unit) = match report.failure {
        Failure::Late => ("late", Unit::Ns),
        Failure::Dropped => ("dropped", Unit::Packets),
        Failure::Tampered => (TAMPERED, Unit::None),
    };
    // Root of a container may give its interface any name, and must not silence the reports about it.
    let named = |text: String| printable(&text).into_owned();
    let mono_ns = past(report.mono_ns, now_mono_ns)?;
    Ok(Message::Alarm(Box::new(Alarm {
        episode: 0,
        mono_ns,
        resource: Resource::Emulator,
        scope: Scope::Link {
            failure,
            what: report.what.map(named),
            name: name(named(report.name))?,
            ifindex: report.ifindex,
            netns: report.netns,
        },
        since_mono_ns: past(Some(report.since_mono_ns), mono_ns)?,
        value: report.value,
        threshold: report.threshold,
        unit,
        hook: "socket".into(),
        shares: vec![],
        rest: 0.0,
    })))
}

fn bad(what: &str) -> Refusal {
    Refusal::Malformed(what.into())
}

fn name(name: String) -> Result<String, Refusal> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        let what = format!("`name` must be text of 1 to {MAX_NAME} bytes");
        return Err(Refusal::Malformed(what));
    }
    Ok(name)
}

/// Returns the given time, or now.
fn past(given: Option<u64>, now_mono_ns: u64) -> Result<u64, Refusal> {
    match given {
        Some(given) if given > now_mono_ns => {
            Err(bad("the time is in the future of CLOCK_MONOTONIC"))
        }
        given => Ok(given.unwrap_or(now_mono_ns)),
    }
}

impl Quantity {
    /// Reads `12`, `"12"`, `"12ms"`, `"1500B"`, `"3packets"`, `"7pages"`.
    fn read(&self) -> Result<(u64, Unit), Refusal> {
        let text = match self {
            Self::Number(number) => &number.to_string(),
            Self::Text(text) => text.trim(),
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let unit = match text[digits..].trim() {
            "" => Unit::Number,
            "B" => Unit::Bytes,
            "packets" => Unit::Packets,
            "pages" => Unit::Pages,
            _ => return time(text),
        };
        match text[..digits].parse() {
            Ok(number) if number <= MAX_NUMBER => Ok((number, unit)),
            _ => Err(not_a_quantity(text)),
        }
    }
}

fn time(text: &str) -> Result<(u64, Unit), Refusal> {
    let Time(ns) = text.parse().map_err(|_| not_a_quantity(text))?;
    Ok((ns, Unit::Ns))
}

fn not_a_quantity(text: &str) -> Refusal {
    Refusal::Malformed(format!(
        "`{text}` is not a quantity: 12 (a whole number), \"12ms\" (up to an hour), \"1500B\", \
         \"3packets\", \"7pages\""
    ))
}

/// Returns the line of the answer.
pub fn answer(result: &Result<(), Refusal>) -> String {
    let json = match result {
        Ok(()) => json!({"ok": true}),
        Err(Refusal::Malformed(error)) => json!({"error": error}),
        Err(Refusal::NotAllowed(error)) => json!({"error": error, "denied": true}),
    };
    format!("{json}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Message, Refusal> {
        parse(line.as_bytes(), 1000, true)
    }

    fn alarm(line: &str) -> Alarm {
        match read(line) {
            Ok(Message::Alarm(alarm)) => *alarm,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_program_reports_in_its_units() {
        let of = |line| {
            let alarm = alarm(line);
            (alarm.value, alarm.threshold, alarm.unit)
        };
        let line = r#"{"name":"receiver jitter","value":"12ms","threshold":"0.01s"}"#;
        assert_eq!(of(line), (12_000_000, 10_000_000, Unit::Ns));
        assert_eq!(of(r#"{"name":"x","value":7}"#), (7, 0, Unit::Number));
        assert_eq!(of(r#"{"name":"x","value":"7"}"#), (7, 0, Unit::Number));
        let line = r#"{"type":"alarm","name":"x","value":"3 packets","threshold":"1packets"}"#;
        assert_eq!(of(line), (3, 1, Unit::Packets));
        assert_eq!(of(r#"{"name":"x"}"#), (0, 0, Unit::None));
        let line = alarm(r#"{"name":"x","mono_ns":900}"#);
        assert_eq!((line.mono_ns, line.since_mono_ns), (900, 900));
        assert_eq!(alarm(r#"{"name":"x"}"#).mono_ns, 1000);
    }

    #[test]
    fn the_holder_reports_late_and_dropped_packets() {
        let late = alarm(
            r#"{"type":"emulator","failure":"late","name":"eth0","ifindex":2,"netns":7,
                "value":3000000,"threshold":1000000,"since_mono_ns":500}"#,
        );
        assert_eq!((late.resource, late.unit), (Resource::Emulator, Unit::Ns));
        assert_eq!((late.since_mono_ns, late.mono_ns), (500, 1000));
        let link = Scope::Link {
            failure: "late",
            what: None,
            name: "eth0".into(),
            ifindex: 2,
            netns: 7,
        };
        assert_eq!(late.scope, link);
    }

    #[test]
    fn a_program_reports_a_figure() {
        let of = |line| match read(line) {
            Ok(Message::Metric(line)) => (line.name, line.value, line.unit, line.mono_ns),
            other => panic!("{other:?}"),
        };
        let line = r#"{"type":"metric","name":"page load","value":1.84,"unit":"s","mono_ns":900}"#;
        assert_eq!(of(line), ("page load".into(), 1.84, Some("s".into()), 900));
        let line = r#"{"type":"metric","name":"stalls","value":-3,"unit":""}"#;
        assert_eq!(of(line), ("stalls".into(), -3.0, None, 1000));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for line in [
            "",
            "{",
            "[]",
            "7",
            r#"{}"#,
            r#"{"name":""}"#,
            r#"{"name":"a\u001b[2J"}"#,
            r#"{"name":"x","treshold":1}"#,
            r#"{"name":"x","value":1,"threshold":"1ms"}"#,
            r#"{"name":"x","threshold":1}"#,
            r#"{"name":"x","value":-1}"#,
            r#"{"name":"x","value":0.5}"#,
            r#"{"name":"x","value":9007199254740993}"#,
            r#"{"name":"x","value":"12 parsecs"}"#,
            r#"{"name":"x","value":"\u00b5"}"#,
            r#"{"name":"x","mono_ns":1001}"#,
            r#"{"type":"metric","name":"x"}"#,
            r#"{"type":"metric","name":"","value":1}"#,
            r#"{"type":"metric","name":"x","value":"1"}"#,
            r#"{"type":"metric","name":"x","value":1e999}"#,
            r#"{"type":"metric","name":"x","value":1,"unit":"a\u001b"}"#,
            r#"{"type":7}"#,
            r#"{"type":"stop"}"#,
            r#"{"type":"emulator","failure":"late","name":"eth0"}"#,
        ] {
            let result = read(line);
            assert!(
                matches!(result, Err(Refusal::Malformed(_))),
                "{line}: {result:?}"
            );
        }
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(MAX_NAME + 1));
        assert!(read(&long).is_err());
    }

    #[test]
    fn only_root_resets_and_speaks_for_the_emulator() {
        assert_eq!(read(r#"{"type":"reset"}"#), Ok(Message::Reset));
        let more = read(r#"{"type":"reset","resource":"cpu"}"#);
        assert!(matches!(more, Err(Refusal::Malformed(_))), "{more:?}");
        for line in [r#"{"type":"reset"}"#, r#"{"type":"emulator"}"#] {
            let result = parse(line.as_bytes(), 1000, false);
            assert!(matches!(result, Err(Refusal::NotAllowed(_))), "{result:?}");
        }
    }
}
