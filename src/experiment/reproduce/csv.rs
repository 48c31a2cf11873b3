// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of experiments as CSV, for the statistics of other programs.

use super::{Figure, Reproduction};

const HEADER: [&str; 6] = ["experiment", "figure", "unit", "emulator", "flow", "value"];

impl Reproduction {
    /// Returns a row for each value: of a mean of flows one for each flow, from 1; of others one, with flow 0.
    ///
    /// # Errors
    /// A row cannot be written.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(vec![]);
        writer.write_record(HEADER)?;
        for one in &self.experiments {
            for figure in &one.figures {
                for (emulator, flow, value) in values(figure) {
                    let [flow, value] = [flow.to_string(), value.to_string()];
                    writer.write_record([
                        &*one.name,
                        &figure.figure,
                        &figure.unit,
                        emulator,
                        &flow,
                        &value,
                    ])?;
                }
            }
        }
        let bytes = writer.into_inner().map_err(|e| e.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn values(figure: &Figure) -> impl Iterator<Item = (&'static str, usize, f64)> {
    let sides = [
        ("emud", figure.measured, &figure.flows),
        ("netem", figure.netem, &figure.netem_flows),
    ];
    sides.into_iter().flat_map(|(emulator, mean, flows)| {
        let alone = mean.filter(|_| flows.is_empty()).map(|mean| (0, mean));
        let flows = flows.iter().enumerate().map(|(n, value)| (n + 1, *value));
        let all = alone.into_iter().chain(flows);
        all.map(move |(flow, value)| (emulator, flow, value))
    })
}
