// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links: asked against measured as a table, and over time as plots.

use std::fmt::Write;

use emud_monitor::log::{AskedFor, LinkEvent, RunLink};

use super::escape::Escaped;
use super::plot::Plots;
use super::{PageError, at, left_out};
use crate::experiment::results::{Run, Track, count, rate, share, time};

/// More plots than of that many links are shown when they are asked for.
const OPEN: usize = 4;

const HEAD: &str = "\
<tr><th rowspan=\"2\">link</th><th rowspan=\"2\">direction</th>\
<th class=\"group\" colspan=\"3\">rate</th><th class=\"group\" colspan=\"5\">delay</th>\
<th class=\"group\" colspan=\"3\">loss</th>\
<th class=\"group\" colspan=\"2\">packets</th></tr>
<tr><th>asked</th><th>mean</th><th>peak</th><th>asked</th><th>asked sd</th><th>mean</th><th>p50</th>\
<th>p99</th><th>asked</th><th>measured</th><th>95 % interval</th><th>came</th>\
<th>dropped</th></tr>
";

pub fn table(out: &mut String, run: &Run) {
    out.push_str("<h2>Links: asked and measured</h2>\n");
    if run.tracks.is_empty() {
        out.push_str("<p>The log has no samples: what links did was not measured.</p>\n");
        asked_alone(out, run);
        return;
    }
    if run.tracks.iter().all(|track| track.samples == 0) {
        out.push_str("<p>There is no sample of a measured phase.</p>\n");
    }
    let _ = writeln!(
        out,
        "<div class=\"wide\"><table>\n<thead>\n{HEAD}</thead>\n<tbody>"
    );
    for track in &run.tracks {
        row(out, track);
    }
    out.push_str("</tbody></table></div>\n");
    for (track, also) in run
        .tracks
        .iter()
        .filter_map(|track| Some((track, also(track)?)))
    {
        let _ = writeln!(out, "<p>{}: {also}</p>", Escaped(track.name()));
    }
    out.push_str(
        "<p class=\"soft\">Measured phase. Rate: what the link let through, which is what programs sent \
         if that is less than it could have. Delay: what the link gave to packets, its queue included; \
         p50 and p99 are right to 1/16. Loss: on the wire, of packets that the queue took; dropped: by the queue. * changes with time: \
         asked is that of the start.</p>\n",
    );
}

fn row(out: &mut String, track: &Track) {
    let tally = &track.measured;
    let asked = track.asked.as_ref();
    let varies = if asked.is_some_and(|a| a.varies) {
        "*"
    } else {
        ""
    };
    let of_asked = |text: fn(&AskedFor) -> String| {
        asked.map_or_else(String::new, |a| format!("{}{varies}", text(a)))
    };
    let delays = &tally.delays;
    let loss = tally.loss();
    let percent = |[low, high]: [f64; 2]| format!("{} to {}", share(low), share(high));
    let measured = tally.throughput_bit_s();
    let cells = [
        (
            true,
            Some(of_asked(|a| {
                a.rate_bit_s.map_or("unlimited".into(), |r| rate(r as f64))
            })),
        ),
        (false, measured.map(rate)),
        (false, measured.map(|_| rate(tally.peak_bit_s))),
        (true, Some(of_asked(|a| time(a.delay_ns as f64)))),
        (false, Some(of_asked(|a| time(a.jitter_ns as f64)))),
        (false, delays.mean_ns().map(time)),
        (false, delays.quantile_ns(0.5).map(time)),
        (false, delays.quantile_ns(0.99).map(time)),
        (true, Some(of_asked(|a| share(a.loss)))),
        (false, loss.map(|l| share(l.share))),
        (false, loss.map(|l| percent(l.interval))),
        (true, Some(count(tally.packets))),
        (false, Some(count(tally.dropped))),
    ];
    let class = track.class.as_ref().map(|c| format!(", class {c}"));
    let _ = write!(
        out,
        "<tr><td>{}</td><td>{}{}</td>",
        Escaped(&track.link),
        Escaped(&track.direction),
        Escaped(class.unwrap_or_default())
    );
    for (first, text) in cells {
        let class = if first { "n first" } else { "n" };
        let _ = write!(
            out,
            "<td class=\"{class}\">{}</td>",
            text.unwrap_or_default()
        );
    }
    out.push_str("</tr>\n");
}

/// What else happened to packets; none: nothing did.
fn also(track: &Track) -> Option<String> {
    let tally = &track.measured;
    let counts = [
        (tally.marked, "marked (ECN)"),
        (tally.duplicated, "duplicated"),
        (tally.corrupted, "corrupted"),
        (tally.untouched, "passed untouched by the link"),
        (tally.late, "left late, by the engine's doing"),
        (tally.engine_dropped, "dropped by the engine"),
    ];
    let happened = counts.into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<_> = happened
        .map(|(n, what)| format!("{} {what}", count(n)))
        .collect();
    (!parts.is_empty()).then(|| format!("packets {}", parts.join(", ")))
}

fn asked_alone(out: &mut String, run: &Run) {
    out.push_str("<ul>\n");
    for link in &run.about.links {
        let (name, profile) = (Escaped(&link.name), Escaped(&link.profile));
        let _ = writeln!(out, "<li>{name}: profile {profile}</li>");
    }
    out.push_str("</ul>\n");
}

pub fn plots(out: &mut String, run: &Run) -> Result<(), PageError> {
    if run.tracks.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>Over time</h2>\n");
    out.push_str(
        "<p class=\"soft\">Red: contention. Grey: not measured. Dashed grey line: asked for. \
         Dashed green line: the link changed.</p>\n",
    );
    let plots = Plots::new(run);
    let links = run.tracks.chunk_by(|a, b| a.link == b.link);
    let open = match links.clone().count() {
        0..=OPEN => " open",
        _ => "",
    };
    for tracks in links {
        let link = run
            .about
            .links
            .iter()
            .find(|link| link.name == tracks[0].link);
        let title = match link {
            Some(link) => title(link),
            None => tracks[0].link.clone(),
        };
        let _ = writeln!(out, "<details{open}><summary>{}</summary>", Escaped(title));
        joined(out, tracks);
        out.push_str("<div class=\"plots\">\n");
        for track in tracks {
            let failed = |source| PageError {
                track: track.name(),
                source,
            };
            if let Some(svg) = plots.of(track).map_err(failed)? {
                let name = Escaped(track.name());
                let label = format!("<svg role=\"img\" aria-label=\"{name} over time\"");
                let svg = svg.replacen("<svg", &label, 1);
                let _ = writeln!(out, "<figure>{svg}</figure>");
            }
        }
        out.push_str("</div>\n");
        for note in link.iter().flat_map(|link| &link.notes) {
            let _ = writeln!(out, "<p class=\"soft\">{}</p>", Escaped(note));
        }
        out.push_str("</details>\n");
    }
    changes(out, run);
    Ok(())
}

/// "access: profile lte on eth0 of client, engine hold".
fn title(link: &RunLink) -> String {
    let reversed = if link.reversed { ", reversed" } else { "" };
    format!(
        "{}: profile {}{reversed} on {} of {}, engine {}",
        link.name, link.profile, link.interface, link.node, link.engine
    )
}

/// A long run has more samples than a plot has pixels.
fn joined(out: &mut String, tracks: &[Track]) {
    let each = tracks
        .iter()
        .map(|t| t.series.samples_each())
        .max()
        .unwrap_or(1);
    if each > 1 {
        let _ = writeln!(
            out,
            "<p class=\"soft\">Each step is {each} samples together.</p>"
        );
    }
}

fn changes(out: &mut String, run: &Run) {
    let changes = &run.changes;
    let changed: Vec<_> = changes
        .items
        .iter()
        .filter(|change| change.event == LinkEvent::Changed)
        .collect();
    if changed.is_empty() {
        return;
    }
    out.push_str("<details><summary>Changes of links</summary>\n<ul>\n");
    for change in changed {
        let (at, link) = (at(run, change.mono_ns), Escaped(&change.link));
        let what = match &change.phase {
            Some(phase) => format!("phase {}", Escaped(phase)),
            None => "changed by hand".to_owned(),
        };
        let _ = writeln!(out, "<li>{at} s: {link}: {what}</li>");
    }
    out.push_str("</ul>\n");
    left_out(out, changes.left_out, "events of links");
    out.push_str("</details>\n");
}
