// SPDX-License-Identifier: MIT OR Apache-2.0

use std::net::IpAddr;
use std::path::PathBuf;

use emud::profile::{Time, shipped};
use emud::verify::{CheckVerdict, Curve, Outcome, Request, class_table, classes, table, verify};

use super::progress::Progress;
use super::{CliTarget, DONE, Failure, INCOMPLETE, OTHERWISE, plot};

/// Measure whether a link behaves as configured
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud verify veth0 --peer-netns server        up and down separately, UDP, one clock
  emud verify eth0 --peer 192.0.2.7            there and back, ICMP echo
  emud verify eth0 --peer 192.0.2.7 --resolution 5ms
  emud verify veth0 --peer-netns server --against hsdpa --plot hsdpa.svg
  emud verify eth0 --classes                   classes of bottlenecks under your traffic

Judged: mean, standard deviation and distribution of the delay, loss, duplicates, order, and the rate.
Five sixths of the duration are small probes well below the rate, one sixth is a train above it.
The default of 30s detects half the rate, twice the jitter and 1 % of additional loss on every shipped
profile; the smallest detectable deviation is printed with each check. A correct link is
reported as wrong in at most 1 of 1000 runs. docs/verify.md describes the method.

Exit codes: 0 the link behaves as configured, 1 it does not, 2 some checks could not be measured or judged and the
others agree; 64 usage, 65 bad profile, 66 nothing attached, a link that ends meanwhile, or no peer, 69 no answer, or no
property of the link can be judged (docs/verify.md lists what cannot), 71 the kernel returned an error, 73 the plot cannot be
written, 75 the link was changed meanwhile, 77 no permission.")]
pub struct Args {
    /// Interface to verify; optional with --container
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Address of the peer [default with --peer-netns: found there]
    #[arg(long, value_name = "ADDR")]
    peer: Option<IpAddr>,

    /// Network namespace of the other end, on this machine
    #[arg(long, value_name = "NAME|PID|PATH", required_unless_present_any = ["peer", "classes"])]
    peer_netns: Option<String>,

    /// Send no probes; judge the classes of bottlenecks by how they share the present traffic
    #[arg(long, conflicts_with_all = ["peer", "peer_netns", "json", "plot"])]
    classes: bool,

    /// Profile to judge by (a name or a file) instead of the active one
    #[arg(long, value_name = "PROFILE")]
    against: Option<String>,

    /// Duration of the probes, at least 1s
    #[arg(long, value_name = "TIME", default_value = "30s")]
    duration: Time,

    /// Delay that machine and path may add without a failed check
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    resolution: Time,

    /// Print JSON (docs/verify.schema.json)
    #[arg(long)]
    json: bool,

    /// Plot measured and configured delays to an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub fn run(args: Args, place: &CliTarget) -> Result<u8, Failure> {
    let interface = place.interface(args.interface.as_deref())?;
    let against = args.against.as_deref().map(shipped::find).transpose()?;
    let progress = Progress::start(Some(&format!("about {}", args.duration)));
    if args.classes {
        progress.show("what classes send");
        let all = classes(&interface, against.as_ref(), args.duration.0)?;
        drop(progress);
        let (verdict, text) = class_table(&all);
        super::out(&text)?;
        return Ok(code(verdict));
    }
    let request = Request {
        interface,
        peer_netns: args.peer_netns,
        peer: args.peer,
        against,
        duration_ns: args.duration.0,
        resolution_ns: args.resolution.0,
    };
    let outcome = verify(&request, &|step| progress.show(step))?;
    drop(progress);
    if args.json {
        super::out(&super::json(&outcome)?)?;
    } else {
        super::out(&table(&outcome))?;
    }
    // Last: if it cannot be written, what was measured is not lost.
    if let Some(path) = &args.plot {
        plot::write(path, &panels(&outcome))?;
    }
    Ok(code(outcome.verdict))
}

fn code(verdict: CheckVerdict) -> u8 {
    match verdict {
        CheckVerdict::Agrees => DONE,
        CheckVerdict::Disagrees => OTHERWISE,
        CheckVerdict::NotMeasured | CheckVerdict::NotJudged => INCOMPLETE,
    }
}

fn panels(outcome: &Outcome) -> Vec<plot::Panel> {
    let panel = |curve: &Curve| plot::Panel {
        title: format!(
            "{} {}, {}: {}",
            outcome.interface,
            curve.direction,
            outcome.profile,
            of_direction(outcome, curve.direction)
        ),
        facts: Vec::new(),
        curves: vec![
            plot::asked(&curve.asked, curve.serialisation_ns),
            plot::measured(&curve.measured),
        ],
    };
    outcome.curves.iter().map(panel).collect()
}

/// Returns the verdict for one direction.
fn of_direction(outcome: &Outcome, direction: &str) -> &'static str {
    let any = |verdict| {
        let mut checks = outcome.checks.iter();
        checks.any(|c| c.direction == direction && c.verdict == verdict)
    };
    if any(CheckVerdict::Disagrees) {
        "NOT as configured"
    } else if any(CheckVerdict::NotMeasured) || any(CheckVerdict::NotJudged) {
        "not all measured"
    } else {
        "as configured"
    }
}
