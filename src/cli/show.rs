// SPDX-License-Identifier: GPL-2.0-only

use std::fmt::Write;

use emud::link::attachment;
use emud::link::matrix;
use emud::link::overlap;
use emud::link::queueing::{Manager, Queue, Wire};
use emud::link::report::{Counters, Direction, Reordering, Report};
use emud::link::report_loss;
use emud::link::report_match::{HiddenBy, Matching};
use emud::link::report_time::{SlotReport, TimelineReport};
use emud::profile::{Pair, Percent, Rate, Time};
use serde_json::json;

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
        let shown = json!({ "schema": "emud-show/1", "interfaces": reports });
        return super::out(&format!("{shown:#}\n"));
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
        for (name, counters) in [("up", &link.up), ("down", &link.down)] {
            if let Some(counters) = counters {
                let _ = writeln!(out, "  link {} {name}", link.name);
                write_counters(out, counters);
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

/// What hides all comes first: behind it the rest is no matter.
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
    let mut link = Vec::new();
    if let Some(rate) = d.rate_bit_s {
        link.push(format!("rate {}", Rate(rate.round() as u64)));
        if d.overhead_bytes != 0 {
            link.push(format!("overhead {}", d.overhead_bytes));
        }
        link.extend(wire(&d.wire));
        link.push(format!(
            "queue {} (backlog {})",
            queue(&d.queue),
            ns(d.backlog_ns as f64)
        ));
        link.extend(d.ecn_above_ns.map(|t| format!("ecn above {}", Time(t))));
        link.extend(d.aqm.as_ref().map(manager));
    }
    link.push(delay(d));
    link.extend(d.reorder.as_ref().map(reorder));
    link.extend(report_loss::text(
        d.loss,
        d.loss_model.as_ref(),
        d.duplicate.as_ref(),
        d.corrupt.as_ref(),
    ));
    link.extend(d.slot.as_ref().map(slot));
    if d.state == "down" {
        link.push("state down".into());
    }
    if d.neighbours == "emulate" {
        link.push("neighbours emulate".into());
    }
    let _ = writeln!(out, "  {name}: {}", link.join(", "));
    if let Some(t) = &d.timeline {
        let _ = writeln!(out, "    {}", timeline(t));
    }
    write_counters(out, &d.counters);
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
    }
}

fn timeline(t: &TimelineReport) -> String {
    let rate = match t.rate_bit_s {
        None => String::new(),
        Some(0.0) => ", outage".to_owned(),
        Some(bits) => format!(", rate {}", Rate(bits.round() as u64)),
    };
    let period = match t.period_s {
        None => "then the last one holds".to_owned(),
        Some(s) => format!("round {} of {s} s", t.round + 1),
    };
    let next = match t.next_s {
        None => "no next one".to_owned(),
        Some(s) => format!("next in {s:.3} s"),
    };
    format!(
        "by time ({}): row {} of {} at {:.3} s, {period}{rate}, {next}",
        t.kind,
        t.row + 1,
        t.rows,
        t.at_s
    )
}

fn slot(s: &SlotReport) -> String {
    let mut text = match s.max_ns == s.min_ns {
        true => format!("slots every {}", Time(s.min_ns)),
        false => format!("slots every {} to {}", Time(s.min_ns), Time(s.max_ns)),
    };
    if let Some(packets) = s.packets {
        let _ = write!(text, " of {packets} packets");
    }
    if let Some(bytes) = s.bytes {
        let _ = write!(text, " of {bytes} bytes");
    }
    text
}

fn queue(q: &Queue) -> String {
    let Queue::Limits(limits) = q else {
        return "none".into();
    };
    let limits = [
        limits.packets.map(|n| format!("{n}p")),
        limits.bytes.map(|n| format!("{n}B")),
        limits.time_ns.map(|n| ns(n as f64)),
    ];
    limits.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn wire(w: &Wire) -> Vec<String> {
    let mut out = Vec::new();
    if w.burst_bytes != 0 {
        out.push(format!("burst {}B", w.burst_bytes));
    }
    if w.mpu_bytes != 0 {
        out.push(format!("mpu {}", w.mpu_bytes));
    }
    if let Some(cell) = &w.cell {
        let padded = if cell.padded { " padded" } else { "" };
        out.push(format!(
            "cells {}+{}{padded}",
            cell.size_bytes, cell.overhead_bytes
        ));
    }
    out
}

fn manager(m: &Manager) -> String {
    let (text, ecn) = match *m {
        Manager::Red {
            min_ns,
            max_ns,
            probability,
            weight,
            ecn,
        } => (
            format!(
                "red from {} to {}, {}, weight {}",
                ns(min_ns as f64),
                ns(max_ns as f64),
                Percent((probability * 1e8).round() / 1e8),
                (weight * 1e8).round() / 1e8
            ),
            ecn,
        ),
        Manager::Codel {
            target_ns,
            interval_ns,
            ecn,
        } => (
            format!("codel {} in {}", Time(target_ns), Time(interval_ns)),
            ecn,
        ),
        Manager::Pie {
            target_ns,
            tupdate_ns,
            alpha,
            beta,
            ecn,
        } => (
            format!(
                "pie {} every {}, alpha {:.6}, beta {:.6}",
                Time(target_ns),
                Time(tupdate_ns),
                alpha,
                beta
            ),
            ecn,
        ),
    };
    if ecn { text + " ecn" } else { text }
}

fn delay(d: &Direction) -> String {
    let mean = ns(d.delay.mean_ns);
    let share = d.delay.share.map_or(String::new(), |share| {
        format!(" for {}% of the packets", rounded(share))
    });
    match d.delay.distribution {
        None => format!("delay {mean}{share}"),
        Some(distribution) => {
            let order = match d.delay.coherence_ns {
                Some(c) => format!("in order, coherence {}", ns(c as f64)),
                None if d.delay.correlation > 0.0 => {
                    format!("per packet, correlation {}", Percent(d.delay.correlation))
                }
                None => "per packet".into(),
            };
            format!(
                "delay {mean} sd {} {distribution} ({order}){share}",
                ns(d.delay.sd_ns)
            )
        }
    }
}

fn reorder(r: &Reordering) -> String {
    let mut text = format!("reorder {}%", rounded(r.probability));
    if r.correlation > 0.0 {
        let _ = write!(text, " correlation {}%", rounded(r.correlation));
    }
    if r.gap > 1 {
        let _ = write!(text, " gap {}", r.gap);
    }
    text
}

/// A probability in percent, without the 2^-64 that it is off.
fn rounded(probability: f64) -> f64 {
    (probability * 1e8).round() / 1e6
}

/// A time, rounded to what a reader wants to see.
fn ns(ns: f64) -> String {
    let unit = if ns >= 1e6 { 1e3 } else { 1.0 };
    Time(((ns / unit).round() * unit) as u64).to_string()
}

fn write_counters(out: &mut String, c: &Counters) {
    let _ = writeln!(
        out,
        "    {} packets, {} bytes; lost {}, dropped by the queue {}, reordered {}, clamped {}",
        c.packets, c.bytes, c.lost, c.queue_dropped, c.reordered, c.clamped
    );
    if c.undelayed > 0 {
        let _ = writeln!(out, "    {} packets sent without delay", c.undelayed);
    }
    if c.down + c.duplicated + c.corrupted + c.unaltered > 0 {
        let _ = writeln!(
            out,
            "    lost while down {}, copies {}, corrupted {}, to be altered but could not be {}",
            c.down, c.duplicated, c.corrupted, c.unaltered
        );
    }
    if c.aqm_dropped.all() + c.marked > 0 {
        let d = &c.aqm_dropped;
        let _ = writeln!(
            out,
            "    marked CE {}, dropped early: red {}, codel {}, pie {}",
            c.marked, d.red, d.codel, d.pie
        );
    }
    let p = &c.passed;
    let others = [
        ("neighbour discovery", p.neighbour),
        ("not IP", p.not_ip),
        ("no holder", p.no_holder),
        ("inactive", p.inactive),
        ("failed", p.failed),
        ("by a rule", p.rule),
    ];
    let passed: Vec<String> = others
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(why, n)| format!("{why} {n}"))
        .collect();
    if !passed.is_empty() {
        let _ = writeln!(out, "    passed untouched: {}", passed.join(", "));
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
    for b in &c.delay_histogram {
        let _ = writeln!(
            out,
            "    delay {:>10} .. {:<10} {}",
            ns(b.from_ns as f64),
            ns(b.to_ns as f64),
            b.packets
        );
    }
}
