// SPDX-License-Identifier: MIT OR Apache-2.0

use clap::Subcommand;
use emud::catalogue::{Catalogue, Listed};
use emud::experiment::scenario::shipped::{self, SHIPPED};
use emud::experiment::scenario::{Overrides, Plan};
use emud::profile::Time;

use super::Failure;

/// List, print, check and plan experiments with several nodes
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the shipped scenarios
    List {
        /// Print JSON (docs/json.md)
        #[arg(long)]
        json: bool,
    },
    /// Print the text of a scenario
    #[command(after_long_help = "Example:\n  emud scenario show chain > mine.toml")]
    Show {
        /// Scenario to print: shipped name or path to a TOML file
        scenario: String,
    },
    /// Check scenarios without running them
    #[command(after_long_help = "Example:\n  emud scenario check ./*.toml")]
    Check {
        /// Scenarios to check: paths to TOML files, or shipped names
        #[arg(required = true)]
        scenarios: Vec<String>,
    },
    /// Print the nodes, addresses, routes and links of a scenario
    #[command(after_long_help = "Example:\n  emud scenario plan chain --nodes 3")]
    Plan {
        /// Scenario to plan: shipped name or path to a TOML file
        scenario: String,
        /// Size of a topology: number of routers, nodes (of each switch), pairs or peers
        #[arg(long, value_name = "N")]
        nodes: Option<u32>,
        /// Longest measured phase
        #[arg(long, value_name = "TIME")]
        measure: Option<Time>,
        /// Print JSON (docs/scenario.md)
        #[arg(long)]
        json: bool,
    },
}

pub fn run(args: Args) -> Result<(), Failure> {
    match args.verb {
        Verb::List { json } => list(json),
        Verb::Show { scenario } => super::out(&shipped::find(&scenario)?.text),
        Verb::Check { scenarios } => super::check_all(&scenarios, |name| {
            shipped::find(name)?.plan(&Overrides::default())
        }),
        Verb::Plan {
            scenario,
            nodes,
            measure,
            json,
        } => {
            let overrides = Overrides {
                nodes,
                measure: measure.map(|Time(ns)| std::time::Duration::from_nanos(ns)),
                ..Overrides::default()
            };
            print(&shipped::find(&scenario)?.plan(&overrides)?, json)
        }
    }
}

fn list(json: bool) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for shipped in SHIPPED {
        listed.push(Listed {
            name: shipped.name,
            description: shipped::find(shipped.name)?.top.description,
            source: None,
        });
    }
    super::out(&Catalogue::text(listed, json)?)
}

fn print(plan: &Plan, json: bool) -> Result<(), Failure> {
    match json {
        true => super::out(&format!("{:#}\n", plan.to_json())),
        false => super::out(&plan.to_text()),
    }
}
