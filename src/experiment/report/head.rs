// SPDX-License-Identifier: MIT OR Apache-2.0
//! Top of the page: the verdict and its reasons, and what was run. End of the page: profiles and
//! scenario.

use emud_monitor::log::RunVerdict;

use crate::experiment::results::{Ending, Run, time, verdict_word};
use crate::text::to_the_second;

pub struct Head<'a> {
    pub name: &'a str,
    pub when: String,
    pub verdict: &'static str,
    pub reasons: Vec<String>,
    pub facts: Vec<(&'static str, String)>,
    pub notes: &'a [String],
    /// Titles and texts.
    pub texts: Vec<(String, &'a str)>,
}

impl<'a> Head<'a> {
    pub fn of(run: &'a Run) -> Self {
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
            notes: &run.notes,
            texts: texts(run),
        }
    }
}

/// What the verdict means, and why it is so.
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
    if let Some(end) = &run.end
        && !end.judgement.contended_seconds.is_empty()
    {
        let seconds = ranges(&end.judgement.contended_seconds);
        reasons.push(format!("Seconds touched by contention: {seconds}"));
    }
    reasons
}

/// No more than what was watched is known.
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
    let (about, host) = (&run.about, &run.host);
    let sample = about
        .sample_ns
        .map(|ns| format!("every {}", time(ns as f64)));
    let measured = run.measured();
    let measured = measured.map(|(from, until)| time(until.saturating_sub(from) as f64));
    let mut engines: Vec<String> = Vec::new();
    for link in &about.links {
        let engine = format!("{} ({})", link.engine, link.reason);
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    let monitor = run.end.as_ref().map(|end| {
        let said = end.resources.iter();
        let said = said.map(|(resource, said)| format!("{resource} {said}"));
        said.collect::<Vec<_>>().join(", ")
    });
    let exit_code = run
        .end
        .as_ref()
        .map(|end| end.judgement.exit_code.to_string());
    let on = format!(
        "{}, Linux {}, {} CPUs",
        host.hostname, host.kernel, host.cpus
    );
    let facts = [
        ("command", Some(about.argv.join(" "))),
        ("in", Some(about.cwd.clone())),
        ("seed", Some(about.seed.to_string())),
        ("measured", measured),
        ("samples", Some(sample.unwrap_or("none".to_owned()))),
        ("interface", about.in_place.clone()),
        ("host", Some(on)),
        ("emud", Some(run.version.clone())),
        ("engine", Some(engines.join(", ")).filter(|e| !e.is_empty())),
        ("monitor", monitor),
        ("exit code", exit_code),
        ("log", Some(run.path.display().to_string())),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, fact)| Some((name, fact?)));
    known.collect()
}

fn texts(run: &Run) -> Vec<(String, &str)> {
    let scenario = run.about.scenario.as_deref();
    let scenario = scenario.map(|text| ("scenario".to_owned(), text));
    // A star of many peers has one profile.
    let mut links = run.about.links.iter().collect::<Vec<_>>();
    links.sort_by(|a, b| (&a.profile, &a.toml).cmp(&(&b.profile, &b.toml)));
    let same = links.chunk_by(|a, b| (&a.profile, &a.toml) == (&b.profile, &b.toml));
    let profiles = same.map(|same| {
        let names: Vec<&str> = same.iter().map(|link| link.name.as_str()).collect();
        let title = format!("profile {} of {}", same[0].profile, names.join(", "));
        (title, same[0].toml.as_str())
    });
    scenario.into_iter().chain(profiles).collect()
}

/// "3-7, 12".
fn ranges(seconds: &[u64]) -> String {
    let runs = seconds.chunk_by(|a, b| a + 1 == *b);
    let range = |run: &[u64]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(u64::to_string).collect(),
    };
    runs.map(range).collect::<Vec<_>>().join(", ")
}
