// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::attachment;
use emud::datapath::host_wide::Host;
use emud::datapath::show::list::List;
use emud::datapath::show::report::Report;
use emud::text::{printable, to_stderr};

use super::{DONE, Failure};

/// List the interfaces with an emulated link
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  emud list\n  emud list --netns client --json\n  emud list --all     every network namespace, with the names of containers"
)]
pub struct Args {
    /// List the links of all network namespaces of this host
    #[arg(long)]
    pub all: bool,

    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    if args.all {
        return all(args.json);
    }
    let reports = attachment::reports(None)?;
    if args.json {
        super::out(&super::json(&List::of(&reports))?)?;
        return Ok(DONE);
    }
    let lines: String = reports.iter().map(line).collect();
    super::out(&lines)?;
    Ok(DONE)
}

/// As text, lists what can be read if one namespace cannot; the exit code is that of the failure.
fn all(json: bool) -> Result<u8, Failure> {
    let host = Host::read()?;
    let (mut found, mut code) = (vec![], DONE);
    for (space, reports) in host.reports() {
        match reports {
            Ok(reports) => found.push((space, reports)),
            Err(e) if json => return Err(Failure::new(e.exit_code(), format!("{space}: {e}"))),
            Err(e) => {
                to_stderr(format_args!(
                    "emud: {}",
                    printable(&format!("{space}: {e}"))
                ));
                code = if code == DONE { e.exit_code() } else { code };
            }
        }
    }
    for note in host.notes.iter().chain(&host.unreachable) {
        to_stderr(format_args!("emud: {}", printable(note)));
    }
    let each = (found.iter()).flat_map(|(space, reports)| reports.iter().map(|r| (*space, r)));
    if json {
        let list = List::of_all(each.map(|(space, report)| (Some(space), report)));
        super::out(&super::json(&list)?)?;
    } else {
        let lines: String = each
            .map(|(space, r)| format!("{space}\t{}", line(r)))
            .collect();
        super::out(&lines)?;
    }
    Ok(code)
}

fn line(r: &Report) -> String {
    let directions = match (&r.up, &r.down) {
        (Some(_), Some(_)) => "both",
        (Some(_), None) => "up",
        _ => "down",
    };
    let ends = match r.ends_in_s {
        Some(0.0) => "\tENDED".to_owned(),
        Some(left) => format!("\tends in {left:.0} s"),
        None => String::new(),
    };
    let tampered = match &r.tampered[..] {
        [] => String::new(),
        what => format!("\tTAMPERED: {}", what.join("; ")),
    };
    format!(
        "{}\t{}\t{directions}\tengine {}{ends}{tampered}\n",
        r.interface, r.profile, r.engine
    )
}
