// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fmt::Write;

use emud::datapath::show::link::{LinkReport, QueueInForce};
use emud::datapath::show::matching::{HiddenBy, Matching};
use emud::datapath::show::overlap;
use emud::datapath::show::report::{Counters, Direction, Report, Show};
use emud::datapath::show::time::TimelineReport;
use emud::datapath::stage::aqm::{Manager, Red};
use emud::datapath::{attachment, matrix};
use emud::profile::{
    Corrupt, Delay, Duplicate, LinkState, Loss, Neighbours, Pair, Percent, Rate, Reordering, Slot,
    Time, Word,
};

use super::Failure;

/// Show what the kernel really runs, and the counters
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  emud show eth0\n  emud show --json | jq .interfaces[].up.counters"
)]
pub struct Args {
    /// The interface; with none, all of this namespace
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,

    /// Print the pairs of a matrix as `emud apply` takes them
    #[arg(long, requires = "interface", conflicts_with = "json")]
    matrix: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if let (true, Some(interface)) = (args.matrix, &args.interface) {
        let rows = matrix::show(interface)?;
        let rows: String = rows.iter().map(Pair::to_csv).collect();
        return super::out(&(Pair::csv_header() + &rows));
    }
    let reports = attachment::reports(args.interface.as_deref())?;
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
    if let Some(x) = &m.matrix {
        let _ = writeln!(
            out,
            "  matrix on {}: {} pairs, room for {}",
            x.link, x.pairs, x.capacity
        );
    }
}

/// A rule that hides another completely comes first: the rest then has no effect.
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
        let or_more = if partly.len() == overlap::MOST_TOLD {
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

fn write_link(out: &mut String, name: &str, l: &LinkReport) {
    let mut parts = bottleneck(l);
    parts.extend(l.class.as_ref().map(|class| format!("class {class}")));
    parts.push(delay(&l.delay));
    let mut part = |name: &str, summary: Option<String>| {
        parts.extend(summary.map(|summary| format!("{name} {summary}")));
    };
    part("reorder", l.reorder.as_ref().map(Reordering::summary));
    let loss = l.loss_model.as_ref().map(Loss::summary);
    part("loss", Some(loss.unwrap_or("0%".to_owned())));
    part("duplicate", l.duplicate.as_ref().map(Duplicate::summary));
    part("corrupt", l.corrupt.as_ref().map(Corrupt::summary));
    part("slot", l.slot.as_ref().map(Slot::summary));
    let down = l.state == LinkState::Down;
    part("state", down.then(|| l.state.word().to_owned()));
    let emulate = l.neighbours == Neighbours::Emulate;
    part(
        "neighbours",
        emulate.then(|| l.neighbours.word().to_owned()),
    );
    let _ = writeln!(out, "  {name}: {}", parts.join(", "));
    if let Some(t) = &l.timeline {
        let _ = writeln!(out, "    {}", timeline(t));
    }
    write_counters(out, &l.counters);
}

/// The rate, and what there is only with one.
fn bottleneck(l: &LinkReport) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(rate) = l.rate_bit_s {
        let what = match &l.timeline {
            Some(t) if t.kind == "opportunities" => " (mean)",
            _ if rate == 0.0 => " (outage)",
            _ => "",
        };
        parts.push(format!("rate {}{what}", Rate(rate.round() as u64)));
        if l.overhead_bytes != 0 {
            parts.push(format!("overhead {}", l.overhead_bytes));
        }
        parts.extend(Some(l.wire.summary()).filter(|wire| !wire.is_empty()));
        parts.push(format!(
            "queue {} (backlog {})",
            queue(&l.queue),
            ns(l.backlog_ns as f64)
        ));
    }
    parts.extend(l.shared.as_ref().map(|name| format!("shared {name}")));
    if l.rate_bit_s.is_some() {
        parts.extend(l.ecn_above_ns.map(|t| format!("ecn above {}", Time(t))));
        parts.extend(l.aqm.as_ref().map(manager));
    }
    parts
}

fn timeline(t: &TimelineReport) -> String {
    let phase = t.phase.as_ref().map_or(String::new(), |p| {
        let name = p.name.as_ref().map(|name| format!(" ({name})"));
        format!(
            "phase {} of {}{}, ",
            p.number,
            p.of,
            name.unwrap_or_default()
        )
    });
    let period = match t.period_s {
        None => "then the last one holds".to_owned(),
        Some(s) => format!("round {} of {s} s", t.round + 1),
    };
    let next = match t.next_s {
        None => "no next one".to_owned(),
        Some(s) => format!("next in {s:.3} s"),
    };
    format!(
        "by time ({}): {phase}row {} of {} at {:.3} s, {period}, {next}",
        t.kind,
        t.row + 1,
        t.rows,
        t.at_s
    )
}

fn queue(queue: &QueueInForce) -> String {
    let QueueInForce::Limits(limits) = queue else {
        return "none".into();
    };
    let limits = [
        limits.packets.map(|n| format!("{n}p")),
        limits.bytes.map(|n| format!("{n}B")),
        limits.time_ns.map(|n| ns(n as f64)),
    ];
    limits.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn red(name: &str, red: &Red) -> String {
    format!(
        "{name} from {} to {}, {}, weight {}",
        ns(red.min_ns as f64),
        ns(red.max_ns as f64),
        Percent((red.probability * 1e8).round() / 1e8),
        (red.weight * 1e8).round() / 1e8
    )
}

fn manager(m: &Manager) -> String {
    let sampled = |name: &str, target_ns: u64, tupdate_ns: u64| {
        format!("{name} {} every {}", Time(target_ns), Time(tupdate_ns))
    };
    let (text, ecn) = match m {
        Manager::Red { red: figures, ecn } => (red("red", figures), ecn),
        Manager::Ared {
            red: figures,
            interval_ns,
            alpha,
            beta,
            ecn,
        } => {
            let every = Time(*interval_ns);
            let text = red("ared", figures);
            (
                format!("{text}, every {every} +{alpha:.6} or *{beta:.6}"),
                ecn,
            )
        }
        Manager::Rio {
            red: figures,
            assured_min_ns,
            assured_max_ns,
            assured_probability,
            assured,
            ecn,
        } => {
            let text = red("rio", figures);
            let codes: Vec<String> = assured.iter().map(u32::to_string).collect();
            (
                format!(
                    "{text}; DSCP {} from {} to {}, {}",
                    codes.join(" "),
                    ns(*assured_min_ns as f64),
                    ns(*assured_max_ns as f64),
                    Percent((assured_probability * 1e8).round() / 1e8),
                ),
                ecn,
            )
        }
        Manager::Codel {
            target_ns,
            interval_ns,
            ecn,
        } => (
            format!("codel {} in {}", Time(*target_ns), Time(*interval_ns)),
            ecn,
        ),
        Manager::Pie {
            target_ns,
            tupdate_ns,
            alpha,
            beta,
            ecn,
        } => {
            let text = sampled("pie", *target_ns, *tupdate_ns);
            (format!("{text}, alpha {alpha:.6}, beta {beta:.6}"), ecn)
        }
        Manager::Pi {
            target_ns,
            tupdate_ns,
            a,
            b,
            ecn,
        } => {
            let text = sampled("pi", *target_ns, *tupdate_ns);
            (format!("{text}, a {a:.9}, b {b:.9}"), ecn)
        }
        Manager::Rem {
            target_ns,
            tupdate_ns,
            gamma,
            alpha,
            ecn,
        } => {
            let text = sampled("rem", *target_ns, *tupdate_ns);
            let text = format!("{text}, gamma ln(phi) {gamma:.12}, alpha {alpha:.6}");
            (text, ecn)
        }
    };
    if *ecn { text + " ecn" } else { text }
}

fn delay(delay: &Delay) -> String {
    let sd = delay.jitter.as_ref().map(|jitter| ns(jitter.sd_ns));
    let sd = sd.map_or(String::new(), |sd| format!(" sd {sd}"));
    format!("delay {}{sd}{}", ns(delay.mean_ns as f64), delay.details())
}

/// A time, rounded to what a reader wants to see.
fn ns(ns: f64) -> String {
    let unit = if ns >= 1e6 { 1e3 } else { 1.0 };
    Time(((ns / unit).round() * unit) as u64).to_string()
}

fn write_counters(out: &mut String, c: &Counters) {
    let _ = writeln!(
        out,
        "    {} packets arrived ({} bytes): lost {}, dropped by the queue {}",
        c.packets, c.bytes, c.lost, c.queue_dropped
    );
    let happened = [
        (c.undelayed, "sent without delay (`share`, `reorder`)"),
        (c.reordered, "overtook an earlier packet"),
        (c.held_back, "held back, so as not to overtake"),
    ];
    for (packets, what) in happened.into_iter().filter(|(n, _)| *n > 0) {
        let _ = writeln!(out, "    {packets} packets {what}");
    }
    if c.down + c.duplicated + c.corrupted + c.unaltered > 0 {
        let _ = writeln!(
            out,
            "    lost while down {}, copies {}, corrupted {}, to be altered but could not be {}",
            c.down, c.duplicated, c.corrupted, c.unaltered
        );
    }
    if c.aqm_dropped.all() + c.marked > 0 {
        let drops = c.aqm_dropped.by_name();
        let drops: Vec<String> = (drops.into_iter())
            .filter(|(_, drops)| *drops > 0)
            .map(|(name, drops)| format!("{name} {drops}"))
            .collect();
        let drops = match drops.is_empty() {
            true => "none".to_owned(),
            false => drops.join(", "),
        };
        let _ = writeln!(out, "    marked CE {}, dropped early: {drops}", c.marked);
    }
    let p = &c.passed;
    let others = [
        (p.neighbour, "ARP, neighbour discovery or PTP"),
        (p.not_ip, "not IP, which this engine cannot delay here"),
        (p.no_holder, "the holder did not answer"),
        (p.not_active, "while attach or detach was under way"),
        (p.failed, "the kernel refused to redirect them"),
        (p.rule, "by a rule whose link is `none`"),
    ];
    for (packets, why) in others.into_iter().filter(|(n, _)| *n > 0) {
        let _ = writeln!(out, "    {packets} packets not emulated: {why}");
    }
    if c.super_packets > 0 {
        let _ = writeln!(
            out,
            "    {} super-packets met one fate each: switch segmentation (sender) or GRO off",
            c.super_packets
        );
    }
    if c.flows_forgotten > 0 {
        let _ = writeln!(
            out,
            "    {} flows forgotten: too many at once to number",
            c.flows_forgotten
        );
    }
    if let Some(d) = &c.delay_given {
        let [mean, p50, p99, most] =
            [d.mean_ns, d.p50_ns, d.p99_ns, d.max_ns].map(|given| ns(given as f64));
        let _ = writeln!(
            out,
            "    delay given: mean {mean}, p50 {p50}, p99 {p99}, none above {most}"
        );
    }
}
