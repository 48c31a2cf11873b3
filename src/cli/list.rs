// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::attachment;
use emud::datapath::show::report::Report;
use serde_json::json;

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
        let interfaces: Vec<_> = reports
            .iter()
            .map(|r| {
                json!({
                    "interface": r.interface,
                    "ifindex": r.ifindex,
                    "profile": r.profile,
                    "engine": r.engine,
                    "up": r.up.is_some(),
                    "down": r.down.is_some(),
                    "tampered": r.tampered,
                    "notes": r.notes,
                })
            })
            .collect();
        let list = json!({ "schema": "emud-list/1", "interfaces": interfaces });
        return super::out(&format!("{list:#}\n"));
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
