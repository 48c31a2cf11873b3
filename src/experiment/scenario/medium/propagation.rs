// SPDX-License-Identifier: MIT OR Apache-2.0
//! `propagation` of a medium: who hears whom.

use super::kinds::{level, metres, number, unknown};
use crate::medium::phy::{Disk, PathLoss};
use crate::text::{Kind, Located, Mistake, Value};

/// Who hears whom.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Propagation {
    Disk(Disk),
    /// With the standard deviation of shadowing in dB.
    Radio(PathLoss, f64),
}

impl Default for Propagation {
    fn default() -> Self {
        Self::Disk(Disk::default())
    }
}

pub(crate) struct SpreadKind;

/// Antennas of a two-ray model, m above ground, as in ns-2.
const HEIGHT_M: f64 = 1.5;
const MODELS: [&str; 4] = ["disk", "free-space", "two-ray", "log-distance"];

impl Kind for SpreadKind {
    type Value = Propagation;

    fn read(value: &Located<Value>, key: &str) -> Result<Propagation, Mistake> {
        let Value::Table(entries) = &value.value else {
            return model(value, key, value);
        };
        let help = format!("its models are {}", MODELS.join(", "));
        let Some(named) = entries.iter().find(|entry| entry.key.value == "model") else {
            return Err(Mistake::new(
                &value.at,
                format!("`{key}` has no model"),
                help,
            ));
        };
        let mut spread = model(&named.value, "model", value)?;
        for entry in entries.iter().filter(|entry| entry.key.value != "model") {
            let name = entry.key.value.as_str();
            let length = || metres(&entry.value, name, 0.001..=1e7);
            match (&mut spread, name) {
                (Propagation::Disk(disk), "range") => disk.range_m = length()?,
                (Propagation::Disk(disk), "sense") => disk.sense_m = length()?,
                (Propagation::Disk(disk), "interference") => disk.interference_m = length()?,
                (Propagation::Radio(PathLoss::TwoRay { height_m }, _), "height") => {
                    *height_m = length()?;
                }
                (Propagation::Radio(PathLoss::LogDistance { exponent }, _), "exponent") => {
                    *exponent = number(&entry.value, name, "", 1.0..=10.0)?;
                }
                (Propagation::Radio(_, shadowing_db), "shadowing") => {
                    *shadowing_db = level(&entry.value, name, "dB", 0.0..=20.0)?;
                }
                (spread, _) => {
                    let keys: &[&str] = match spread {
                        Propagation::Disk(_) => &["range", "sense", "interference"],
                        Propagation::Radio(PathLoss::FreeSpace, _) => &["model", "shadowing"],
                        Propagation::Radio(PathLoss::TwoRay { .. }, _) => &["height", "shadowing"],
                        Propagation::Radio(PathLoss::LogDistance { .. }, _) => {
                            &["exponent", "shadowing"]
                        }
                    };
                    return Err(unknown(&entry.key, "this model", keys));
                }
            }
        }
        match spread {
            Propagation::Disk(disk)
                if disk.sense_m < disk.range_m || disk.interference_m < disk.range_m =>
            {
                let title = "a frame is received from farther than it is sensed, or disturbs";
                let help = "`sense` and `interference` are `range` or more";
                Err(Mistake::new(&value.at, title, help))
            }
            spread => Ok(spread),
        }
    }

    fn text(spread: &Propagation) -> String {
        match spread {
            Propagation::Disk(disk) => format!(
                "{{ model = \"disk\", range = \"{}m\", sense = \"{}m\", interference = \"{}m\" }}",
                disk.range_m, disk.sense_m, disk.interference_m
            ),
            Propagation::Radio(path, shadowing_db) => {
                let mut keys = match path {
                    PathLoss::FreeSpace => vec!["model = \"free-space\"".to_owned()],
                    PathLoss::TwoRay { height_m } => vec![
                        "model = \"two-ray\"".to_owned(),
                        format!("height = \"{height_m}m\""),
                    ],
                    PathLoss::LogDistance { exponent } => vec![
                        "model = \"log-distance\"".to_owned(),
                        format!("exponent = {exponent}"),
                    ],
                };
                if *shadowing_db > 0.0 {
                    keys.push(format!("shadowing = \"{shadowing_db}dB\""));
                }
                format!("{{ {} }}", keys.join(", "))
            }
        }
    }
}

fn model(
    value: &Located<Value>,
    key: &str,
    whole: &Located<Value>,
) -> Result<Propagation, Mistake> {
    let text = match &value.value {
        Value::Text(text) => text.as_str(),
        _ => "",
    };
    match text {
        "disk" => Ok(Propagation::default()),
        "free-space" => Ok(Propagation::Radio(PathLoss::FreeSpace, 0.0)),
        "two-ray" => Ok(Propagation::Radio(
            PathLoss::TwoRay { height_m: HEIGHT_M },
            0.0,
        )),
        "log-distance"
            if matches!(&whole.value, Value::Table(entries) if entries
            .iter()
            .any(|entry| entry.key.value == "exponent")) =>
        {
            Ok(Propagation::Radio(
                PathLoss::LogDistance { exponent: 0.0 },
                0.0,
            ))
        }
        "log-distance" => {
            let help = format!("write {key} = {{ model = \"log-distance\", exponent = 3.5 }}");
            Err(Mistake::new(
                &value.at,
                "log-distance has no exponent",
                help,
            ))
        }
        _ => {
            let help = format!("its models are {}", MODELS.join(", "));
            Err(Mistake::new(
                &value.at,
                format!("`{key}` is no model of propagation"),
                help,
            ))
        }
    }
}
