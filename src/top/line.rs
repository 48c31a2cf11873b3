// SPDX-License-Identifier: MIT OR Apache-2.0
//! All directions of links over an interval, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::row::TopRow;
use super::state::Top;

/// The number increases when a key is removed or changes its meaning.
pub const TOP_SCHEMA: &str = "emud-top/1";

/// All links over an interval.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TopLine<'a> {
    /// Version of the format.
    #[schemars(extend("const" = TOP_SCHEMA))]
    schema: &'static str,
    /// End of the interval, ns on CLOCK_MONOTONIC.
    mono_ns: u64,
    /// Length of the interval in s; null: the first reading, so nothing is measured yet.
    #[schemars(range(min = 0))]
    interval_s: Option<f64>,
    /// Directions of links, and of their named links.
    rows: &'a [TopRow],
    /// Links and network namespaces that could not be read, a sentence for each.
    unreadable: &'a [String],
}

impl<'a> TopLine<'a> {
    /// Shows the last reading.
    pub fn of(top: &'a Top) -> Self {
        Self {
            schema: TOP_SCHEMA,
            mono_ns: top.mono_ns(),
            interval_s: top.interval_ns.map(|ns| ns as f64 / 1e9),
            rows: &top.rows,
            unreadable: &top.unreadable,
        }
    }
}
