// SPDX-License-Identifier: MIT OR Apache-2.0
//! `propagation` of a medium: which stations receive which.

use std::sync::Arc;

use super::file;
use super::kinds::{level, metres, number, unknown};
use crate::medium::phy::{Disk, Grid, PathLoss};
use crate::profile::kinds::Text;
use crate::text::{Entry, Kind, Located, Mistake, Reader, Value};

/// Model of propagation: which stations receive which.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Propagation {
    Disk(Disk),
    /// With the standard deviation of shadowing in dB.
    Radio(PathLoss, f64),
    /// From a file, which [`load_grid`] reads.
    Grid {
        file: String,
        grid: Arc<Grid>,
    },
}

impl Default for Propagation {
    fn default() -> Self {
        Self::Disk(Disk::default())
    }
}

pub(crate) struct SpreadKind;

/// Antennas of a two-ray model, m above ground, as in ns-2.
const HEIGHT_M: f64 = 1.5;
const MODELS: [&str; 5] = ["disk", "free-space", "two-ray", "log-distance", "grid"];

impl Kind for SpreadKind {
    type Value = Propagation;

    fn read(value: &Located<Value>, key: &str) -> Result<Propagation, Mistake> {
        let Value::Table(entries) = &value.value else {
            return model(value, key, value);
        };
        let help = format!("its models are {}", MODELS.join(", "));
        let Some(named) = key_of(value, "model") else {
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
                (Propagation::Grid { .. }, "file") => {}
                (spread, _) => {
                    let keys: &[&str] = match spread {
                        Propagation::Disk(_) => &["range", "sense", "interference"],
                        Propagation::Radio(PathLoss::FreeSpace, _) => &["model", "shadowing"],
                        Propagation::Radio(PathLoss::TwoRay { .. }, _) => &["height", "shadowing"],
                        Propagation::Radio(PathLoss::LogDistance { .. }, _) => {
                            &["exponent", "shadowing"]
                        }
                        Propagation::Grid { .. } => &["file"],
                    };
                    return Err(unknown(&entry.key, "this model", keys));
                }
            }
        }
        match spread {
            Propagation::Disk(disk)
                if disk.sense_m < disk.range_m || disk.interference_m < disk.range_m =>
            {
                let title = "`sense` or `interference` is below `range`";
                let help = "write `sense` and `interference` of at least `range`: a station senses each frame that it can receive";
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
            Propagation::Grid { file, .. } => {
                format!("{{ model = \"grid\", file = {} }}", Text::text(file))
            }
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
        "log-distance" if key_of(whole, "exponent").is_some() => Ok(Propagation::Radio(
            PathLoss::LogDistance { exponent: 0.0 },
            0.0,
        )),
        "log-distance" => {
            let help = format!("write {key} = {{ model = \"log-distance\", exponent = 3.5 }}");
            Err(Mistake::new(
                &value.at,
                "log-distance has no exponent",
                help,
            ))
        }
        "grid" => match key_of(whole, "file").map(|entry| &entry.value.value) {
            Some(Value::Text(file)) => Ok(Propagation::Grid {
                file: file.clone(),
                grid: Arc::default(),
            }),
            _ => {
                let help = format!("write {key} = {{ model = \"grid\", file = \"loss.asc\" }}");
                Err(Mistake::new(&value.at, "a grid is a `file`", help))
            }
        },
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

fn key_of<'a>(whole: &'a Located<Value>, key: &str) -> Option<&'a Entry> {
    let Value::Table(entries) = &whole.value else {
        return None;
    };
    entries.iter().find(|entry| entry.key.value == key)
}

/// Reads the file of a propagation, if it has one, relative to the folder of the scenario.
pub(crate) fn load_grid(reader: &mut Reader, propagation: &mut Located<Propagation>) {
    let Propagation::Grid { file: name, grid } = &mut propagation.value else {
        return;
    };
    match file::load(&reader.folder, name, Grid::read) {
        Ok(read) => *grid = Arc::new(read),
        Err(problem) => {
            let help =
                "a grid has the losses in dB from each sender's cell (docs/medium.md, Grids)";
            reader.mistake(&propagation.at, problem, help);
        }
    }
}
