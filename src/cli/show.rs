// SPDX-License-Identifier: MIT OR Apache-2.0

mod link;

use std::fmt::Write;

use emud::datapath::show::matching::Matching;
use emud::datapath::show::overlap::{self, HiddenBy};
use emud::datapath::show::report::{Direction, Report, Show};
use emud::datapath::{matrix, reports};
use emud::profile::Pair;

use self::link::{ns, write_link};
use super::{CliTarget, Failure};

/// Show what the kernel really runs, and the counters
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  emud show eth0\n  emud show --json | jq .interfaces[].up.counters"
)]
pub struct Args {
    /// Interface to show [default: all of this namespace]
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,

    /// Print the pairs of a matrix as `emud apply` takes them
    #[arg(long, conflicts_with = "json")]
    matrix: bool,
}

pub fn run(args: &Args, place: &CliTarget) -> Result<(), Failure> {
    let interface = place.given(args.interface.as_deref())?;
    if args.matrix {
        let interface = match interface {
            Some(interface) => interface,
            None => place.interface(None)?,
        };
        let rows = matrix::show(&interface)?;
        let rows: String = rows.iter().map(Pair::to_csv).collect();
        return super::out(&(Pair::csv_header() + &rows));
    }
    let reports = reports::reports(interface.as_deref())?;
    if args.json {
        return super::out(&super::json(&Show::of(&reports))?);
    }
    let texts: Vec<String> = reports.iter().map(text).collect();
    super::out(&texts.join("\n"))
}

fn text(r: &Report) -> String {
    let mut out = format!("{}: {}", r.interface, r.profile);
    if !r.description.is_empty() {
        let _ = write!(out, " - {}", r.description);
    }
    let reversed = if r.reversed { ", reversed" } else { "" };
    let _ = writeln!(
        out,
        "\n  engine {} ({}), seed {}{reversed}",
        r.engine, r.engine_reason, r.seed
    );
    let _ = writeln!(out, "  attached {:.0} s ago", r.attached_s);
    match r.ends_in_s {
        Some(0.0) => {
            let _ = writeln!(
                out,
                "  ENDED by itself: packets pass unchanged; emud detach {} removes it",
                r.interface
            );
        }
        Some(left) => {
            let _ = writeln!(out, "  ends by itself in {left:.1} s");
        }
        None => {}
    }
    for what in &r.tampered {
        let _ = writeln!(out, "  TAMPERED: {what}");
    }
    if !r.tampered.is_empty() {
        let _ = writeln!(
            out,
            "  repair: emud detach {}, then attach again",
            r.interface
        );
    }
    for note in &r.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    for (name, direction) in [("up", &r.up), ("down", &r.down)] {
        match direction {
            Some(d) => write_direction(&mut out, name, d),
            None => {
                let _ = writeln!(out, "  {name}: not emulated");
            }
        }
    }
    write_matching(&mut out, &r.matching);
    for bottleneck in &r.bottlenecks {
        out.push_str(&bottleneck.text());
    }
    out
}

fn write_matching(out: &mut String, m: &Matching) {
    for (n, rule) in (1..).zip(&m.rules) {
        let _ = writeln!(out, "  rule {n}: {}: {} packets", rule.text, rule.packets);
        write_hiding(out, &rule.hidden_by);
    }
    if let Some(note) = overlap::bound(m.rules.len()) {
        let _ = writeln!(out, "  note: {note}");
    }
    for link in &m.links {
        for (direction, report) in [("up", &link.up), ("down", &link.down)] {
            if let Some(report) = report {
                write_link(out, &format!("link {} {direction}", link.name), report);
            }
        }
    }
    if let Some(i) = &m.instances {
        let _ = writeln!(
            out,
            "  instances: {} of {} in use, {} given up for others",
            i.used, i.capacity, i.given_up
        );
    }
    if let Some(c) = &m.cgroups {
        let _ = writeln!(
            out,
            "  cgroups: room for {} flows, {} forgotten for others, {} packets of unknown groups",
            c.capacity, c.forgotten, c.unattributed
        );
        for group in c.groups.iter().filter(|group| group.gone) {
            let _ = writeln!(
                out,
                "    {} was removed: `emud set` with the rules again finds a new one",
                group.path
            );
        }
    }
    if let Some(n) = &m.names {
        let resolvers: Vec<_> = n.resolvers.iter().map(ToString::to_string).collect();
        let whose = match resolvers.is_empty() {
            true => "no resolver, so none is learned".to_owned(),
            false => resolvers.join(", "),
        };
        let _ = writeln!(
            out,
            "  names: addresses from answers of {whose}; room for {}",
            n.capacity
        );
        for name in &n.names {
            let addresses: Vec<_> = name.addresses.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "    {}: {}", name.name, addresses.join(", "));
        }
    }
    if let Some(x) = &m.matrix {
        let _ = writeln!(
            out,
            "  matrix on {}: {} pairs, room for {}",
            x.link, x.pairs, x.capacity
        );
    }
}

/// Writes the rules that hide one. A rule that hides it completely is first: the rest then has no effect.
fn write_hiding(out: &mut String, by: &[HiddenBy]) {
    const NAMED: usize = 8;
    let (wholly, partly): (Vec<&HiddenBy>, Vec<_>) = by.iter().partition(|by| by.wholly);
    for by in wholly {
        let _ = writeln!(out, "    wholly hidden by rule {}", by.rule);
    }
    for by in partly.iter().take(NAMED) {
        let _ = writeln!(out, "    partly hidden by rule {}", by.rule);
    }
    let more = partly.len().saturating_sub(NAMED);
    if more > 0 {
        let or_more = if partly.len() == overlap::MOST_REPORTED {
            " or more"
        } else {
            ""
        };
        let _ = writeln!(out, "    and by {more}{or_more} more, partly");
    }
}

fn write_direction(out: &mut String, name: &str, d: &Direction) {
    write_link(out, name, &d.link);
    if let Some(h) = &d.holder {
        let alive = if h.alive { "alive" } else { "NOT ANSWERING" };
        let _ = writeln!(
            out,
            "    holder: pid {} {alive}, CPU {}, released {}, waiting {}, dropped {}, late {} (worst {})",
            h.pid,
            h.cpu.map_or("any".into(), |cpu| cpu.to_string()),
            h.released,
            h.waiting,
            h.dropped,
            h.late,
            ns(h.worst_late_ns as f64)
        );
        if h.disordered > 0 {
            let _ = writeln!(
                out,
                "    holder: {} packets were read after their bottleneck had decided on later ones",
                h.disordered
            );
        }
    }
}
