// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::attachment;
use emud::datapath::show::list::List;
use emud::datapath::show::report::Report;

use super::Failure;

/// List the interfaces with an emulated link
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  emud list\n  emud list --netns client --json")]
pub struct Args {
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let reports = attachment::reports(None)?;
    if args.json {
        return super::out(&super::json(&List::of(&reports))?);
    }
    let lines: String = reports.iter().map(line).collect();
    super::out(&lines)
}

fn line(r: &Report) -> String {
    let directions = match (&r.up, &r.down) {
        (Some(_), Some(_)) => "both",
        (Some(_), None) => "up",
        _ => "down",
    };
    let tampered = match &r.tampered[..] {
        [] => String::new(),
        what => format!("\tTAMPERED: {}", what.join("; ")),
    };
    format!(
        "{}\t{}\t{directions}\tengine {}{tampered}\n",
        r.interface, r.profile, r.engine
    )
}
