// SPDX-License-Identifier: MIT OR Apache-2.0
//! Top of the page: the verdict and its reasons, and what was run. End of the page: profiles and
//! scenario.

use emud_monitor::log::RunVerdict;

use super::Table;
use crate::experiment::results::{Ending, Fleet, FleetHost, Logged, Run, time, verdict_word};
use crate::text::to_the_second;

pub struct Head<'a> {
    pub name: &'a str,
    pub when: String,
    pub verdict: &'static str,
    pub reasons: Vec<String>,
    pub facts: Vec<(&'static str, String)>,
    /// None: the log is that of one host.
    pub hosts: Option<Table>,
    pub notes: Vec<String>,
    /// Titles and texts.
    pub texts: Vec<(String, &'a str)>,
}

const HOSTS: &[[&str; 2]] = &[
    ["host", ""],
    ["verdict", ""],
    ["clock", "n"],
    ["within", "n"],
    ["machine", ""],
    ["emud", ""],
    ["monitor", "text"],
];

impl<'a> Head<'a> {
    pub fn of(log: &'a Logged) -> Self {
        match log {
            Logged::Run(run) => Self::of_run(run),
            Logged::Fleet(fleet) => Self::of_fleet(fleet),
        }
    }

    fn of_fleet(fleet: &'a Fleet) -> Self {
        let first = fleet.runs.iter().min_by_key(|run| run.first_mono_ns);
        let hosts = fleet.hosts();
        let n = hosts.len();
        let mut notes = fleet.notes.clone();
        let of_run =
            |run: &Run| -> Vec<_> { run.notes.iter().map(|note| run.of_host(note)).collect() };
        notes.extend(fleet.runs.iter().flat_map(of_run));
        let row = |host: &FleetHost| row(fleet, host);
        Self {
            name: first.map_or("", |run| &run.about.name),
            when: format!(
                "{} UTC, {n} hosts",
                first.map_or(String::new(), |run| to_the_second(&run.time))
            ),
            verdict: verdict_word(fleet.verdict()),
            reasons: reasons_of_fleet(fleet),
            facts: facts_of_fleet(fleet),
            hosts: Some(Table::new(HOSTS, hosts.iter().map(row))),
            notes,
            texts: texts(&fleet.runs),
        }
    }

    fn of_run(run: &'a Run) -> Self {
        let about = &run.about;
        let repeat = match about.repeats {
            0 | 1 => String::new(),
            n => format!(", run {} of {n}", about.repeat),
        };
        let time = to_the_second(&run.time);
        Self {
            name: &about.name,
            when: format!("{time} UTC{repeat}"),
            verdict: verdict_word(run.verdict()),
            reasons: reasons(run),
            facts: facts(run),
            hosts: None,
            notes: run.notes.clone(),
            texts: texts(std::slice::from_ref(run)),
        }
    }
}

/// Returns the meaning of the verdict and its reasons.
fn reasons(run: &Run) -> Vec<String> {
    let verdict = run.verdict();
    let means = match (verdict, &run.end) {
        (Some(RunVerdict::Clean), Some(end)) => clean(end),
        (Some(RunVerdict::Unwatched), _) => {
            "Every criterion was switched off: nothing is known of the host in the measured phase."
                .to_owned()
        }
        (Some(RunVerdict::Contended), _) => {
            "The host had too little of a resource in the measured phase: figures of that time may \
             be the host's, not the link's."
                .to_owned()
        }
        (Some(RunVerdict::Invalid), _) => {
            "The figures are not those of the configured link.".to_owned()
        }
        _ => "There is no verdict on this run.".to_owned(),
    };
    let mut reasons = vec![means];
    match &run.end {
        Some(end) if verdict == Some(RunVerdict::Invalid) => {
            reasons.extend(end.judgement.invalid.iter().cloned());
        }
        Some(_) if verdict == Some(RunVerdict::Unwatched) => {}
        _ => reasons.extend(run.why_not_clean()),
    }
    let failed = run.why_incomplete();
    reasons.extend(failed.map(|why| format!("{why}: the run counts in no mean")));
    reasons.extend(contended_seconds(run));
    reasons
}

fn contended_seconds(run: &Run) -> Option<String> {
    let seconds = &run.end.as_ref()?.judgement.contended_seconds;
    (!seconds.is_empty()).then(|| format!("Seconds touched by contention: {}", ranges(seconds)))
}

/// Returns the same over all hosts.
fn reasons_of_fleet(fleet: &Fleet) -> Vec<String> {
    let means = match fleet.verdict() {
        Some(RunVerdict::Clean) => {
            "No contention was seen on any host in the measured phase. The table of hosts says what was \
             watched."
        }
        Some(RunVerdict::Unwatched) => {
            "Every criterion of a host was switched off: nothing is known of it."
        }
        Some(RunVerdict::Contended) => {
            "A host had too little of a resource in the measured phase: figures of that time may be the \
             host's, not the link's."
        }
        Some(RunVerdict::Invalid) => "The figures are not those of the configured links.",
        None => "There is no verdict on this run.",
    };
    let seconds = |run: &Run| Some(run.of_host(&contended_seconds(run)?));
    let mut reasons = vec![means.to_owned()];
    reasons.extend(fleet.reasons());
    reasons.extend(fleet.runs.iter().filter_map(seconds));
    reasons
}

/// Returns the meaning of a clean verdict, which covers only what was watched.
fn clean(end: &Ending) -> String {
    let watched = end.watched(true);
    let mut means = format!(
        "No contention was seen in the measured phase. Watched: {}.",
        watched.join(", ")
    );
    if watched.contains(&"emulator") {
        means += " The emulator kept its times.";
    }
    let others = end.watched(false);
    if !others.is_empty() {
        means += &format!(" Not watched: {}.", others.join(", "));
    }
    means
}

fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let about = &run.about;
    let exit_code = run
        .end
        .as_ref()
        .map(|end| end.judgement.exit_code.to_string());
    let facts = [
        ("command", Some(about.argv.join(" "))),
        ("in", Some(about.cwd.clone())),
        ("seed", Some(about.seed.to_string())),
        ("measured", measured(run.measured())),
        ("samples", Some(samples(run))),
        ("interface", about.in_place.clone()),
        ("host", Some(machine(run))),
        ("emud", Some(run.version.clone())),
        ("engine", engines(std::slice::from_ref(run))),
        ("monitor", monitor(run)),
        ("exit code", exit_code),
        ("log", Some(run.path.display().to_string())),
    ];
    known(facts)
}

fn facts_of_fleet(fleet: &Fleet) -> Vec<(&'static str, String)> {
    let runs = &fleet.runs;
    let seed = runs.first().map(|run| run.about.seed.to_string());
    let exit_code = fleet.end.as_ref().map(|end| end.exit_code.to_string());
    known([
        ("seed", seed),
        ("measured", measured(fleet.measured())),
        ("samples", runs.first().map(samples)),
        ("engine", engines(runs)),
        ("exit code", exit_code),
        ("log", Some(fleet.path.display().to_string())),
    ])
}

fn known<const N: usize>(
    facts: [(&'static str, Option<String>); N],
) -> Vec<(&'static str, String)> {
    let known = facts
        .into_iter()
        .filter_map(|(name, fact)| Some((name, fact?)));
    known.collect()
}

fn measured(phase: Option<(u64, u64)>) -> Option<String> {
    phase.map(|(from, until)| time(until.saturating_sub(from) as f64))
}

fn samples(run: &Run) -> String {
    let every = run.about.sample_ns;
    every.map_or("none".to_owned(), |ns| format!("every {}", time(ns as f64)))
}

fn machine(run: &Run) -> String {
    let host = &run.host;
    format!(
        "{}, Linux {}, {} CPUs",
        host.hostname, host.kernel, host.cpus
    )
}

/// Returns the engines of the links; `None`: there are no links.
fn engines(runs: &[Run]) -> Option<String> {
    let mut engines: Vec<String> = Vec::new();
    for link in runs.iter().flat_map(|run| &run.about.links) {
        let engine = format!("{} ({})", link.engine, link.reason);
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    Some(engines.join(", ")).filter(|engines| !engines.is_empty())
}

fn monitor(run: &Run) -> Option<String> {
    let said = run.end.as_ref()?.resources.iter();
    let said = said.map(|(resource, said)| format!("{resource} {said}"));
    Some(said.collect::<Vec<_>>().join(", "))
}

/// Returns the row of a host.
fn row(fleet: &Fleet, host: &FleetHost) -> Vec<String> {
    let ms = |ns: f64| format!("{:.3} ms", ns / 1e6);
    let end = |end_ns: i64| format!(", at the end {}", ms(end_ns as f64));
    let clock = match host.clock {
        Some(clock) => {
            let end = clock.end_offset_ns.map(end).unwrap_or_default();
            Some(ms(clock.offset_ns as f64) + &end)
        }
        None => (fleet.end.is_some() && host.lost.is_none()).then(|| "reference".to_owned()),
    };
    let run = fleet.run(&host.host);
    let verdict = match &host.lost {
        Some(why) => format!("lost: {why}"),
        None => verdict_word(host.verdict).to_owned(),
    };
    let cells = [
        Some(host.host.clone()),
        Some(verdict),
        clock,
        host.clock.map(|clock| ms(clock.bound_ns as f64)),
        run.map(machine),
        run.map(|run| run.version.clone()),
        run.and_then(monitor),
    ];
    cells.into_iter().map(Option::unwrap_or_default).collect()
}

fn texts(runs: &[Run]) -> Vec<(String, &str)> {
    // All hosts have the same one.
    let scenario = runs.iter().find_map(|run| run.about.scenario.as_deref());
    let scenario = scenario.map(|text| ("scenario".to_owned(), text));
    // A star of many peers has one profile.
    let links = runs
        .iter()
        .flat_map(|run| run.about.links.iter().map(move |link| (run, link)));
    let mut links = links.collect::<Vec<_>>();
    links.sort_by(|(_, a), (_, b)| (&a.profile, &a.toml).cmp(&(&b.profile, &b.toml)));
    let same = links.chunk_by(|(_, a), (_, b)| (&a.profile, &a.toml) == (&b.profile, &b.toml));
    let profiles = same.map(|same| {
        let names: Vec<_> = same
            .iter()
            .map(|(run, link)| run.named(&link.name))
            .collect();
        let link = same[0].1;
        let title = format!("profile {} of {}", link.profile, names.join(", "));
        (title, link.toml.as_str())
    });
    scenario.into_iter().chain(profiles).collect()
}

/// Returns ranges such as "3-7, 12".
fn ranges(seconds: &[u64]) -> String {
    let runs = seconds.chunk_by(|a, b| a + 1 == *b);
    let range = |run: &[u64]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(u64::to_string).collect(),
    };
    runs.map(range).collect::<Vec<_>>().join(", ")
}
