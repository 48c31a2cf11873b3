// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::{Path, PathBuf};

use clap::Subcommand;
use emud::abi::{DIRECTIONS, direction_name};
use emud::catalogue::{Catalogue, Listed};
use emud::datapath::stage::timeline;
use emud::profile::shipped::{self, SHIPPED};
use emud::profile::{Loss, Percent, Profile, Rate, loss_runs, over_time};
use emud::text::to_stderr;
use emud::verify::{Asked, Cdf, DEPENDENT_LOSS};

use super::plot_runs::RunsPanel;
use super::plot_time::TimePanel;
use super::{Failure, plot, plot_time};

/// List, print, check and plot profiles
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the shipped profiles
    List {
        /// Print JSON (docs/json.md)
        #[arg(long)]
        json: bool,
    },
    /// Print the text of a profile
    #[command(after_long_help = "Example:\n  emud profile show hsdpa > mine.toml")]
    Show {
        /// Profile to print: shipped name or path to a TOML file
        profile: String,
    },
    /// Check profiles without attaching them
    #[command(after_long_help = "Example:\n  emud profile check ./*.toml")]
    Check {
        /// Profiles to check: paths to TOML files, or shipped names
        #[arg(required = true)]
        profiles: Vec<String>,
    },
    /// Plot delays and runs of losses as SVG
    ///
    /// Of a profile that changes with time, it plots rate, delay and loss over time
    #[command(after_long_help = "Example:\n  emud profile plot hsdpa -o hsdpa.svg")]
    Plot {
        /// Profile to plot: shipped name or path to a TOML file
        profile: String,
        /// SVG file to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

pub fn run(args: Args) -> Result<(), Failure> {
    match args.verb {
        Verb::List { json } => list(json),
        Verb::Show { profile } => super::out(&text(&profile)?),
        Verb::Check { profiles } => super::check_all(&profiles, shipped::find),
        Verb::Plot { profile, output } => draw(&profile, &output),
    }
}

fn list(json: bool) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for shipped in SHIPPED {
        let profile = shipped::find(shipped.name)?;
        listed.push(Listed {
            name: shipped.name,
            description: profile.description,
            source: Some(profile.source).filter(|source| !source.is_empty()),
        });
    }
    super::out(&Catalogue::text(listed, json)?)
}

/// Returns the text of a valid profile, including comments.
fn text(name: &str) -> Result<String, Failure> {
    Ok(shipped::find_text(name)?.1)
}

fn draw(name: &str, output: &Path) -> Result<(), Failure> {
    let profile = shipped::find(name)?;
    let mut outlines = Vec::new();
    for direction in DIRECTIONS {
        outlines.push(Asked::outline(&profile, direction, ETHERNET_FRAME)?);
    }
    let timed = is_timed(&profile);
    let mut all: Vec<_> = outlines.iter().flat_map(|(_, out)| out).copied().collect();
    all.extend(of_phases(&profile)?);
    let left_out = not_drawn(&profile, all, timed);
    let note = match left_out.is_empty() {
        true => None,
        false => Some(format!("not drawn: {}", left_out.join(", "))),
    };
    if let Some(note) = &note {
        to_stderr(format_args!("emud: note: {note}"));
    }
    if timed {
        let panels: Vec<_> = DIRECTIONS
            .into_iter()
            .flat_map(|d| over_time_panels(&profile, d))
            .collect();
        return plot_time::write(output, &panels, note.as_deref());
    }
    let panels: Vec<_> = DIRECTIONS
        .into_iter()
        .zip(&outlines)
        .map(|(direction, (asked, _))| panel(&profile, direction, asked, note.as_ref()))
        .collect();
    let loses = DIRECTIONS.map(|d| !profile.direction(d).loss.is_none());
    let runs: Vec<_> = match loses.contains(&true) {
        true => DIRECTIONS.map(|d| runs(&profile, d)).into(),
        false => Vec::new(),
    };
    plot::write_with(output, &panels, &runs)
}

/// Returns whether the profile's own link changes with time.
fn is_timed(profile: &Profile) -> bool {
    let traced = |d: u32| profile.direction(d).trace.is_some();
    !profile.phases.list.is_empty() || DIRECTIONS.into_iter().any(traced)
}

/// Returns what the outlines leave out of the links of phases.
fn of_phases(profile: &Profile) -> Result<Vec<&'static str>, Failure> {
    let mut all = Vec::new();
    for phase in &profile.phases.list {
        let alone = Profile {
            up: phase.up.clone(),
            down: phase.down.clone(),
            phases: Default::default(),
            ..profile.clone()
        };
        for direction in DIRECTIONS {
            all.extend(Asked::outline(&alone, direction, ETHERNET_FRAME)?.1);
        }
    }
    Ok(all)
}

/// Returns what the plot does not show: parts that the outlines leave out, and others.
fn not_drawn(profile: &Profile, all: Vec<&'static str>, timed: bool) -> Vec<&'static str> {
    let drawn = |what: &str| match timed {
        true => what == "a trace or phases" || what == "`state = \"down\"`",
        // In the panel of its runs.
        false => what == DEPENDENT_LOSS,
    };
    let jitters = |d: u32| profile.links_of(d).any(|link| link.delay.jitter.is_some());
    let jitter = timed && DIRECTIONS.into_iter().any(jitters);
    let beside = [
        ("jitter", jitter),
        ("named links", !profile.links.is_empty()),
    ];
    let beside = beside.iter().filter(|(_, there)| *there);
    let mut out = Vec::new();
    for what in all.into_iter().chain(beside.map(|(what, _)| *what)) {
        if !drawn(what) && !out.contains(&what) {
            out.push(what);
        }
    }
    out
}

fn panel(profile: &Profile, direction: u32, asked: &Asked, note: Option<&String>) -> plot::Panel {
    let mut facts = facts(asked, &profile.direction(direction).loss);
    facts.extend(note.cloned());
    plot::Panel {
        title: format!("{} {}", profile.name, direction_name(direction)),
        facts,
        curves: vec![plot::asked(&Cdf::of(&[asked]), 0.0)],
    }
}

fn runs(profile: &Profile, direction: u32) -> RunsPanel {
    let title = format!(
        "{} {}: runs of losses",
        profile.name,
        direction_name(direction)
    );
    let loss = &profile.direction(direction).loss;
    match loss_runs::loss_runs(loss, ETHERNET_FRAME as u32) {
        Some(runs) => RunsPanel {
            title,
            facts: vec![runs.from],
            at_least: runs.at_least,
        },
        None => RunsPanel {
            title,
            facts: vec!["no run of losses ends".to_owned()],
            at_least: Vec::new(),
        },
    }
}

/// Returns the panels of rate, delay and loss that the profile has.
fn over_time_panels(profile: &Profile, direction: u32) -> Vec<TimePanel> {
    let (rates, end_s) = timeline::rates(profile, direction);
    let unlimited = rates.iter().any(|(_, rate)| rate.is_infinite());
    let note = if unlimited {
        " (0 stands for no limit)"
    } else {
        ""
    };
    let name = format!("{} {}", profile.name, direction_name(direction));
    let panel = |note: &str, what, steps: Vec<(f64, f64)>, unit: f64| TimePanel {
        title: format!("{name}{note}"),
        what,
        steps: steps
            .iter()
            .map(|(at, value)| (*at, value / unit))
            .collect(),
        end_s,
    };
    let rates: Vec<_> = rates
        .into_iter()
        .map(|(at, rate)| (at, if rate.is_finite() { rate } else { 0.0 }))
        .collect();
    let delays = over_time::thinned(over_time::delays(profile, direction));
    let losses = over_time::losses(profile, direction, ETHERNET_FRAME as u32);
    let losses = over_time::thinned(losses);
    let mut panels = Vec::new();
    for (note, what, steps, unit) in [
        (note, "rate, Mbit/s", rates, 1e6),
        ("", "delay, ms", delays, 1e6),
        ("", "loss, %", losses, 0.01),
    ] {
        if steps.iter().any(|(_, value)| *value > 0.0) {
            panels.push(panel(note, what, steps, unit));
        }
    }
    if panels.is_empty() {
        let note = ": no rate, delay or loss at any time";
        panels.push(panel(note, "delay, ms", vec![(0.0, 0.0)], 1e6));
    }
    panels
}

/// Length of the longest common packet.
const ETHERNET_FRAME: usize = 1514;

fn facts(asked: &Asked, loss: &Loss) -> Vec<String> {
    let rate = match asked.rate_bit_s {
        None => "no rate".to_owned(),
        Some(rate) => format!(
            "rate {}, {:.3} ms a {ETHERNET_FRAME}-byte frame",
            Rate(rate.round() as u64),
            asked.serialisation_ns(ETHERNET_FRAME) / 1e6
        ),
    };
    let share = loss.share_of(ETHERNET_FRAME as u32);
    let loss = match share {
        0.0 => "no loss in the long run".to_owned(),
        p => format!("loss {}", Percent(p).rounded()),
    };
    let delay = format!(
        "delay {:.3} ms, sd {:.3} ms",
        asked.mean_ns / 1e6,
        asked.sd_ns / 1e6
    );
    vec![delay, rate, loss]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(name: &str, text: &str) -> String {
        let folder = std::env::temp_dir();
        let file = |end: &str| folder.join(format!("emud-plot-{name}-{}{end}", std::process::id()));
        let (toml, svg) = (file(".toml"), file(".svg"));
        std::fs::write(&toml, text).unwrap();
        draw(toml.to_str().unwrap(), &svg).unwrap_or_else(|e| panic!("{text}\n{}", e.message));
        let drawn = std::fs::read_to_string(&svg).unwrap();
        std::fs::remove_file(toml).unwrap();
        std::fs::remove_file(svg).unwrap();
        drawn
    }

    #[test]
    fn everything_a_profile_may_have_is_plotted() {
        for (name, text, there, not) in [
            ("plain", "[link]\ndelay = \"5ms\"", "delay, ms", "runs"),
            (
                "ge",
                "[link]\nloss = { model = \"gilbert-elliott\", p = \"1%\", r = \"20%\" }",
                "share of runs of n or more",
                "not drawn",
            ),
            (
                "correlated",
                "[up]\nloss = { model = \"bernoulli\", probability = \"9%\", correlation = \"50%\" }",
                "a seeded run of",
                "not drawn",
            ),
            (
                "more",
                "[link]\nrate = { rate = \"1Mbit\", burst = \"32kB\" }\nqueue = { aqm = \"codel\" }\n\
                 duplicate = \"1%\"\nslot = \"10ms\"\n",
                "not drawn: duplicates, a burst, an AQM, `slot`",
                "runs",
            ),
            (
                "rules",
                "[link]\ndelay = \"1ms\"\n[links.a]\n[[rule]]\nlink = \"a\"\n[matrix]\ncapacity = 3\n",
                "not drawn: rules, a matrix, named links",
                "runs",
            ),
            (
                "phases",
                "[link]\n[[phase]]\nfor = \"1s\"\ndelay = \"9ms\"\n[[phase]]\nloss = \"2%\"",
                "delay, ms",
                "rate, Mbit/s",
            ),
        ] {
            let drawn = svg(name, text);
            assert!(drawn.contains(there), "{name}: {there}");
            assert!(!drawn.contains(not), "{name}: {not}");
        }
        let phases = svg(
            "both",
            "[link]\nrate = \"1Mbit\"\n[[phase]]\nfor = \"1s\"\nloss = \"2%\"\n[[phase]]\n",
        );
        assert!(phases.contains("loss, %") && phases.contains("rate, Mbit/s"));
        assert!(!phases.contains("delay, ms") && !phases.contains("not drawn"));
        let more = svg(
            "of-phases",
            "[link]\n[[phase]]\nfor = \"1s\"\nduplicate = \"2%\"\n[[phase]]\n\
             delay = { mean = \"9ms\", jitter = \"1ms\" }\n",
        );
        assert!(more.contains("not drawn: duplicates, jitter"));
    }
}
