// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines for people: one per alarm, and a summary at the end.

use std::borrow::Cow;
use std::fmt::Write;

use super::{ClearLine, Clock, Drops, End, HooksLine, Line, PerResource, Start, Verdict};
use crate::event::{Alarm, Hook, Resource, Scope, Share, Unit, Watched};

/// Number of shares that fit into a line of a terminal.
const SHARES: usize = 3;

/// Renders lines one after the other.
#[derive(Debug, Default)]
pub struct Text {
    /// Reasons why resources cannot be watched, for the summary.
    unknown: Vec<String>,
    hooks: Vec<Hook>,
}

/// Replaces what would move a terminal's cursor or change its colour: any process can choose a
/// name.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        let escape = |c: char| match c.is_control() {
            true => c.escape_default().to_string(),
            false => c.to_string(),
        };
        return text.chars().map(escape).collect();
    }
    text.into()
}

impl Text {
    /// Renders a line, with a line feed at the end.
    pub fn render(&mut self, line: &Line, clock: &Clock) -> String {
        let time = clock.time(line.mono_ns());
        // Of the date and the time of day in UTC, the latter to ms.
        let time = time.get(11..23).unwrap_or(&time).to_owned();
        match line {
            Line::Start(line) => {
                self.hooks.clone_from(&line.hooks);
                self.unknown = why_unknown(&line.watched, &line.hooks);
                start(&time, line, &self.unknown)
            }
            Line::Hooks(line) => {
                self.hooks.extend_from_slice(&line.hooks);
                self.unknown = why_unknown(&line.watched, &self.hooks);
                hooks(&time, line, &self.unknown)
            }
            Line::Alarm(line) => alarm(&time, line),
            Line::Clear(line) => clear(&time, line),
            Line::Drops(line) => format!("{time}Z  {}\n", drops(line)),
            Line::Metric(line) => {
                let unit = line.unit.as_deref().unwrap_or_default();
                let (name, unit) = (printable(&line.name), printable(unit));
                format!("{time}Z  metric {name} = {} {unit}", line.value)
                    .trim_end()
                    .to_owned()
                    + "\n"
            }
            // An experiment's log is JSON; its output is already on the terminal.
            Line::Run(_)
            | Line::Phase(_)
            | Line::Link(_)
            | Line::Output(_)
            | Line::Sample(_)
            | Line::Class(_)
            | Line::Station(_)
            | Line::Host(_)
            | Line::Exit(_)
            | Line::Artefact(_)
            | Line::Lost(_) => String::new(),
            Line::End(line) => end(line, &self.unknown),
        }
    }
}

/// Returns whether a hook is of a resource. A criterion may have parts: "memory: page-in".
fn is_of(hook: &Hook, resource: Resource) -> bool {
    hook.criterion.split(':').next() == Some(resource.name())
}

/// Returns one sentence for each resource that is configured and cannot be watched.
pub fn why_unknown(watched: &PerResource<Watched>, hooks: &[Hook]) -> Vec<String> {
    let unknown = watched.iter().filter(|(_, w)| **w == Watched::Unknown);
    let why = |resource| {
        let of_it = |hook: &&Hook| is_of(hook, resource);
        let reasons: Vec<String> = (hooks.iter().filter(of_it))
            .filter_map(|hook| Some(format!("{}: {}", hook.hook, hook.refused.as_ref()?)))
            .collect();
        let reasons = match reasons.is_empty() {
            true => "no hook".to_owned(),
            false => reasons.join("; "),
        };
        format!(
            "{} CANNOT BE WATCHED here, its contention would not be detected ({reasons})",
            resource.name()
        )
    };
    unknown.map(|(resource, _)| why(*resource)).collect()
}

fn start(time: &str, start: &Start, unknown: &[String]) -> String {
    let mut out = format!(
        "{time}Z  watching on {} (Linux {}, {} CPUs), at most {} alarms a resource\n",
        printable(&start.host.hostname),
        start.host.kernel,
        start.host.cpus,
        start.limit
    );
    for resource in start.watched.keys() {
        let of_it = |hook: &&Hook| is_of(hook, *resource) && hook.refused.is_none();
        let hooks: Vec<String> = start.hooks.iter().filter(of_it).map(taken).collect();
        if !hooks.is_empty() {
            let _ = writeln!(out, "  {:<11} {}", resource.name(), hooks.join(", "));
        }
    }
    if let Some(socket) = &start.socket {
        let _ = writeln!(out, "  {:<11} {}", "application", printable(socket));
    }
    for sentence in unknown {
        let _ = writeln!(out, "  {}", printable(sentence));
    }
    for note in &start.notes {
        let _ = writeln!(out, "  note: {}", printable(note));
    }
    out
}

fn hooks(time: &str, line: &HooksLine, unknown: &[String]) -> String {
    let mut out = String::new();
    for hook in line.hooks.iter().filter(|hook| hook.refused.is_none()) {
        let _ = writeln!(
            out,
            "{time}Z  {:<11} {}",
            printable(&hook.criterion),
            taken(hook)
        );
    }
    for sentence in unknown {
        let _ = writeln!(out, "{time}Z  {}", printable(sentence));
    }
    out
}

fn taken(hook: &Hook) -> String {
    match &hook.caveat {
        Some(caveat) => format!("{} ({caveat})", hook.hook),
        None => hook.hook.clone(),
    }
}

fn alarm(time: &str, alarm: &Alarm) -> String {
    format!(
        "{time}Z  #{:<3} {:<11} {}{}{}  [{}]\n",
        alarm.episode,
        alarm.resource.name(),
        scope(alarm.resource, &alarm.scope),
        measured(alarm),
        shares(&alarm.shares, alarm.rest),
        printable(&alarm.hook),
    )
}

fn scope(resource: Resource, scope: &Scope) -> String {
    let [line, _] = resource.words(scope);
    printable(&line).into_owned()
}

/// Formats the value and the threshold; a rate includes the time of its measurement.
fn measured(alarm: &Alarm) -> String {
    let value = |value| quantity(value, alarm.unit);
    let within = match alarm.unit {
        Unit::None => return String::new(),
        unit if in_window(alarm, unit) => {
            let window = alarm.mono_ns - alarm.since_mono_ns;
            format!(" in {}", quantity(window, Unit::Ns))
        }
        _ => String::new(),
    };
    let threshold = match alarm.threshold {
        0 => String::new(),
        threshold => format!(" (threshold {})", value(threshold)),
    };
    format!(": {}{within}{threshold}", value(alarm.value))
}

fn in_window(alarm: &Alarm, unit: Unit) -> bool {
    let of_kernel = alarm.resource.criterion().sliding == Some(unit);
    of_kernel && alarm.since_mono_ns < alarm.mono_ns
}

/// Formats four digits with a unit.
fn quantity(value: u64, unit: Unit) -> String {
    let scaled = |units: &[&str]| {
        let mut scaled = value as f64;
        let mut unit = 0;
        while scaled >= 999.95 && unit + 1 < units.len() {
            scaled /= 1000.0;
            unit += 1;
        }
        let decimals = if unit == 0 { 0 } else { 1 };
        format!("{scaled:.decimals$} {}", units[unit])
    };
    match unit {
        Unit::Ns => scaled(&["ns", "us", "ms", "s"]),
        Unit::Bytes => scaled(&["B", "kB", "MB", "GB"]),
        Unit::Pages => format!("{value} pages"),
        Unit::Packets => format!("{value} packets"),
        Unit::Number | Unit::None => value.to_string(),
    }
}

fn shares(shares: &[Share], rest: f64) -> String {
    if shares.is_empty() {
        return String::new();
    }
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let shown = shares.iter().take(SHARES);
    let mut parts: Vec<String> = shown
        .map(|share| format!("{} {}", percent(share.share), printable(&share.group)))
        .collect();
    let others = rest + shares.iter().skip(SHARES).map(|s| s.share).sum::<f64>();
    if others >= 0.005 {
        parts.push(format!("{} others", percent(others)));
    }
    format!("; {}", parts.join(", "))
}

fn clear(time: &str, line: &ClearLine) -> String {
    let clear = &line.clear;
    format!(
        "{time}Z  #{:<3} {:<11} {}: over after {}{}  [{}]\n",
        clear.episode,
        clear.resource.name(),
        scope(clear.resource, &clear.scope),
        quantity(line.duration_ns, Unit::Ns),
        shares(&clear.shares, clear.rest),
        printable(&clear.hook),
    )
}

fn drops(drops: &Drops) -> String {
    let mut parts: Vec<String> = (drops.suppressed.iter())
        .filter(|(_, n)| **n > 0)
        .map(|(resource, n)| format!("{} {n}", resource.name()))
        .collect();
    if !parts.is_empty() {
        parts[0].insert_str(0, "alarms beyond the limit so far: ");
    }
    if drops.ring_full > 0 {
        parts.push(format!(
            "{} RECORDS LOST, the ring buffer was full",
            drops.ring_full
        ));
    }
    parts.join(", ")
}

fn end(end: &End, unknown: &[String]) -> String {
    let mut out = format!("\nwatched for {}", quantity(end.duration_ns, Unit::Ns));
    if let Some(error) = &end.error {
        let _ = write!(out, ", then the monitor FAILED: {}", printable(error));
    }
    out.push('\n');
    for (resource, verdict) in &end.resources {
        let said = match verdict {
            Verdict::Clean => "clean".into(),
            Verdict::Contended => counted(end, *resource),
            Verdict::Unknown => "UNKNOWN".into(),
            Verdict::NotWatched => continue,
        };
        let _ = writeln!(out, "  {:<11} {said}", resource.name());
    }
    for sentence in unknown {
        let _ = writeln!(out, "  {}", printable(sentence));
    }
    if end.ring_full > 0 {
        let _ = writeln!(
            out,
            "  {} RECORDS LOST, the ring buffer was full: no resource can be reported as clean",
            end.ring_full
        );
    }
    for (resource, n) in end.skipped.iter().filter(|(_, n)| **n > 0) {
        let of = resource.name();
        let _ = writeln!(
            out,
            "  {n} EVENTS of {of} SKIPPED: the kernel did not run the program"
        );
    }
    if end.lines_lost > 0 {
        let _ = writeln!(
            out,
            "  {} LINES LOST, the reader was too slow",
            end.lines_lost
        );
    }
    if let Some(ran) = &end.on_alarm {
        let _ = writeln!(
            out,
            "  commands    {} succeeded, {} failed, {} killed, {} not run",
            ran.succeeded, ran.failed, ran.killed, ran.overflowed
        );
    }
    out + &cost(end)
}

fn counted(end: &End, resource: Resource) -> String {
    let of = |map: &PerResource<u64>| map.get(&resource).copied().unwrap_or(0);
    let alarms = of(&end.alarms);
    let mut said = format!(
        "CONTENDED, {alarms} alarm{}",
        if alarms == 1 { "" } else { "s" }
    );
    if of(&end.suppressed) > 0 {
        let _ = write!(said, ", {} more beyond the limit", of(&end.suppressed));
    }
    said
}

fn cost(end: &End) -> String {
    let mut out = String::new();
    for line in &end.costs {
        let cost = &line.cost;
        let (program, hook) = (printable(&cost.program), printable(&cost.hook));
        let _ = match line.ns_per_event {
            Some(mean) => writeln!(
                out,
                "  {program} [{hook}]: {} events, {mean:.0} ns each ({} timed)",
                cost.events, cost.timed
            ),
            None if cost.events > 0 => writeln!(
                out,
                "  {program} [{hook}]: {} events, none timed",
                cost.events
            ),
            None => Ok(()),
        };
    }
    let cost = &end.overhead;
    let bound = if cost.untimed > 0 { "at least " } else { "" };
    let process = cost.process_ns as f64 / end.duration_ns.max(1) as f64;
    let _ = writeln!(
        out,
        "  cost        {bound}{:.4} % of one CPU in the kernel ({:.4} % without the {:.0} ns of an empty \
         probe), {:.4} % by this process",
        cost.share_of_one_cpu * 100.0,
        cost.above_empty_share * 100.0,
        cost.empty_probe_ns,
        process * 100.0
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(line: &Line) -> String {
        let clock = Clock {
            realtime_minus_mono_ns: 1_700_000_000_000_000_000,
            boottime_minus_mono_ns: 0,
        };
        Text::default().render(line, &clock)
    }

    fn network(group: &str) -> Alarm {
        Alarm {
            episode: 2,
            mono_ns: 1_010_000_000,
            resource: Resource::Network,
            scope: Scope::Class { class: "external" },
            since_mono_ns: 1_000_000_000,
            value: 613_000,
            threshold: 612_500,
            unit: Unit::Bytes,
            hook: "tp_btf/net_dev_xmit".into(),
            shares: vec![Share {
                group: group.into(),
                share: 0.7,
            }],
            rest: 0.3,
        }
    }

    #[test]
    fn an_alarm_is_one_line_with_all_that_matters() {
        assert_eq!(
            render(&Line::Alarm(network("/a"))),
            "22:13:21.010Z  #2   network     all external devices: 613.0 kB in 10.0 ms \
             (threshold 612.5 kB); 70 % /a, 30 % others  [tp_btf/net_dev_xmit]\n"
        );
    }

    #[test]
    fn a_name_cannot_reach_the_terminal() {
        let line = render(&Line::Alarm(network("a\u{1b}[2Jb\nc\u{9b}d")));
        assert!(line.contains("a\\u{1b}[2Jb\\nc\\u{9b}d"), "{line}");
        assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn quantities_have_the_unit_that_fits() {
        assert_eq!(quantity(999, Unit::Ns), "999 ns");
        assert_eq!(quantity(200_000_000, Unit::Ns), "200.0 ms");
        assert_eq!(quantity(999_960_000, Unit::Ns), "1.0 s");
        assert_eq!(quantity(7, Unit::Pages), "7 pages");
    }
}
