// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;

use emud::datapath::matrix;
use emud::profile::Pair;

use super::Failure;

/// Change the pairs of a matrix, all at once
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud apply pairs.csv eth0             these pairs anew, the others as they are
  emud apply --replace pairs.csv        all others go back to the base link
  emud show --matrix eth0 | emud apply /dev/stdin eth1

A row is source,destination,rate,delay,loss; an empty field is as the base link has it
(docs/profile.md). No packet meets half of a change.")]
pub struct Args {
    /// CSV of pairs
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The interface; may be left out if only one has an emulated link
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Pairs that are not in FILE go back to the base link
    #[arg(long)]
    replace: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let pairs = Pair::load(&args.file)?;
    let (interface, applied) = matrix::apply(args.interface.as_deref(), &pairs, args.replace)?;
    super::out(&format!(
        "{interface}: {} pairs, {} of them new, room for {}\n",
        applied.pairs, applied.new, applied.capacity
    ))
}
