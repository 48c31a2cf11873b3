// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration as the log has it: ns, bytes, pages; null: not configured.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::criteria::table::{Key, Kind, Of, Value};
use crate::criteria::{Config, Section, sections};

/// Thresholds of contention by criterion; null: the criterion is off.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds(Config);

impl From<&Config> for Thresholds {
    fn from(config: &Config) -> Self {
        Self(config.clone())
    }
}

impl Serialize for Thresholds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for section in sections().filter(|section| section.is_optional()) {
            map.serialize_entry(section.name, &table(section, &self.0))?;
        }
        map.end()
    }
}

fn table(section: &Section, config: &Config) -> Option<Map<String, Json>> {
    let values = (section.get)(config)?;
    let window_ns = values.number("window").unwrap_or(0);
    let windows = values.named("device-window");
    let keys = section.keys.iter().filter_map(|key| {
        let value = values.0.get(key.name)?;
        let json = json(key.kind, value, window_ns, &windows);
        Some((key.log.to_owned(), json))
    });
    Some(keys.collect())
}

/// `windows`: those of single devices.
fn json(kind: Kind, value: &Value, window_ns: u64, windows: &BTreeMap<String, u64>) -> Json {
    match (value, kind) {
        (Value::Off, _) => Json::Null,
        (Value::Number(bit_s), Kind::Rate | Kind::Named(_, Of::Rate)) => {
            in_window(*bit_s, window_ns).into()
        }
        (Value::Number(millionths), Kind::Share(..)) => (*millionths as f64 / 1e6).into(),
        (Value::Number(number), _) => (*number).into(),
        (Value::Word(word), _) => (*word).into(),
        (Value::Named(devices), _) => {
            let devices = devices.iter();
            let one = |(name, value): (&String, &_)| {
                let window_ns = windows.get(name).copied().unwrap_or(window_ns);
                (name.clone(), json(kind, value, window_ns, windows))
            };
            Json::Object(devices.map(one).collect())
        }
    }
}

impl JsonSchema for Thresholds {
    fn schema_name() -> Cow<'static, str> {
        "Thresholds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let optional = || sections().filter(|section| section.is_optional());
        let properties: Map<_, _> = optional()
            .map(|s| (s.name.to_owned(), described(s)))
            .collect();
        let required: Vec<_> = optional().map(|section| section.name).collect();
        json_schema!({
            "description": "Thresholds of contention by criterion; null: the criterion is off.",
            "type": "object",
            "properties": properties,
            "required": required,
        })
    }
}

fn described(section: &Section) -> Json {
    let keys = || section.keys.iter().filter(|key| !key.log.is_empty());
    let properties: Map<_, _> = keys()
        .map(|key| (key.log.to_owned(), of_key(key)))
        .collect();
    let required: Vec<_> = keys().map(|key| key.log).collect();
    json!({ "type": ["object", "null"], "properties": properties, "required": required })
}

fn of_key(key: &Key) -> Json {
    let number = json!({ "type": "integer", "minimum": 0 });
    let (unit, mut schema) = match key.kind {
        Kind::Time(least, most) => (
            "ns",
            json!({ "type": "integer", "minimum": least, "maximum": most }),
        ),
        Kind::Rate => ("bytes in a window", number),
        Kind::Share(least, most) => {
            let share = |millionths: u64| millionths as f64 / 1e6;
            let (least, most) = (share(least), share(most));
            (
                "0 to 1",
                json!({ "type": "number", "minimum": least, "maximum": most }),
            )
        }
        Kind::Count(what, _) => (what, number),
        Kind::Word(words) => ("", json!({ "enum": words })),
        Kind::Named(_, of) => {
            let (unit, of) = match of {
                Of::Word(words) => ("by name", json!({ "enum": words })),
                Of::Rate => ("bytes in a window, by name", number),
                Of::Time(..) => (
                    "ns, by name",
                    json!({ "type": ["integer", "null"], "minimum": 0 }),
                ),
                Of::Window(least, most) => (
                    "ns, by name",
                    json!({ "type": "integer", "minimum": least, "maximum": most }),
                ),
            };
            (
                unit,
                json!({ "type": "object", "additionalProperties": of }),
            )
        }
    };
    // A table whose only threshold is off is null as a whole.
    if matches!(key.kind, Kind::Rate | Kind::Count(..)) && key.threshold {
        schema["type"] = json!(["integer", "null"]);
    }
    let unit = Some(unit).filter(|unit| !unit.is_empty());
    let unit = unit.map_or(String::new(), |unit| format!(" ({unit})"));
    schema["description"] = format!("{}{unit}.", key.help).into();
    schema
}

/// Returns the whole bytes of a rate in a window.
fn in_window(bit_s: u64, window_ns: u64) -> u64 {
    let bytes = u128::from(bit_s) * u128::from(window_ns) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_defaults_in_bytes() {
        let thresholds = serde_json::to_value(Thresholds::from(&Config::default())).unwrap();
        // 490 Mbit/s and 1 Gbit/s for 10 ms.
        let network = &thresholds["network"];
        assert_eq!(network["external_bytes"], 612_500);
        assert_eq!(network["internal_bytes"], 1_250_000);
        assert_eq!(in_window(u64::MAX, 10_000_000_000), u64::MAX);
    }

    #[test]
    fn a_rate_is_in_the_window_of_its_device() {
        let mut config = Config::default();
        let network = config.network.as_mut().unwrap();
        network.devices = ["eth0", "eth1"]
            .map(|name| (name.to_owned(), 900_000_000))
            .into();
        let window = ("eth0".to_owned(), Duration::from_millis(50));
        network.device_windows = [window].into();
        let thresholds = serde_json::to_value(Thresholds::from(&config)).unwrap();
        let network = &thresholds["network"];
        let bytes = json!({ "eth0": 5_625_000, "eth1": 1_125_000 });
        assert_eq!(network["device_bytes"], bytes);
        assert_eq!(network["device_window_ns"], json!({ "eth0": 50_000_000 }));
    }
}
