// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration as the log has it: ns, bytes, pages; null: not asked for.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::criteria::table::{Kind, Of, Value};
use crate::criteria::{Config, Section, sections};

/// What is contention.
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
    let keys = section.keys.iter().filter_map(|key| {
        let value = values.0.get(key.name)?;
        Some((key.log.to_owned(), json(key.kind, value, window_ns)))
    });
    Some(keys.collect())
}

fn json(kind: Kind, value: &Value, window_ns: u64) -> Json {
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
            let one = |(name, value): (&String, &_)| (name.clone(), json(kind, value, window_ns));
            Json::Object(devices.map(one).collect())
        }
    }
}

/// Whole bytes of a rate in a window.
fn in_window(bit_s: u64, window_ns: u64) -> u64 {
    let bytes = u128::from(bit_s) * u128::from(window_ns) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
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
}
