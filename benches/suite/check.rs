// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction counts against the committed ones. Nothing else is compared: only these are the same
//! on every machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::case::cases;
use crate::figure::Results;
use crate::report::{gather, read_all};
use crate::table::{number, row};

/// A regression is more than this factor.
const BOUND: f64 = 1.10;

#[derive(clap::Args)]
pub struct Check {
    /// File with the figures for comparison
    #[arg(long, default_value = "docs/benchmarks.json")]
    committed: PathBuf,
    /// Folder with the results
    #[arg(long, default_value = "target/bench")]
    dir: PathBuf,
}

impl Check {
    pub fn run(&self) -> Result<()> {
        let outcome = compare(&read_all(&self.committed)?, &gather(&self.dir)?);
        print!("{}", outcome.text());
        if outcome.compared.is_empty() {
            bail!("there was nothing to compare");
        }
        match outcome.regressions().count() {
            0 => Ok(()),
            n => bail!("{n} regressions above {:.0} %", (BOUND - 1.0) * 100.0),
        }
    }
}

/// Identity of a count: section, kernel series and location, case, side, metric.
pub type Key = (String, String, String, String, String);

#[derive(Debug)]
pub struct Compared {
    pub key: Key,
    pub then: f64,
    pub now: f64,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.now / self.then
    }

    fn is_regression(&self) -> bool {
        // A count of 0 or less has no ratio.
        match self.then > 0.0 {
            true => self.ratio() > BOUND,
            false => self.now > 0.0,
        }
    }
}

#[derive(Debug, Default)]
pub struct Outcome {
    pub compared: Vec<Compared>,
    /// Committed and not measured now.
    pub not_measured: Vec<Key>,
    /// Measured now and not committed.
    pub not_committed: Vec<Key>,
    /// Not the same release of a kernel series.
    pub other_kernels: Vec<String>,
}

pub fn compare(committed: &[Results], now: &[Results]) -> Outcome {
    let (then, mut now_counts) = (counts(committed), counts(now));
    let mut outcome = Outcome::default();
    for (key, then) in then {
        match now_counts.remove(&key) {
            Some(now) => outcome.compared.push(Compared { key, then, now }),
            None => outcome.not_measured.push(key),
        }
    }
    outcome.not_committed = now_counts.into_keys().collect();
    let releases = |all: &[Results]| -> BTreeSet<(String, String)> {
        let release = |r: &Results| (place(r), r.machine.kernel.clone());
        all.iter().map(release).collect()
    };
    let before = releases(committed);
    for (place, kernel) in releases(now).difference(&before) {
        if let Some((_, then)) = before.iter().find(|(p, _)| p == place) {
            let both = format!("{place}: {then} then, {kernel} now");
            outcome.other_kernels.push(both);
        }
    }
    outcome
}

/// emud's instruction counts; of a packet what it adds to the bare path, which would hide a change of a tenth.
fn counts(all: &[Results]) -> BTreeMap<Key, f64> {
    let mut counts = BTreeMap::new();
    for results in all {
        for case in cases(results) {
            if !["instructions", "instructions/packet"].contains(&case.unit) {
                continue;
            }
            for figure in case.sides.iter().filter(|f| f.side.starts_with("emud")) {
                let key = (
                    results.section.clone(),
                    place(results),
                    case.name.to_owned(),
                    figure.side.clone(),
                    case.metric.to_owned(),
                );
                counts.insert(key, case.net(figure));
            }
        }
    }
    counts
}

/// Kernels of one series count the same but for their own changes.
pub fn place(results: &Results) -> String {
    let numbers: Vec<&str> = results.machine.kernel.splitn(3, '.').take(2).collect();
    let series = numbers.join(".");
    let series = series.split(|c: char| c != '.' && !c.is_ascii_digit());
    let series = series.take(1).collect::<String>();
    // The part in brackets only applies to this run.
    let place = &results.machine.place;
    let place = place.split_once(" (").map_or(&**place, |(place, _)| place);
    format!("{series}, {place}")
}

impl Outcome {
    pub fn regressions(&self) -> impl Iterator<Item = &Compared> {
        self.compared.iter().filter(|c| c.is_regression())
    }

    pub fn text(&self) -> String {
        let mut text = format!("{} instruction counts compared\n", self.compared.len());
        let better = |c: &&Compared| c.then > 0.0 && c.ratio() < 1.0 / BOUND;
        list(&mut text, "REGRESSIONS", self.regressions());
        let better = self.compared.iter().filter(better);
        list(&mut text, "better by as much (commit them)", better);
        for kernel in &self.other_kernels {
            text.push_str(&format!("another kernel: {kernel}\n"));
        }
        for (why, keys) in [
            ("committed, not measured now", &self.not_measured),
            ("measured now, not committed", &self.not_committed),
        ] {
            if !keys.is_empty() {
                text.push_str(&format!("not compared: {why} ({}):\n", keys.len()));
            }
            for (section, place, case, side, metric) in keys {
                text.push_str(&format!(
                    "  {section} ({place}): {case}: {side}: {metric}\n"
                ));
            }
        }
        text
    }
}

fn list<'a>(text: &mut String, title: &str, compared: impl Iterator<Item = &'a Compared>) {
    let mut compared = compared.peekable();
    if compared.peek().is_none() {
        return;
    }
    text.push_str(&format!(
        "{title}:\n\n| section | where | case | side | metric | committed | now | ratio |\n\
         |---|---|---|---|---|---:|---:|---:|\n"
    ));
    for c in compared {
        let (section, place, case, side, metric) = c.key.clone();
        let ratio = format!("{:.2}", c.ratio());
        let (then, now) = (number(c.then), number(c.now));
        row(
            text,
            &[section, place, case, side, metric, then, now, ratio],
        );
    }
    text.push('\n');
}
