// SPDX-License-Identifier: MIT OR Apache-2.0

use std::net::IpAddr;
use std::path::PathBuf;

use emud::profile::{Time, shipped};
use emud::verify::{Curve, Outcome, Request, Verdict, table, verify};

use super::progress::Progress;
use super::{DONE, Failure, INCOMPLETE, OTHERWISE, plot};

/// Measure whether a link does what it is asked to
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud verify veth0 --peer-netns server        up and down apart, UDP, one clock
  emud verify eth0 --peer 192.0.2.7            there and back, ICMP echo
  emud verify eth0 --peer 192.0.2.7 --resolution 5ms
  emud verify veth0 --peer-netns server --against hsdpa --plot hsdpa.svg

Judged: mean, standard deviation and distribution of the delay, loss, duplicates, order, and the rate.
Five sixths of the duration are small probes well below the rate, one sixth is a train above it.
The default of 30s finds a rate halved, a jitter doubled and 1 % of loss added on every shipped
profile; the smallest deviation it notices is printed with each check. A link that is as asked is
found to be another in 1 of 1000 runs at most. docs/verify.md says how.

Exit codes: 0 the link is as asked, 1 it is not, 2 something could not be measured or judged and the
rest is as asked; 64 usage, 65 bad profile, 66 nothing attached or no peer, 69 no answer, or nothing of
the link can be judged (docs/verify.md lists what cannot), 71 the kernel refused, 73 the plot cannot be made, 77 no
permission.")]
pub struct Args {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: String,

    /// The peer's address; with --peer-netns it is found there if not given
    #[arg(long, value_name = "ADDR")]
    peer: Option<IpAddr>,

    /// The network namespace of the other end, on this machine
    #[arg(long, value_name = "NAME|PID|PATH", required_unless_present = "peer")]
    peer_netns: Option<String>,

    /// Judge by this profile (a name or a file) instead of what is in force
    #[arg(long, value_name = "PROFILE")]
    against: Option<String>,

    /// How long to send probes, 1s at least
    #[arg(long, value_name = "TIME", default_value = "30s")]
    duration: Time,

    /// What machine and path may add to a delay without the link being blamed
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    resolution: Time,

    /// Print JSON (docs/verify.schema.json)
    #[arg(long)]
    json: bool,

    /// Draw measured and asked delays into an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<u8, Failure> {
    let against = args.against.as_deref().map(shipped::find).transpose()?;
    let progress = Progress::start(Some(&format!("about {}", args.duration)));
    let request = Request {
        interface: args.interface,
        peer_netns: args.peer_netns,
        peer: args.peer,
        against,
        duration_ns: args.duration.0,
        resolution_ns: args.resolution.0,
    };
    let outcome = verify(&request, &|step| progress.show(step))?;
    drop(progress);
    if let Some(path) = &args.plot {
        plot::write(path, &panels(&outcome))?;
    }
    if args.json {
        super::out(&super::json(&outcome)?)?;
    } else {
        super::out(&table(&outcome))?;
    }
    Ok(match outcome.verdict {
        Verdict::Agrees => DONE,
        Verdict::Disagrees => OTHERWISE,
        Verdict::NotMeasured | Verdict::NotJudged => INCOMPLETE,
    })
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

/// The verdict on one direction.
fn of_direction(outcome: &Outcome, direction: &str) -> &'static str {
    let any = |verdict| {
        let mut checks = outcome.checks.iter();
        checks.any(|c| c.direction == direction && c.verdict == verdict)
    };
    if any(Verdict::Disagrees) {
        "NOT as asked"
    } else if any(Verdict::NotMeasured) || any(Verdict::NotJudged) {
        "not all measured"
    } else {
        "as asked"
    }
}
