// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::host_wide::Host;
use emud::datapath::reports;
use emud::datapath::show::list::{List, Listed};
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
    let listed = reports::list()?;
    if args.json {
        super::out(&super::json(&List::of(listed))?)?;
        return Ok(DONE);
    }
    let lines: String = listed.iter().map(line).collect();
    super::out(&lines)?;
    Ok(DONE)
}

/// As text, lists what can be read if one namespace cannot; the exit code is that of the failure.
fn all(json: bool) -> Result<u8, Failure> {
    let host = Host::read()?;
    let (mut found, mut code) = (vec![], DONE);
    for (space, listed) in host.list() {
        match listed {
            Ok(listed) => found.push((space, listed)),
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
    if json {
        let each = found.into_iter().flat_map(|(space, listed)| {
            let of_space = move |one| Listed {
                namespace: Some(space.clone()),
                ..one
            };
            listed.into_iter().map(of_space)
        });
        super::out(&super::json(&List::of(each.collect()))?)?;
    } else {
        let each =
            (found.iter()).flat_map(|(space, listed)| listed.iter().map(move |r| (space, r)));
        let lines: String = each
            .map(|(space, one)| format!("{space}\t{}", line(one)))
            .collect();
        super::out(&lines)?;
    }
    Ok(code)
}

fn line(one: &Listed) -> String {
    let directions = match (one.up, one.down) {
        (true, true) => "both",
        (true, false) => "up",
        _ => "down",
    };
    let ends = match one.ends_in_s {
        Some(0.0) => "\tENDED".to_owned(),
        Some(left) => format!("\tends in {left:.0} s"),
        None => String::new(),
    };
    let tampered = match &one.tampered[..] {
        [] => String::new(),
        what => format!("\tTAMPERED: {}", what.join("; ")),
    };
    format!(
        "{}\t{}\t{directions}\tengine {}{ends}{tampered}\n",
        one.interface, one.profile, one.engine
    )
}
