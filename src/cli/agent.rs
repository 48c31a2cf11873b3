// SPDX-License-Identifier: MIT OR Apache-2.0

use std::net::IpAddr;

use emud::experiment::lab::LabError;
use emud::fleet::agent;
use rustix::process::geteuid;

use super::Failure;
use super::failure::EX_USAGE;
use super::store::{Store, say};

/// Carry out this host's part of experiments of `emud fleet`
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud agent --etcd http://192.0.2.1:2379 --host a
  emud agent --etcd https://e1:2379,https://e2:2379 --ca ca.pem --cert a.pem --key a.key --host a

It runs until a signal arrives. Programs run as the user `nobody` unless --user or --allow-root says
otherwise. docs/fleet.md")]
pub struct Args {
    #[command(flatten)]
    store: Store,

    /// Name of this host in the fleet
    #[arg(long, value_name = "NAME")]
    host: String,

    /// Address for tunnels and probes between hosts; not a loopback one, if there are others [default: the one that reaches etcd]
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,

    /// Share of experiments, relative to other hosts [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = weight)]
    weight: Option<f64>,

    /// Run programs as this user
    #[arg(
        long,
        value_name = "NAME",
        default_value = "nobody",
        conflicts_with = "allow_root"
    )]
    user: String,

    /// Run programs as root: a process that can write to etcd controls this host then
    #[arg(long)]
    allow_root: bool,
}

fn weight(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|e| e.to_string())?;
    match number.is_finite() && number > 0.0 {
        true => Ok(number),
        false => Err("the weight must be above 0".into()),
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Err(LabError::NotRoot.into());
    }
    let part = match args.allow_root {
        true => vec!["--root".to_owned()],
        false => {
            if super::fleet_part::user(&args.user)?.is_none() {
                let message = "--user root: use --allow-root to run programs as root";
                return Err(Failure::new(EX_USAGE, message));
            }
            vec!["--user".to_owned(), args.user.clone()]
        }
    };
    agent::run(&agent::Setup {
        access: args.store.access()?,
        fleet: args.store.fleet.clone(),
        host: args.host,
        address: args.address,
        weight: args.weight,
        allow_root: args.allow_root,
        part: agent::Part::Process(part),
        note: say,
    })?;
    Ok(())
}
