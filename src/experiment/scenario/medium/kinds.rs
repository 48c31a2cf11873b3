// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the values of a medium are read and written.

use crate::medium::phy::{STANDARDS, Standard, Watts};
use crate::text::{Kind, Located, Mistake, Value, closest, kinds};

/// The radio of all stations; figures that are not set are those of the standard.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RadioChoice {
    pub standard: &'static Standard,
    pub power_dbm: Option<f64>,
    pub sense_dbm: Option<f64>,
    pub sensitivity_dbm: Option<f64>,
    pub noise_dbm: Option<f64>,
    pub capture_db: f64,
    /// Rates of control frames, kbit/s.
    pub basic: Option<Vec<u32>>,
    /// Power of the radio; `None`: energy is not counted.
    pub watts: Option<Watts>,
}

/// How much stronger than all others together a frame must be.
pub(super) const CAPTURE_DB: f64 = 10.0;

impl Default for RadioChoice {
    fn default() -> Self {
        Self {
            standard: &STANDARDS[0],
            power_dbm: None,
            sense_dbm: None,
            sensitivity_dbm: None,
            noise_dbm: None,
            capture_db: CAPTURE_DB,
            basic: None,
            watts: None,
        }
    }
}

impl RadioChoice {
    /// Returns the weakest signal that is received at any rate, dBm.
    pub fn weakest_dbm(&self) -> f64 {
        let of_rates = self.standard.rates.iter().map(|(_, dbm)| *dbm);
        self.sensitivity_dbm
            .unwrap_or_else(|| of_rates.fold(f64::MAX, f64::min))
    }
}

pub(crate) struct RadioKind;
/// Bytes of a packet, or "off".
pub(crate) struct Bytes;

impl Kind for RadioKind {
    type Value = RadioChoice;

    fn read(value: &Located<Value>, key: &str) -> Result<RadioChoice, Mistake> {
        let mut radio = RadioChoice::default();
        let Value::Table(entries) = &value.value else {
            radio.standard = standard(value, key)?;
            return Ok(radio);
        };
        for entry in entries {
            let (value, key) = (&entry.value, entry.key.value.as_str());
            match key {
                "standard" => radio.standard = standard(value, key)?,
                "power" => radio.power_dbm = Some(level(value, key, "dBm", -50.0..=50.0)?),
                "sense" => radio.sense_dbm = Some(level(value, key, "dBm", -120.0..=0.0)?),
                "sensitivity" => {
                    radio.sensitivity_dbm = Some(level(value, key, "dBm", -120.0..=0.0)?);
                }
                "noise" => radio.noise_dbm = Some(level(value, key, "dBm", -150.0..=0.0)?),
                "capture" => radio.capture_db = level(value, key, "dB", 0.0..=60.0)?,
                "basic" => radio.basic = Some(rates(value, key)?),
                "watts" => radio.watts = Some(watts(value, key)?),
                _ => {
                    let keys = [
                        "standard",
                        "power",
                        "sense",
                        "sensitivity",
                        "noise",
                        "capture",
                        "basic",
                        "watts",
                    ];
                    return Err(unknown(&entry.key, "a radio", &keys));
                }
            }
        }
        let weakest_dbm = radio.weakest_dbm();
        if let Some(sense_dbm) = radio.sense_dbm.filter(|dbm| *dbm > weakest_dbm) {
            let title = format!(
                "`sense` of {sense_dbm}dBm is above the weakest signal that is received, {weakest_dbm}dBm"
            );
            let help = format!(
                "write sense = \"{weakest_dbm}dBm\" or less, or a higher `sensitivity`: a frame that is \
                 received keeps the medium busy"
            );
            return Err(Mistake::new(&value.at, title, help));
        }
        let has = |kbit: &u32| radio.standard.control_rates().any(|rate| rate == *kbit);
        match radio
            .basic
            .as_ref()
            .is_some_and(|basic| !basic.iter().all(has))
        {
            true => {
                let title = format!("{} does not have these basic rates", radio.standard.name);
                let help = its_rates(radio.standard.control_rates());
                Err(Mistake::new(&value.at, title, help))
            }
            false => Ok(radio),
        }
    }

    fn text(radio: &RadioChoice) -> String {
        let quoted = |level: f64, unit: &str| format!("\"{level}{unit}\"");
        let mut keys = vec![format!("standard = \"{}\"", radio.standard.name)];
        for (key, level) in [
            ("power", radio.power_dbm),
            ("sense", radio.sense_dbm),
            ("sensitivity", radio.sensitivity_dbm),
            ("noise", radio.noise_dbm),
        ] {
            keys.extend(level.map(|level| format!("{key} = {}", quoted(level, "dBm"))));
        }
        if radio.capture_db != CAPTURE_DB {
            keys.push(format!("capture = {}", quoted(radio.capture_db, "dB")));
        }
        keys.extend(radio.basic.as_ref().map(|basic| {
            let rates: Vec<_> = basic.iter().map(|kbit| format!("\"{kbit}kbit\"")).collect();
            format!("basic = [{}]", rates.join(", "))
        }));
        keys.extend(radio.watts.as_ref().map(|watts| {
            let Watts {
                send,
                receive,
                idle,
            } = watts;
            format!("watts = {{ send = {send}, receive = {receive}, idle = {idle} }}")
        }));
        format!("{{ {} }}", keys.join(", "))
    }
}

fn standard(value: &Located<Value>, key: &str) -> Result<&'static Standard, Mistake> {
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
    Standard::named(text).ok_or_else(|| {
        let help = match closest(text, names) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("the radios are {all}"),
        };
        Mistake::new(&value.at, format!("there is no radio `{text}`"), help)
    })
}

/// Lists rates in kbit/s of a standard, for messages.
pub(crate) fn its_rates(rates: impl Iterator<Item = u32>) -> String {
    let rates: Vec<_> = rates.map(|kbit| format!("\"{kbit}kbit\"")).collect();
    format!("its rates are {}", rates.join(", "))
}

/// Reads what a radio draws: a power for sending alone, or one for each of what it does.
fn watts(value: &Located<Value>, key: &str) -> Result<Watts, Mistake> {
    const MOST: f64 = 1000.0;
    let mut watts = Watts {
        send: 0.0,
        receive: 0.0,
        idle: 0.0,
    };
    let Value::Table(entries) = &value.value else {
        watts.send = number(value, key, "W", 0.0..=MOST)?;
        return Ok(watts);
    };
    for entry in entries {
        let key = entry.key.value.as_str();
        let slot = match key {
            "send" => &mut watts.send,
            "receive" => &mut watts.receive,
            "idle" => &mut watts.idle,
            _ => return Err(unknown(&entry.key, "`watts`", &["send", "receive", "idle"])),
        };
        *slot = number(&entry.value, key, "W", 0.0..=MOST)?;
    }
    Ok(watts)
}

fn rates(value: &Located<Value>, key: &str) -> Result<Vec<u32>, Mistake> {
    let one = |value: &Located<Value>| -> Result<u32, Mistake> {
        let rate = crate::text::quantity::<crate::text::Rate>(value, key, "\"1Mbit\"")?;
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
