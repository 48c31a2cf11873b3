// SPDX-License-Identifier: MIT OR Apache-2.0
//! The object of a run: one program behind one link, or a scenario.

use emud::experiment::lab::Reserved;
use emud::experiment::run::in_place;
use emud::experiment::scenario::{Overrides, Plan, Program, Scenario};
use emud::experiment::{lab, scenario};
use emud::profile::{Profile, shipped};

use super::Args;
use crate::cli::failure::EX_USAGE;
use crate::cli::{CliTarget, Failure, spare};

#[derive(Debug)]
pub enum What {
    Program {
        profile: Box<Profile>,
        asked: String,
        program: Program,
        at: At,
    },
    /// Its wire to the host, if any, has the same network for all repeats, too.
    Scenario(Box<Scenario>, Overrides, Option<Reserved>),
}

/// Where a single program runs.
#[derive(Debug)]
pub enum At {
    /// In a node; its wire to the host has this network for all repeats.
    Node(Reserved),
    /// In this namespace, on an existing interface.
    Interface(String),
}

/// Length of the network between the host and a single program: two addresses.
const PREFIX_LEN: u8 = 30;

impl What {
    pub fn new(args: &Args, place: &CliTarget) -> Result<Self, Failure> {
        if let Some(scenario) = &args.scenario {
            let mut overrides = Overrides {
                nodes: args.nodes,
                measure: args.measure,
                command: (!args.command.is_empty()).then(|| Program::Argv(args.command.clone())),
                host_interface: Some(lab::free_interface()?),
                taken: vec![],
            };
            let scenario = Box::new(scenario::find(scenario)?);
            let reserved = lab::reserve_first(|taken| {
                overrides.taken = taken.to_vec();
                Ok::<_, Failure>(scenario.plan(&overrides)?.host_network())
            })?;
            return Ok(Self::Scenario(scenario, overrides, reserved));
        }
        let Some(asked) = &args.profile else {
            let message = "use --profile for one program behind one link, or --scenario";
            return Err(Failure::new(EX_USAGE, message));
        };
        let mut profile = shipped::find(asked)?;
        if args.reverse {
            profile = profile.reversed();
        }
        place.resolve(&mut profile)?;
        spare::apply(&mut profile, &args.spare)?;
        Ok(Self::Program {
            profile: Box::new(profile),
            asked: asked.clone(),
            program: match args.command.is_empty() {
                true => Program::Interactive,
                false => Program::Argv(args.command.clone()),
            },
            at: match &args.in_place {
                Some(interface) => At::Interface(interface.clone()),
                None => At::Node(lab::free_network(PREFIX_LEN)?),
            },
        })
    }

    /// Returns the name of its plan.
    pub fn name(&self) -> &str {
        match self {
            Self::Program { profile, .. } => &profile.name,
            Self::Scenario(scenario, ..) => &scenario.top.name,
        }
    }

    /// Returns the seed of the profile.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::Program { profile, .. } => profile.seed,
            Self::Scenario(..) => None,
        }
    }

    /// Returns a note if this run loses different packets than others with its seed.
    pub fn note(&self) -> Option<String> {
        let (reserved, losses) = match self {
            Self::Program {
                at: At::Node(reserved),
                ..
            } => (reserved, "losses"),
            Self::Scenario(.., Some(reserved)) => {
                (reserved, "losses of packets to and from the host")
            }
            _ => return None,
        };
        (!reserved.usual).then(|| {
            format!(
                "the default addresses are in use, these are from {}: {losses} differ from those of \
                 other runs with this seed",
                reserved.network
            )
        })
    }

    /// Returns the plan of a run, computed for each run: the unused names of interfaces may change.
    pub fn plan(&self) -> Result<Plan, Failure> {
        match self {
            Self::Scenario(scenario, overrides, _) => Ok(scenario.plan(overrides)?),
            Self::Program {
                profile,
                asked,
                program,
                at: At::Interface(interface),
            } => Ok(in_place::plan(
                Profile::clone(profile),
                asked,
                program.clone(),
                interface,
            )),
            Self::Program {
                profile,
                asked,
                program,
                at: At::Node(reserved),
            } => {
                let host = lab::free_interface()?;
                Ok(Plan::single(
                    Profile::clone(profile),
                    asked,
                    program.clone(),
                    reserved.network,
                    &host,
                ))
            }
        }
    }
}
