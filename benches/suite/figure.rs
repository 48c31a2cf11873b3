// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a section of the suite, and the file they are written to.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// One quantity of one side in one case, measured in several turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    /// The part that both sides share: "forwarded, delay, 1000 flows".
    pub case: String,
    /// "bare", "netem", "emud", "emud hold", ...
    pub side: String,
    /// "cost", "goodput", "departure error p99", ...
    pub metric: String,
    /// "instructions/packet", "Mbit/s", "ms", ...; UCUM where it has one.
    pub unit: String,
    /// In the order of the turns.
    pub values: Vec<f64>,
}

impl Figure {
    pub fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// The minimum and the maximum.
    pub fn spread(&self) -> (f64, f64) {
        let bounds = (f64::INFINITY, f64::NEG_INFINITY);
        let widen = |(least, most): (f64, f64), &v: &f64| (least.min(v), most.max(v));
        self.values.iter().fold(bounds, widen)
    }
}

/// The machine of the measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// `uname -r`
    pub kernel: String,
    /// "guest, 1 ns an instruction", "host, 2 CPUs"
    pub place: String,
    pub emud: String,
    /// `tc -V`
    pub iproute2: String,
    /// UTC, ISO 8601
    pub date: String,
}

/// The results of one section in one boot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    pub section: String,
    pub full: bool,
    pub machine: Machine,
    pub figures: Vec<Figure>,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
}

impl Results {
    /// Another turn's value. JSON has none that is not finite: such results could not be read again.
    pub fn add(&mut self, case: &str, side: &str, metric: &str, unit: &str, value: f64) {
        if !value.is_finite() {
            self.miss(&format!("{case}: {side}: {metric} is {value}"));
            return;
        }
        println!(
            "{}: {case}: {side}: {metric} {value:.3} {unit}",
            self.section
        );
        let same = |f: &&mut Figure| (&*f.case, &*f.side, &*f.metric) == (case, side, metric);
        match self.figures.iter_mut().find(same) {
            Some(figure) => figure.values.push(value),
            None => self.figures.push(Figure {
                case: case.to_owned(),
                side: side.to_owned(),
                metric: metric.to_owned(),
                unit: unit.to_owned(),
                values: vec![value],
            }),
        }
    }

    /// Listed in the report, so that nothing is dropped silently; once for all turns.
    pub fn miss(&mut self, what: &str) {
        println!("{}: not measured: {what}", self.section);
        if !self.missing.iter().any(|known| known == what) {
            self.missing.push(what.to_owned());
        }
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(path, text + "\n").with_context(|| path.display().to_string())
    }

    pub fn read(path: &Path) -> Result<Self> {
        let place = || path.display().to_string();
        serde_json::from_str(&fs::read_to_string(path).with_context(place)?).with_context(place)
    }
}
