// SPDX-License-Identifier: GPL-2.0-only
//! What is to be run: one program behind one link, or a scenario.

use emud::lab;
use emud::profile::{Profile, shipped};
use emud::run::in_place;
use emud::scenario::{self, Overrides, Plan, Program, Scenario};

use super::Args;
use crate::cli::Failure;
use crate::cli::failure::EX_USAGE;

#[derive(Debug)]
pub enum What {
    Program {
        profile: Profile,
        asked: String,
        program: Program,
        in_place: Option<String>,
    },
    Scenario(Box<Scenario>, Overrides),
}

/// Length of the network between the host and a single program: two addresses.
const PREFIX_LEN: u8 = 30;

impl What {
    pub fn new(args: &Args) -> Result<Self, Failure> {
        if let Some(scenario) = &args.scenario {
            let overrides = Overrides {
                nodes: args.nodes,
                measure: args.measure,
                command: (!args.command.is_empty()).then(|| Program::Argv(args.command.clone())),
                host_interface: Some(lab::free_interface()?),
            };
            let scenario = Box::new(scenario::load(scenario)?);
            return Ok(Self::Scenario(scenario, overrides));
        }
        let Some(asked) = &args.profile else {
            let message = "give --profile for one program behind one link, or --scenario";
            return Err(Failure::new(EX_USAGE, message));
        };
        let profile = shipped::find(asked)?;
        Ok(Self::Program {
            profile: if args.reverse {
                profile.reversed()
            } else {
                profile
            },
            asked: asked.clone(),
            program: match args.command.is_empty() {
                true => Program::Interactive,
                false => Program::Argv(args.command.clone()),
            },
            in_place: args.in_place.clone(),
        })
    }

    /// That of the profile.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::Program { profile, .. } => profile.seed,
            Self::Scenario(..) => None,
        }
    }

    /// Worked out anew for each run: which addresses are free may change.
    pub fn plan(&self) -> Result<Plan, Failure> {
        match self {
            Self::Scenario(scenario, overrides) => Ok(scenario.plan(overrides)?),
            Self::Program {
                profile,
                asked,
                program,
                in_place: Some(interface),
            } => Ok(in_place::plan(
                profile.clone(),
                asked,
                program.clone(),
                interface,
            )),
            Self::Program {
                profile,
                asked,
                program,
                in_place: None,
            } => {
                let network = lab::free_network(PREFIX_LEN)?;
                let host = lab::free_interface()?;
                Ok(Plan::single(
                    profile.clone(),
                    asked,
                    program.clone(),
                    network,
                    &host,
                ))
            }
        }
    }
}
