// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the values of a medium are read and written.

use crate::medium::phy::{STANDARDS, Standard, Watts};
use crate::text::{Kind, Located, Mistake, Rate, Reader, Value, closest, kinds, quantity, table};

/// How much stronger than all others together a frame must be.
pub(super) const CAPTURE_DB: f64 = 10.0;

table! {
    /// The radio of all stations; figures that are not set are those of the standard.
    #[derive(Debug, Clone, PartialEq)]
    pub struct RadioChoice {
        standard: Standard = STANDARDS[0], "standard" as StandardName;
        power_dbm: Option<f64> = None, "power" as Power;
        sense_dbm: Option<f64> = None, "sense" as Signal;
        sensitivity_dbm: Option<f64> = None, "sensitivity" as Signal;
        noise_dbm: Option<f64> = None, "noise" as Noise;
        capture_db: f64 = CAPTURE_DB, "capture" as Capture;
        /// Rates of control frames, kbit/s.
        basic: Option<Vec<u32>> = None, "basic" as Rates;
        /// Power of the radio; `None`: energy is not counted.
        watts: Option<Watts> = None, "watts" as WattsKind;
    }
    struct RadioDraft {}
}

table! {
    /// [`Watts`] as they are written.
    #[derive(Debug, Clone, PartialEq)]
    pub struct WattsTable {
        send: f64 = 0.0, "send" as Consumption;
        receive: f64 = 0.0, "receive" as Consumption;
        idle: f64 = 0.0, "idle" as Consumption;
    }
    struct WattsDraft {}
}

kinds! {
    /// A radio by its name.
    StandardName: Standard = standard, |standard| format!("\"{}\"", standard.name);
    /// Power of a sender, dBm.
    Power: f64 = |value, key| level(value, key, "dBm", -50.0..=50.0), |dbm| format!("\"{dbm}dBm\"");
    /// Power at a receiver, dBm.
    Signal: f64 = |value, key| level(value, key, "dBm", -120.0..=0.0), |dbm| format!("\"{dbm}dBm\"");
    /// Power without a sender, dBm.
    Noise: f64 = |value, key| level(value, key, "dBm", -150.0..=0.0), |dbm| format!("\"{dbm}dBm\"");
    /// dB.
    Capture: f64 = |value, key| level(value, key, "dB", 0.0..=60.0), |db| format!("\"{db}dB\"");
    /// kbit/s.
    Rates: Vec<u32> = rates, |rates| format!("[{}]", listed(rates.iter().copied()));
    /// W.
    Consumption: f64 = |value, key| number(value, key, "W", 0.0..=1000.0), |watts| watts.to_string();
}

impl RadioChoice {
    /// Returns the weakest signal that is received at any rate, dBm.
    pub fn weakest_dbm(&self) -> f64 {
        let of_rates = self.standard.rates.iter().map(|(_, dbm)| *dbm);
        self.sensitivity_dbm
            .unwrap_or_else(|| of_rates.fold(f64::MAX, f64::min))
    }

    fn check(&self, reader: &mut Reader, value: &Located<Value>) {
        let weakest_dbm = self.weakest_dbm();
        if let Some(sense_dbm) = self.sense_dbm.filter(|dbm| *dbm > weakest_dbm) {
            let title = format!(
                "`sense` of {sense_dbm}dBm is above the weakest signal that is received, {weakest_dbm}dBm"
            );
            let help = format!(
                "write sense = \"{weakest_dbm}dBm\" or less, or a higher `sensitivity`: a frame that is \
                 received keeps the medium busy"
            );
            reader.mistake(&value.at, title, help);
        }
        let has = |kbit: &u32| self.standard.control_rates().any(|rate| rate == *kbit);
        if !self.basic.iter().flatten().all(has) {
            let title = format!("{} does not have these basic rates", self.standard.name);
            reader.mistake(&value.at, title, its_rates(self.standard.control_rates()));
        }
    }
}

/// A table, or the name of a standard.
pub(crate) struct RadioKind;
/// A table, or the power while sending.
pub(crate) struct WattsKind;
/// Bytes of a packet, or "off".
pub(crate) struct Bytes;

impl Kind for RadioKind {
    type Value = RadioChoice;

    fn read_all(reader: &mut Reader, value: &Located<Value>, key: &str) -> Option<RadioChoice> {
        let mut draft = RadioDraft::default();
        let unknown = |key: &Located<String>| unknown(key, "a radio", RadioDraft::KEYS);
        reader.table(&mut draft, value, (key, "standard"), unknown);
        if draft.broken {
            return None;
        }
        let (radio, before) = (draft.values(), reader.mistakes.len());
        radio.check(reader, value);
        (reader.mistakes.len() == before).then_some(radio)
    }

    fn text(radio: &RadioChoice) -> String {
        let mut keys = radio.keys_text();
        let usual = RadioChoice::default().standard;
        if radio.standard == usual {
            keys.insert(0, format!("standard = {}", StandardName::text(&usual)));
        }
        format!("{{ {} }}", keys.join(", "))
    }
}

impl Kind for WattsKind {
    type Value = Watts;

    fn read_all(reader: &mut Reader, value: &Located<Value>, key: &str) -> Option<Watts> {
        let mut draft = WattsDraft::default();
        let unknown = |key: &Located<String>| unknown(key, "`watts`", WattsDraft::KEYS);
        reader.table(&mut draft, value, (key, "send"), unknown);
        let table = draft.values();
        (!draft.broken).then_some(Watts {
            send: table.send,
            receive: table.receive,
            idle: table.idle,
        })
    }

    fn text(watts: &Watts) -> String {
        format!(
            "{{ send = {}, receive = {}, idle = {} }}",
            watts.send, watts.receive, watts.idle
        )
    }
}

fn standard(value: &Located<Value>, key: &str) -> Result<Standard, Mistake> {
    let names = STANDARDS.iter().map(|standard| standard.name);
    let all = names.clone().map(|name| format!("\"{name}\""));
    let all = all.collect::<Vec<_>>().join(", ");
    let Value::Text(text) = &value.value else {
        return Err(Mistake::wrong_kind(
            value,
            key,
            format!("write one of {all}"),
        ));
    };
    Standard::named(text).copied().ok_or_else(|| {
        let help = match closest(text, names) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("the radios are {all}"),
        };
        Mistake::new(&value.at, format!("there is no radio `{text}`"), help)
    })
}

/// Lists rates in kbit/s of a standard, for messages.
pub(crate) fn its_rates(rates: impl Iterator<Item = u32>) -> String {
    format!("its rates are {}", listed(rates))
}

fn listed(rates: impl Iterator<Item = u32>) -> String {
    let rates: Vec<_> = rates.map(|kbit| format!("\"{kbit}kbit\"")).collect();
    rates.join(", ")
}

fn rates(value: &Located<Value>, key: &str) -> Result<Vec<u32>, Mistake> {
    let one = |value: &Located<Value>| -> Result<u32, Mistake> {
        let rate = quantity::<Rate>(value, key, "\"1Mbit\"")?;
        Ok(u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX))
    };
    match &value.value {
        Value::List(items) if !items.is_empty() => items.iter().map(one).collect(),
        _ => Ok(vec![one(value)?]),
    }
}

impl Kind for Bytes {
    type Value = u32;

    /// "off" is a size that no packet has.
    fn read(value: &Located<Value>, key: &str) -> Result<u32, Mistake> {
        match &value.value {
            Value::Text(text) if text == "off" => Ok(u32::MAX),
            Value::Number(text) | Value::Text(text) => {
                let bytes = text.trim_end_matches('B').parse();
                bytes.ok().filter(|bytes| *bytes <= 65_535)
            }
            .ok_or_else(|| Mistake::new(&value.at, format!("invalid `{key}`"), RTS_HELP)),
            _ => Err(Mistake::new(
                &value.at,
                format!("invalid `{key}`"),
                RTS_HELP,
            )),
        }
    }

    fn text(bytes: &u32) -> String {
        match *bytes {
            u32::MAX => "\"off\"".to_owned(),
            bytes => bytes.to_string(),
        }
    }
}

const RTS_HELP: &str = "write the bytes of the smallest packet that is sent after RTS and CTS, 0 to 65535, or \
     \"off\"";

pub(super) fn unknown(key: &Located<String>, what: &str, keys: &[&str]) -> Mistake {
    let title = format!("{what} has no `{}`", key.value);
    Mistake::new(&key.at, title, format!("its keys are {}", keys.join(", ")))
}

kinds! {
    /// A distance of stations in m.
    Spacing: f64 = |value: &Located<Value>, key: &str| metres(value, key, 0.0..=1e5), |m| toml::Value::from(format!("{m}m")).to_string();
}

/// Reads a distance, such as "250m"; a bare number is in metres, too.
pub(super) fn metres(
    value: &Located<Value>,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
) -> Result<f64, Mistake> {
    number(value, key, "m", range)
}

/// Reads a level, such as "-85dBm": without the unit it could be taken for another one.
pub(super) fn level(
    value: &Located<Value>,
    key: &str,
    unit: &str,
    range: std::ops::RangeInclusive<f64>,
) -> Result<f64, Mistake> {
    match &value.value {
        Value::Text(text) if text.ends_with(unit) => number(value, key, unit, range),
        _ => {
            let help = format!("write it with its unit: {key} = \"{}{unit}\"", range.end());
            Err(Mistake::new(
                &value.at,
                format!("`{key}` is no level in {unit}"),
                help,
            ))
        }
    }
}

pub(super) fn number(
    value: &Located<Value>,
    key: &str,
    unit: &str,
    range: std::ops::RangeInclusive<f64>,
) -> Result<f64, Mistake> {
    let text = match &value.value {
        Value::Number(text) => text.as_str(),
        Value::Text(text) => text.strip_suffix(unit).unwrap_or(text).trim_end(),
        _ => "",
    };
    let number = text.replace('_', "").parse::<f64>().ok();
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let help = format!("write a number from {} to {}", range.start(), range.end());
            let help = match unit {
                "" => help,
                unit => format!("{help} {unit}, such as {key} = \"{}{unit}\"", range.start()),
            };
            Mistake::new(&value.at, format!("invalid `{key}`"), help)
        })
}
