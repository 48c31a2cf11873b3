// SPDX-License-Identifier: MIT OR Apache-2.0
//! Top of the page: the verdict in words, and what was run.

use std::fmt::Write;

use emud_monitor::log::RunVerdict;

use super::entry;
use super::escape::Escaped;
use crate::experiment::results::{Ending, Run, time, verdict_word};

pub fn write(out: &mut String, run: &Run) {
    let about = &run.about;
    let _ = writeln!(out, "<h1>{}</h1>", Escaped(&about.name));
    let repeat = match about.repeats {
        0 | 1 => String::new(),
        n => format!(", run {} of {n}", about.repeat),
    };
    // To the second.
    let time = run.time.get(..19).unwrap_or(&run.time).replace('T', " ");
    let _ = writeln!(out, "<p class=\"soft\">{} UTC{repeat}</p>", Escaped(time));
    verdict(out, run);
    metadata(out, run);
    if !run.notes.is_empty() {
        out.push_str("<h2>Notes</h2>\n<ul>\n");
        for note in &run.notes {
            let _ = writeln!(out, "<li>{}</li>", Escaped(note));
        }
        out.push_str("</ul>\n");
    }
}

fn verdict(out: &mut String, run: &Run) {
    let verdict = run.verdict();
    let word = verdict_word(verdict);
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
            "The figures are not those of the link that was asked for.".to_owned()
        }
        _ => "There is no verdict on this run.".to_owned(),
    };
    let _ = writeln!(
        out,
        "<div class=\"verdict {word}\"><strong>{word}</strong>\n<p>{}</p>",
        Escaped(means)
    );
    let reasons = match &run.end {
        Some(end) if verdict == Some(RunVerdict::Invalid) => end.judgement.invalid.clone(),
        Some(_) if verdict == Some(RunVerdict::Unwatched) => vec![],
        _ => run.why_not_clean().into_iter().collect(),
    };
    let failed = run
        .why_failed()
        .map(|why| format!("{why}: the run counts in no mean"));
    for reason in reasons.into_iter().chain(failed) {
        let _ = writeln!(out, "<p>{}</p>", Escaped(reason));
    }
    if let Some(end) = &run.end
        && !end.judgement.contended_seconds.is_empty()
    {
        let seconds = ranges(&end.judgement.contended_seconds);
        let _ = writeln!(out, "<p>Seconds touched by contention: {seconds}</p>");
    }
    out.push_str("</div>\n");
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
        let _ = write!(means, " Not watched: {}.", others.join(", "));
    }
    means
}

fn metadata(out: &mut String, run: &Run) {
    let about = &run.about;
    out.push_str("<h2>Run</h2>\n<dl>\n");
    entry(out, "command", &about.argv.join(" "));
    entry(out, "in", &about.cwd);
    entry(out, "seed", &about.seed.to_string());
    if let Some((from, until)) = run.measured() {
        entry(out, "measured", &time(until.saturating_sub(from) as f64));
    }
    let sample = about
        .sample_ns
        .map_or("none".to_owned(), |ns| format!("every {}", time(ns as f64)));
    entry(out, "samples", &sample);
    if let Some(interface) = &about.in_place {
        entry(out, "interface", interface);
    }
    let host = &run.host;
    let cpus = host.cpus;
    entry(
        out,
        "host",
        &format!("{}, Linux {}, {cpus} CPUs", host.hostname, host.kernel),
    );
    entry(out, "emud", &run.version);
    let mut engines: Vec<String> = Vec::new();
    for link in &about.links {
        let engine = format!("{} ({})", link.engine, link.reason);
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    entry(out, "engine", &engines.join(", "));
    if let Some(end) = &run.end {
        let said = end
            .resources
            .iter()
            .map(|(resource, said)| format!("{resource} {said}"));
        entry(out, "monitor", &said.collect::<Vec<_>>().join(", "));
        entry(out, "exit code", &end.judgement.exit_code.to_string());
    }
    entry(out, "log", &run.path.display().to_string());
    out.push_str("</dl>\n");
}

/// Profiles and scenario in full, at the end of the page.
pub fn texts(out: &mut String, run: &Run) {
    out.push_str("<h2>Asked for, in full</h2>\n");
    let mut text = |title: String, text: &str| {
        let (title, text) = (Escaped(title), Escaped(text));
        let _ = writeln!(
            out,
            "<details><summary>{title}</summary>\n<pre>{text}</pre></details>"
        );
    };
    if let Some(scenario) = &run.about.scenario {
        text("scenario".to_owned(), scenario);
    }
    // A star of many peers has one profile.
    let mut links = run.about.links.iter().collect::<Vec<_>>();
    links.sort_by(|a, b| (&a.profile, &a.toml).cmp(&(&b.profile, &b.toml)));
    for same in links.chunk_by(|a, b| (&a.profile, &a.toml) == (&b.profile, &b.toml)) {
        let names: Vec<&str> = same.iter().map(|link| link.name.as_str()).collect();
        text(
            format!("profile {} of {}", same[0].profile, names.join(", ")),
            &same[0].toml,
        );
    }
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
