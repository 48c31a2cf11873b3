// SPDX-License-Identifier: MIT OR Apache-2.0
//! The benchmark suite: emud beside stock netem. `make bench` runs its sections, most of them in
//! guest kernels (tests/vm/bench.sh), and then `report` here.
//!
//! Both sides of a comparison are measured in one boot, in turn, several times.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accuracy;
mod attach;
mod case;
mod check;
mod classes;
mod cost;
mod cpus;
mod figure;
mod flows;
mod hold;
mod htb;
mod links;
mod local;
mod monitor;
mod pktgen;
mod plot;
mod rattan;
mod report;
mod router;
mod side;
mod site;
mod spare;
mod sums;
mod table;
mod tap;
mod tcp;
#[cfg(test)]
mod tests;
mod verifier;
mod wirefilter;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use figure::{Machine, Results};
use support::{lab, load};

/// A section measures all its sides in this many turns.
pub struct Suite {
    pub results: Results,
    pub turns: usize,
    pub full: bool,
}

type Measure = fn(&mut Suite);

const SECTIONS: [(&str, Measure); 10] = [
    ("cost", cost::run),
    ("links", links::run),
    ("attach", attach::run),
    ("cpus", cpus::run),
    ("accuracy", accuracy::run),
    ("tcp", tcp::run),
    ("hold", hold::run),
    ("classes", classes::run),
    ("monitor", monitor::run),
    ("verifier", verifier::run),
];

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measure one section here, as root.
    Run {
        section: String,
        /// More cases and turns.
        #[arg(long)]
        full: bool,
        /// What kind of machine this is.
        #[arg(long, default_value = "host")]
        place: String,
        #[arg(long)]
        out: PathBuf,
    },
    /// Tables and plots from the results in a folder.
    Report(report::Report),
    /// Compare with the figures that are committed.
    Check(check::Check),
}

fn main() -> Result<()> {
    // The load of a section is a separate process.
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(load::ARGUMENT) {
        let _ = load::main(arguments);
        return Ok(());
    }
    match Arguments::parse().what {
        What::Run {
            section,
            full,
            place,
            out,
        } => run(section, full, place)?.write(&out)?,
        What::Report(report) => report.run()?,
        What::Check(check) => check.run()?,
    }
    Ok(())
}

fn run(section: String, full: bool, place: String) -> Result<Results> {
    let Some((_, measure)) = SECTIONS.iter().find(|(name, _)| *name == section) else {
        bail!(
            "no section `{section}`: there are {}",
            SECTIONS.map(|(name, _)| name).join(", ")
        );
    };
    let mut suite = Suite {
        results: Results {
            section,
            full,
            machine: machine(place),
            figures: Vec::new(),
            missing: Vec::new(),
        },
        turns: if full { 5 } else { 3 },
        full,
    };
    measure(&mut suite);
    Ok(suite.results)
}

fn machine(place: String) -> Machine {
    let said = |program: &str, arguments: &[&str]| {
        let out = Command::new(program).args(arguments).output();
        out.map_or_else(
            |e| format!("{program}: {e}"),
            |out| String::from_utf8_lossy(&out.stdout).trim().to_owned(),
        )
    };
    Machine {
        kernel: said("uname", &["-r"]),
        place,
        emud: said(&lab::emud_path().to_string_lossy(), &["--version"]),
        iproute2: said("tc", &["-V"]),
        date: said("date", &["-u", "+%FT%TZ"]),
    }
}
