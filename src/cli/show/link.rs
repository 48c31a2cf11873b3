// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a direction's link: its figures in force, and its counters.

use std::fmt::Write;

use emud::datapath::show::counters::Counters;
use emud::datapath::show::link::{BackgroundInForce, LinkReport, QueueInForce};
use emud::datapath::show::time::TimelineReport;
use emud::profile::{
    Aqm, Corrupt, Delay, Duplicate, Length, LinkState, Loss, Neighbours, Percent, Rate, Reordering,
    Slot, Time, Word,
};

pub(super) fn write_link(out: &mut String, name: &str, l: &LinkReport) {
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
    part("reset", l.reset.map(|share| Percent(share).to_string()));
    part("slot", l.slot.as_ref().map(Slot::summary));
    part("background", l.background.as_ref().map(background));
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
    if l.one_by_one && l.counters.super_packets > 0 {
        let _ = writeln!(
            out,
            "    {} super-packets met one fate each: switch segmentation (sender) or GRO off",
            l.counters.super_packets
        );
    }
}

/// Returns the rate, and what there is only with one.
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
        let backlog = l.backlog_ns.map(|t| format!(" (backlog {})", ns(t as f64)));
        parts.push(format!(
            "queue {}{}",
            queue(&l.queue),
            backlog.unwrap_or_default()
        ));
    }
    parts.extend(l.shared.as_ref().map(|name| format!("shared {name}")));
    if l.rate_bit_s.is_some() {
        parts.extend(l.ecn_above_ns.map(|t| format!("ecn above {}", Time(t))));
        parts.extend(l.aqm.as_ref().map(manager));
    }
    parts
}

/// Returns `load 40% (39.1% in periods of 402 s) sources 10`.
fn background(background: &BackgroundInForce) -> String {
    let BackgroundInForce {
        configured,
        drawn_load,
        period_s,
    } = background;
    let drawn = Percent((drawn_load * 1e3).round() / 1e3);
    format!(
        "{} ({drawn} in periods of {period_s:.0} s)",
        configured.summary()
    )
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

fn thresholds(name: &str, min: Length, max: Length, probability: f64, weight: f64) -> String {
    format!(
        "{name} from {} to {}, {}, weight {}",
        length(min),
        length(max),
        Percent((probability * 1e8).round() / 1e8),
        (weight * 1e8).round() / 1e8
    )
}

fn length(length: Length) -> String {
    length
        .ns()
        .map_or(length.to_string(), |time| ns(time as f64))
}

fn manager(aqm: &Aqm) -> String {
    let sampled = |name: &str, target: Length, tupdate_ns: u64| {
        format!("{name} {target} every {}", Time(tupdate_ns))
    };
    let text = match aqm {
        Aqm::Red(red) => thresholds("red", red.min, red.max, red.probability, red.weight),
        Aqm::Ared(ared) => {
            let min_ns = ared.target.ns().unwrap_or(0) / 2;
            let (min, max) = (Length::Time(min_ns), Length::Time(3 * min_ns));
            let weight = ared.weight.unwrap_or(0.0);
            let text = thresholds("ared", min, max, ared.probability, weight);
            let every = Time(ared.interval_ns);
            format!(
                "{text}, every {every} +{:.6} or *{:.6}",
                ared.alpha, ared.beta
            )
        }
        Aqm::Rio(rio) => {
            let text = thresholds("rio", rio.min, rio.max, rio.probability, rio.weight);
            let codes: Vec<String> = rio.codes().map(|code| code.to_string()).collect();
            format!(
                "{text}; DSCP {} from {} to {}, {}",
                codes.join(" "),
                length(rio.assured_min),
                length(rio.assured_max),
                Percent((rio.assured_probability * 1e8).round() / 1e8),
            )
        }
        Aqm::CoDel(codel) => {
            format!(
                "codel {} in {}",
                Time(codel.target_ns),
                Time(codel.interval_ns)
            )
        }
        Aqm::Pie(pie) => {
            let text = sampled("pie", Length::Time(pie.target_ns), pie.tupdate_ns);
            format!("{text}, alpha {:.6}, beta {:.6}", pie.alpha, pie.beta)
        }
        Aqm::Pi(pi) => {
            let text = sampled("pi", pi.target, pi.tupdate_ns);
            format!("{text}, a {:.9}, b {:.9}", pi.a, pi.b)
        }
        Aqm::Rem(rem) => {
            let text = sampled("rem", rem.target, rem.tupdate_ns);
            format!(
                "{text}, gamma ln(phi) {:.12}, alpha {:.6}",
                rem.gamma, rem.alpha
            )
        }
    };
    if aqm.marks() { text + " ecn" } else { text }
}

fn delay(delay: &Delay) -> String {
    let sd = delay.jitter.as_ref().map(|jitter| ns(jitter.sd_ns));
    let sd = sd.map_or(String::new(), |sd| format!(" sd {sd}"));
    format!("delay {}{sd}{}", ns(delay.mean_ns as f64), delay.details())
}

/// Returns a time rounded for readers.
pub(super) fn ns(ns: f64) -> String {
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
        (c.class_dropped, "dropped by the class in which they waited"),
        (c.undelayed, "sent without delay (`share`, `reorder`)"),
        (c.reordered, "overtook an earlier packet"),
        (c.held_back, "held back, so as not to overtake"),
    ];
    for (packets, what) in happened.into_iter().filter(|(n, _)| *n > 0) {
        let _ = writeln!(out, "    {packets} packets {what}");
    }
    if c.down + c.duplicated + c.corrupted + c.reset + c.unaltered > 0 {
        let _ = writeln!(
            out,
            "    lost while down {}, copies {}, corrupted {}, reset {}, to be altered but could not be {}",
            c.down, c.duplicated, c.corrupted, c.reset, c.unaltered
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
        (
            p.not_ip,
            "not IP, which this engine cannot delay here, or only with their socket",
        ),
        (p.no_holder, "the holder did not answer"),
        (p.not_active, "while attach or detach was under way"),
        (
            p.failed,
            "the kernel did not redirect them, or they found eight others on their CPU (PREEMPT_RT)",
        ),
        (p.rule, "by a rule whose link is `none`"),
    ];
    for (packets, why) in others.into_iter().filter(|(n, _)| *n > 0) {
        let _ = writeln!(out, "    {packets} packets not emulated: {why}");
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
