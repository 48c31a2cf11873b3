// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;

use emud::datapath::matrix;
use emud::profile::Pair;

use super::{CliTarget, Failure};

/// Change the pairs of a matrix, all at once
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud apply pairs.csv eth0             set these pairs, keep the others
  emud apply --replace pairs.csv        return all others to the base link
  emud show --matrix eth0 | emud apply /dev/stdin eth1

A row is source,destination,rate,delay,loss; an empty field has the value of the base link
(docs/many-links.md). No packet sees half of a change.")]
pub struct Args {
    /// CSV file of pairs
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Interface; optional if only one has an emulated link
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Return pairs that are not in FILE to the base link
    #[arg(long)]
    replace: bool,
}

pub fn run(args: &Args, place: &CliTarget) -> Result<(), Failure> {
    let pairs = Pair::load(&args.file)?;
    let interface = place.given(args.interface.as_deref())?;
    let (interface, applied) = matrix::apply(interface.as_deref(), &pairs, args.replace)?;
    super::out(&format!(
        "{interface}: {} pairs, {} of them new, room for {}\n",
        applied.pairs, applied.new, applied.capacity
    ))
}
