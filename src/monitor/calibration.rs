// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `emud monitor calibrate --json` prints.

use std::collections::BTreeMap;

use emud_monitor::calibrate::Suggestion;
use emud_monitor::criteria::Measured;
use emud_monitor::event::Watched;
use emud_monitor::record::{Header, Kind};
use schemars::JsonSchema;
use serde::Serialize;

/// The number increases when a key is removed or changes its meaning.
pub const CALIBRATE_SCHEMA: &str = "emud-calibrate/1";

/// The effect of thresholds on recordings, and the thresholds that the recordings suggest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Calibration<'a> {
    /// Version of the format.
    #[schemars(extend("const" = CALIBRATE_SCHEMA))]
    pub schema: &'static str,
    /// Quantiles are too large by at most this share.
    pub relative_error: f64,
    /// Margin above the largest good value, as a share of it.
    pub margin: f64,
    /// Recordings in the order of the arguments.
    pub recordings: Vec<Recording<'a>>,
    /// Criteria by name, without those that are off.
    #[schemars(extend("propertyNames" = { "enum": Measured::all().map(|(_, m)| m.name).collect::<Vec<_>>() }))]
    pub criteria: BTreeMap<&'static str, Criterion<'a>>,
    /// Sentences on what makes the values less reliable.
    pub warnings: &'a [String],
}

/// A recording that was replayed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recording<'a> {
    /// Path of the file.
    pub file: &'a str,
    /// The file was given with --contended.
    pub contended: bool,
    /// The recording has its end.
    pub complete: bool,
    /// Duration of the recording in ns.
    pub duration_ns: u64,
    /// Number of records.
    pub records: u64,
    /// Records for which the ring buffer had no space, by kind.
    pub lost: &'a BTreeMap<Kind, u64>,
    /// Events that were recorded too late to be sorted.
    pub late: u64,
    /// Header of the file (docs/record-format.md).
    pub header: &'a Header,
    /// Criteria whose suggested threshold the recording reaches.
    pub found_by: Vec<&'static str>,
}

/// A criterion in all recordings.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Criterion<'a> {
    /// Unit of all values.
    #[schemars(extend("enum" = ["ns", "bit/s", "pages"]))]
    pub unit: &'static str,
    /// Whether the recordings show the criterion. "unknown": at least one cannot.
    pub watched: Watched,
    /// Length of the sliding window in ns; null: the values are busy intervals.
    pub window_ns: Option<u64>,
    /// Values of the good recordings.
    pub good: Values,
    /// Values of the contended recordings; null: there is none.
    pub contended: Option<Values>,
    /// Alarms of each recording.
    pub alarms: Vec<Alarms<'a>>,
    /// Suggested threshold and what it is based on.
    pub suggestion: &'a Suggestion,
}

/// Values of several recordings.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Values {
    /// All values together.
    #[serde(flatten)]
    pub all: Distribution,
    /// Values by CPU or by name of the device.
    pub members: BTreeMap<String, Distribution>,
}

/// Distribution of values.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Distribution {
    /// Number of values: intervals, or events of a window.
    pub count: u64,
    /// Number of values that may have been larger, because the recording began or ended during them.
    pub open: u64,
    /// Median; null: there is no value.
    pub p50: Option<u64>,
    /// 90th percentile; null: there is no value.
    pub p90: Option<u64>,
    /// 99th percentile; null: there is no value.
    pub p99: Option<u64>,
    /// 99.9th percentile; null: there is no value.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// Largest value, exact; null: there is no value.
    pub max: Option<u64>,
    /// The largest value may have been larger.
    pub max_is_open: bool,
    /// Threshold; null: that of the criterion (CPU, disk), or none (network device).
    pub threshold: Option<u64>,
    /// Number of contention episodes that would have begun.
    pub alarms: u64,
}

/// Alarms of a recording.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Alarms<'a> {
    /// Path of the file.
    pub file: &'a str,
    /// Number of contention episodes that would have begun.
    pub alarms: u64,
    /// Time of the first alarm in ns after the start of the recording; null: no alarm.
    pub first_ns: Option<u64>,
}
