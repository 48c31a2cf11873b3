// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::detach;
use emud::datapath::host_wide::Host;
use emud::text::{printable, to_stderr};

use super::failure::EX_OSERR;
use super::{CliTarget, DONE, Failure};

/// Remove the emulated link and restore the previous state
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  emud detach eth0\n  emud detach --container web\n  emud detach --all     every link of this host, also those of running experiments"
)]
pub struct Args {
    /// Interface to restore; optional with --container
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Remove all links of all network namespaces of this host
    #[arg(long, conflicts_with = "interface")]
    pub all: bool,
}

pub fn run(args: &Args, place: &CliTarget) -> Result<u8, Failure> {
    if args.all {
        return all();
    }
    let interface = place.interface(args.interface.as_deref())?;
    let done = detach::detach(&interface)?;
    super::out(&said(&interface, &done))?;
    Ok(DONE)
}

/// Continues after a failure, whose code is the exit code.
fn all() -> Result<u8, Failure> {
    let host = Host::read()?;
    let mut code = DONE;
    let mut failed = |e: String, exit_code: u8| {
        to_stderr(format_args!("emud: {}", printable(&e)));
        code = if code == DONE { exit_code } else { code };
    };
    for (space, result) in host.detach()? {
        let detached = match result {
            Ok(detached) => detached,
            Err(e) => {
                failed(format!("{space}: {e}"), e.exit_code());
                continue;
            }
        };
        for one in detached {
            match one.done {
                Ok(done) => super::out(&said(&format!("{space}: {}", one.interface), &done))?,
                Err(e) => failed(format!("{space}: {}: {e}", one.interface), e.exit_code()),
            }
        }
    }
    for note in &host.notes {
        to_stderr(format_args!("emud: {}", printable(note)));
    }
    for link in &host.unreachable {
        failed(link.clone(), EX_OSERR);
    }
    Ok(code)
}

fn said(name: &str, done: &detach::Done) -> String {
    let notes = done
        .notes
        .iter()
        .map(|note| format!("{name}: note: {note}\n"));
    notes
        .chain([format!("{name}: detached, previous state restored\n")])
        .collect()
}
