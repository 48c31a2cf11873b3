// SPDX-License-Identifier: MIT OR Apache-2.0
//! All results of a folder as Markdown, plots and one JSON file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::check::place;
use crate::figure::Results;
use crate::{plot, table};

/// Markers of the tables in the committed document.
const BEGIN: &str = "<!-- tables: begin -->";
const END: &str = "<!-- tables: end -->";

/// All results as an array; not read as the results of a section.
const ALL: &str = "results.json";

/// A line for each section that failed.
const FAILED: &str = "failed";

/// Every section, in the order of the report.
pub const SECTIONS: [(&str, &str); 10] = [
    ("cost", "Cost a packet"),
    ("links", "Many links"),
    ("attach", "Attach of one link"),
    ("cpus", "Many CPUs"),
    ("accuracy", "Accuracy"),
    ("tcp", "TCP"),
    ("hold", "Engine hold"),
    ("classes", "Classes of a bottleneck"),
    ("monitor", "Monitor"),
    ("verifier", "Work of the verifier"),
];

#[derive(clap::Args)]
pub struct Report {
    /// Folder with the results, and for the report
    #[arg(long, default_value = "target/bench")]
    dir: PathBuf,
    /// Put the tables of a full run into this document, and the figures beside it as JSON
    #[arg(long)]
    docs: Option<PathBuf>,
    /// Keep the document's figures of each section and machine without results in the folder
    #[arg(long, requires = "docs")]
    keep: bool,
}

impl Report {
    pub fn run(&self) -> Result<()> {
        let all = gather(&self.dir)?;
        if all.is_empty() {
            bail!("no results in {}", self.dir.display());
        }
        write_all(&self.dir.join(ALL), &all)?;
        let failed = fs::read_to_string(self.dir.join(FAILED)).unwrap_or_default();
        let failed: Vec<&str> = failed.lines().collect();
        let plots = plot::all(&all)?;
        for plot in &plots {
            write(&self.dir.join(&plot.file), &plot.svg)?;
        }
        let text = format!("# Benchmarks\n\n{}", markdown(&all, &failed, &plots, 2));
        let path = self.dir.join("report.md");
        write(&path, &text)?;
        println!("{}", path.display());
        match &self.docs {
            Some(docs) => commit(docs, all, &failed, self.keep),
            None => Ok(()),
        }
    }
}

fn commit(docs: &Path, mut all: Vec<Results>, failed: &[&str], keep: bool) -> Result<()> {
    if let Some(quick) = all.iter().find(|results| !results.full) {
        let section = &quick.section;
        bail!("{section} is of a quick run: the document quotes a full one");
    }
    let json = docs.with_extension("json");
    if keep {
        let of = |results: &Results| (results.section.clone(), place(results));
        let new: Vec<_> = all.iter().map(of).collect();
        let old = read_all(&json)?.into_iter();
        all.extend(old.filter(|results| !new.contains(&of(results))));
        sort(&mut all);
    }
    let before = fs::read_to_string(docs).with_context(|| docs.display().to_string())?;
    let tables = markdown(&all, failed, &[], 3);
    let after = replace(&before, &tables).with_context(|| docs.display().to_string())?;
    write(docs, &after)?;
    write_all(&json, &all)?;
    println!("{}\n{}", docs.display(), json.display());
    Ok(())
}

/// The results in a folder, by section, then by kernel.
pub fn gather(dir: &Path) -> Result<Vec<Results>> {
    let name = || dir.display().to_string();
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).with_context(name)? {
        let path = entry?.path();
        let is_json = path.extension().is_some_and(|e| e == "json");
        if is_json && path.file_name().is_some_and(|name| name != ALL) {
            all.push(Results::read(&path)?);
        }
    }
    sort(&mut all);
    Ok(all)
}

fn sort(all: &mut [Results]) {
    let order = |results: &Results| {
        let known = SECTIONS.iter().position(|(s, _)| *s == results.section);
        let machine = &results.machine;
        (
            known.unwrap_or(SECTIONS.len()),
            results.section.clone(),
            machine.place.clone(),
            machine.kernel.clone(),
        )
    };
    all.sort_by_cached_key(order);
}

/// What [`write_all`] wrote.
pub fn read_all(path: &Path) -> Result<Vec<Results>> {
    let place = || path.display().to_string();
    serde_json::from_str(&fs::read_to_string(path).with_context(place)?).with_context(place)
}

fn write_all(path: &Path, all: &[Results]) -> Result<()> {
    write(path, &(serde_json::to_string_pretty(all)? + "\n"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Headings are of `level` and below.
fn markdown(all: &[Results], failed: &[&str], plots: &[plot::Plot], level: usize) -> String {
    let mut text = table::machines(all);
    text.push_str(
        "\nA figure is the median of the turns, in which its sides were measured one after the other. \
         *added*: above bare. *to netem*: of what is added where there is a bare path to add to, else of the \
         medians; if netem has several set-ups, to the best of them.\n\n",
    );
    let absent = SECTIONS
        .iter()
        .filter(|(s, _)| all.iter().all(|r| r.section != *s));
    let absent = absent.map(|(section, _)| format!("{section}: there are no results"));
    let absent: Vec<String> = absent
        .chain(failed.iter().map(|line| (*line).to_owned()))
        .collect();
    if !absent.is_empty() {
        let _ = writeln!(text, "Missing:\n\n- {}\n", absent.join("\n- "));
    }
    for of_section in all.chunk_by(|a, b| a.section == b.section) {
        let section = &of_section[0].section;
        let title = SECTIONS.iter().find(|(s, _)| s == section);
        let title = title.map_or(section.as_str(), |(_, title)| title);
        let _ = writeln!(text, "{} {title}\n", "#".repeat(level));
        for results in of_section {
            let (kernel, place) = (&results.machine.kernel, &results.machine.place);
            let head = "#".repeat(level + 1);
            let _ = writeln!(text, "{head} {section}: Linux {kernel} ({place})\n");
            text.push_str(&table::figures(results, level + 2));
        }
        for plot in plots.iter().filter(|plot| plot.section == *section) {
            let _ = writeln!(text, "![{}]({})\n", plot.title, plot.file);
        }
    }
    text
}

/// Puts `tables` between the markers.
fn replace(document: &str, tables: &str) -> Result<String> {
    let halves = document.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = halves.with_context(|| format!("no {BEGIN} ... {END}"))?;
    Ok(format!(
        "{before}{BEGIN}\n{}\n{END}{after}",
        tables.trim_end()
    ))
}
