// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host beside the links: its CPUs, memory, swap space and disks, as a table and over time.

use super::plot::Plots;
use super::{PageError, Table, joined};
use crate::experiment::results::HostFigure::{
    BusiestCpu, BusiestDisk, Busy, Iowait, MemoryInUse, Read, Steal, SwapIn, SwapOut, System, User,
    Written,
};
use crate::experiment::results::{HostFigure, Run, number, share};

const COLUMNS: &[[&str; 2]] = &[["figure", ""], ["mean", "n"], ["most", "n"]];

pub struct Host {
    pub title: String,
    /// Of the measured phase.
    pub table: Table,
    pub joined: String,
    /// An image.
    pub plot: String,
}

/// Returns the hosts whose state the log has.
///
/// # Errors
/// A plot cannot be drawn.
pub fn of(runs: &[Run]) -> Result<Vec<Host>, PageError> {
    let mut hosts = vec![];
    for run in runs {
        let name = run.in_fleet.iter().map(|of| format!(" {}", of.host));
        let plot = Plots::new(run, runs).host()?;
        hosts.extend(plot.map(|plot| Host {
            title: format!("Host{}", name.collect::<String>()),
            table: Table::new(COLUMNS, rows(run).into_iter()),
            joined: joined(run.host_track.series.samples_each()),
            plot,
        }));
    }
    Ok(hosts)
}

/// Returns a table of all hosts.
pub fn table(runs: &[Run]) -> Table {
    Table::of_hosts(COLUMNS, runs, rows)
}

/// Returns the rows of the known figures.
fn rows(run: &Run) -> Vec<Vec<String>> {
    let measured = &run.host_track.measured;
    let memory = match measured.memory_bytes {
        Some(bytes) => format!("memory in use, of {}", amount(bytes as f64)),
        None => "memory in use".to_owned(),
    };
    let disk = match measured.disk() {
        Some(name) => format!("busiest disk ({name} at most)"),
        None => "busiest disk".to_owned(),
    };
    let rate = |bytes_s: f64| format!("{}/s", amount(bytes_s));
    let row = |name: &str, figure: HostFigure, text: &dyn Fn(f64) -> String| {
        let values = [measured.mean(figure)?, measured.most(figure)?];
        let [mean, most] = values.map(text);
        Some(vec![name.to_owned(), mean, most])
    };
    let rows = [
        row("all CPUs", Busy, &share),
        row("of it programs", User, &share),
        row("of it kernel", System, &share),
        row("of it steal", Steal, &share),
        row("iowait", Iowait, &share),
        row("busiest CPU", BusiestCpu, &share),
        row(&memory, MemoryInUse, &amount),
        row("swapped in", SwapIn, &rate),
        row("swapped out", SwapOut, &rate),
        row(&disk, BusiestDisk, &share),
        row("read from a disk", Read, &rate),
        row("written to a disk", Written, &rate),
    ];
    rows.into_iter().flatten().collect()
}

/// Returns an amount such as "7.7 GB".
fn amount(bytes: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let fits = units.into_iter().find(|(factor, _)| bytes >= *factor);
    let (factor, unit) = fits.unwrap_or((1.0, "B"));
    format!("{} {unit}", number(bytes / factor))
}
