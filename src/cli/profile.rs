// SPDX-License-Identifier: GPL-2.0-only

use std::path::{Path, PathBuf};

use clap::Subcommand;
use emud::link::{DIRECTIONS, direction_name, timeline};
use emud::profile::shipped::{self, SHIPPED};
use emud::profile::{Profile, Rate};
use emud::verify::{Asked, Cdf, compiled};

use super::{Failure, plot, plot_time};

/// Look at profiles
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the shipped profiles
    List,
    /// Print a profile as it was written
    #[command(after_long_help = "Example:\n  emud profile show hsdpa > mine.toml")]
    Show {
        /// A shipped profile's name or a file
        profile: String,
    },
    /// Check profiles; nothing is attached
    #[command(after_long_help = "Example:\n  emud profile check ./*.toml")]
    Check {
        /// Files, or names of shipped profiles
        #[arg(required = true)]
        profiles: Vec<String>,
    },
    /// Draw the delays of both directions, with rate and loss, as SVG; of a profile that changes
    /// with time the rate over time
    #[command(after_long_help = "Example:\n  emud profile plot hsdpa -o hsdpa.svg")]
    Plot {
        /// A shipped profile's name or a file
        profile: String,
        /// The SVG file to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

pub fn run(args: Args) -> Result<(), Failure> {
    match args.verb {
        Verb::List => list(),
        Verb::Show { profile } => super::out(&text(&profile)?),
        Verb::Check { profiles } => check(&profiles),
        Verb::Plot { profile, output } => draw(&profile, &output),
    }
}

fn list() -> Result<(), Failure> {
    let mut lines = String::new();
    for profile in SHIPPED {
        lines += &format!("{:22} {}\n", profile.name, profile.parse()?.description);
    }
    super::out(&lines)
}

/// As it was written, comments and all, if it is a good profile.
fn text(name: &str) -> Result<String, Failure> {
    shipped::find(name)?;
    match SHIPPED.iter().find(|shipped| shipped.name == name) {
        Some(shipped) => Ok(shipped.text.to_owned()),
        None => Ok(std::fs::read_to_string(name)?),
    }
}

/// All of them are looked at, the first failure is the one that counts.
fn check(profiles: &[String]) -> Result<(), Failure> {
    let mut first: Option<Failure> = None;
    for name in profiles {
        match shipped::find(name) {
            Ok(_) => super::out(&format!("{name}: good\n"))?,
            Err(e) if first.is_none() => first = Some(e.into()),
            Err(e) => eprintln!("emud: {e}"),
        }
    }
    first.map_or(Ok(()), Err)
}

fn draw(name: &str, output: &Path) -> Result<(), Failure> {
    let profile = shipped::find(name)?;
    if profile.is_timed() {
        let panels: Vec<_> = DIRECTIONS.map(|d| rates(&profile, d)).into();
        return plot_time::write(output, &panels);
    }
    let panels: Result<Vec<_>, Failure> =
        DIRECTIONS.into_iter().map(|d| panel(&profile, d)).collect();
    plot::write(output, &panels?)
}

fn panel(profile: &Profile, direction: u32) -> Result<plot::Panel, Failure> {
    let asked = compiled(profile, direction, ETHERNET_FRAME)?;
    Ok(plot::Panel {
        title: format!("{} {}", profile.name, direction_name(direction)),
        facts: facts(&asked),
        curves: vec![plot::asked(&Cdf::of(&[&asked]), 0.0)],
    })
}

/// A link without a limit has no rate to draw.
fn rates(profile: &Profile, direction: u32) -> plot_time::RatePanel {
    let (steps, end_s) = timeline::rates(profile, direction);
    let unlimited = steps.iter().any(|(_, rate)| rate.is_infinite());
    let note = if unlimited {
        " (0 stands for no limit)"
    } else {
        ""
    };
    let mbit = |rate: f64| if rate.is_finite() { rate / 1e6 } else { 0.0 };
    plot_time::RatePanel {
        title: format!("{} {}{note}", profile.name, direction_name(direction)),
        steps: steps.iter().map(|(at, rate)| (*at, mbit(*rate))).collect(),
        end_s,
    }
}

/// The longest usual packet.
const ETHERNET_FRAME: usize = 1514;

fn facts(asked: &Asked) -> Vec<String> {
    let rate = match asked.rate_bit_s {
        None => "no rate".to_owned(),
        Some(rate) => format!(
            "rate {}, {:.3} ms a {ETHERNET_FRAME}-byte frame",
            Rate(rate.round() as u64),
            asked.serialisation_ns(ETHERNET_FRAME) / 1e6
        ),
    };
    let loss = match asked.loss {
        0.0 => "no loss".to_owned(),
        p => format!(
            "loss {}%, a run of n with probability {}%^n, {:.3} packets a run",
            (p * 1e8).round() / 1e6,
            (p * 1e8).round() / 1e6,
            1.0 / (1.0 - p)
        ),
    };
    let delay = format!(
        "delay {:.3} ms, sd {:.3} ms",
        asked.mean_ns / 1e6,
        asked.sd_ns / 1e6
    );
    vec![delay, rate, loss]
}
