// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links: configured against measured as a table, and over time as plots.

use emud_monitor::log::{AskedFor, RunLink};

use super::plot::Plots;
use super::{PageError, Table, at, joined, left_out};
use crate::experiment::results::{Change, ClassTrack, Run, Track, count, rate, share, time};

/// With more links, the plots are folded until the reader opens them.
const OPEN: usize = 4;

const GROUPS: &[(&str, usize)] = &[
    ("link", 1),
    ("direction", 1),
    ("rate", 3),
    ("delay", 5),
    ("loss", 3),
    ("packets", 2),
];

const COLUMNS: &[[&str; 2]] = &[
    ["link", ""],
    ["direction", ""],
    ["configured", "n first"],
    ["mean", "n"],
    ["peak", "n"],
    ["configured", "n first"],
    ["configured sd", "n"],
    ["mean", "n"],
    ["p50", "n"],
    ["p99", "n"],
    ["configured", "n first"],
    ["measured", "n"],
    ["95 % interval", "n"],
    ["came", "n first"],
    ["dropped", "n"],
];

const CLASS_COLUMNS: &[[&str; 2]] = &[
    ["link", ""],
    ["class", ""],
    ["rate", "n"],
    ["mean wait", "n"],
    ["sent", "n"],
    ["marked", "n"],
    ["queue full", "n"],
    ["waited too long", "n"],
    ["by aqm", "n"],
    ["largest backlog", "n"],
];

pub struct Links {
    /// There are links, or nothing else.
    pub shown: bool,
    /// Which samples there are not.
    pub missing: Vec<String>,
    /// Instead of a table.
    pub profiles: Vec<String>,
    pub table: Table,
    pub also: Vec<String>,
    /// Table of the classes of bottlenecks.
    pub classes: Table,
}

impl Links {
    pub fn of(runs: &[Run]) -> Self {
        let profiles = runs.iter().filter(|run| run.tracks.is_empty());
        let profiles = profiles.flat_map(|run| {
            let profile = |link: &RunLink| format!("{}: profile {}", link.name, link.profile);
            run.about
                .links
                .iter()
                .map(move |link| run.named(&profile(link)))
        });
        let also = |run: &Run| -> Vec<_> {
            let of_tracks = run.tracks.iter().filter_map(also);
            of_tracks.map(|text| run.named(&text)).collect()
        };
        let tracks = |run: &Run| run.tracks.iter().map(row).collect();
        let classes = |run: &Run| run.classes.iter().map(class_row).collect();
        Self {
            shown: (runs.iter()).any(|r| !r.about.links.is_empty())
                || runs.iter().all(|r| r.stations.is_empty()),
            missing: runs.iter().filter_map(missing).collect(),
            profiles: profiles.collect(),
            table: Table::of_hosts(COLUMNS, runs, tracks).grouped(GROUPS),
            also: runs.iter().flat_map(also).collect(),
            classes: Table::of_hosts(CLASS_COLUMNS, runs, classes),
        }
    }
}

/// Returns a note on missing samples; `None`: all are there.
fn missing(run: &Run) -> Option<String> {
    let text = match &run.tracks[..] {
        // A host without links has none.
        [] if run.in_fleet.is_some() && run.about.links.is_empty() => return None,
        [] => "The log has no samples: what links did was not measured.",
        tracks if tracks.iter().all(|track| track.samples == 0) => {
            "There is no sample of a measured phase."
        }
        _ => return None,
    };
    Some(run.of_host(text))
}

fn row(track: &Track) -> Vec<String> {
    let (tally, delays) = (&track.measured, &track.measured.delays);
    let asked = |text: fn(&AskedFor) -> String| {
        let asked = track.asked.as_ref();
        asked.map(|a| text(a) + if a.varies { "*" } else { "" })
    };
    let class = track.class.iter().map(|class| format!(", class {class}"));
    let (loss, measured) = (tally.loss(), tally.throughput_bit_s());
    let percent = |[low, high]: [f64; 2]| format!("{} to {}", share(low), share(high));
    let cells = [
        Some(track.link.clone()),
        Some(track.direction.clone() + &class.collect::<String>()),
        asked(|a| a.rate_bit_s.map_or("unlimited".into(), |r| rate(r as f64))),
        measured.map(rate),
        tally.peak_bit_s().map(rate),
        asked(|a| time(a.delay_ns as f64)),
        asked(|a| time(a.jitter_ns as f64)),
        delays.mean_ns().map(time),
        delays.quantile_ns(0.5).map(time),
        delays.quantile_ns(0.99).map(time),
        asked(|a| share(a.loss)),
        loss.map(|l| share(l.share)),
        loss.map(|l| percent(l.interval)),
        Some(count(tally.counted.packets)),
        Some(count(tally.counted.dropped)),
    ];
    cells.into_iter().map(Option::unwrap_or_default).collect()
}

fn class_row(class: &ClassTrack) -> Vec<String> {
    let counted = &class.counted;
    vec![
        class.link.clone(),
        class.name(),
        class.throughput_bit_s().map(rate).unwrap_or_default(),
        class.mean_wait_ns().map(time).unwrap_or_default(),
        count(counted.sent_packets),
        count(counted.marked),
        count(counted.dropped_full),
        count(counted.dropped_expired),
        count(counted.dropped_aqm),
        format!("{} B", count(class.backlog_bytes)),
    ]
}

/// Returns other events of packets; `None`: there were none.
fn also(track: &Track) -> Option<String> {
    let tally = &track.measured.counted;
    let counts = [
        (tally.marked, "marked (ECN)"),
        (tally.duplicated, "duplicated"),
        (tally.corrupted, "corrupted"),
        (tally.reset, "reset"),
        (tally.untouched, "passed untouched by the link"),
        (tally.late, "left late, by the engine's doing"),
        (tally.engine_dropped, "dropped by the engine"),
    ];
    let happened = counts.into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<_> = happened
        .map(|(n, what)| format!("{} {what}", count(n)))
        .collect();
    let name = track.name();
    (!parts.is_empty()).then(|| format!("{name}: packets {}", parts.join(", ")))
}

pub struct OverTime<'a> {
    /// Whether the plots are shown at once.
    pub open: bool,
    pub plots: Vec<OfLink<'a>>,
    pub changes: Vec<String>,
    pub left_out: String,
}

pub struct OfLink<'a> {
    pub title: String,
    pub joined: String,
    /// Names and images.
    pub figures: Vec<(String, String)>,
    pub notes: &'a [String],
}

impl<'a> OverTime<'a> {
    /// Collects the links of runs.
    ///
    /// # Errors
    /// A plot cannot be drawn.
    pub fn of(runs: &'a [Run]) -> Result<Self, PageError> {
        let mut plots = vec![];
        for run in runs {
            let drawing = Plots::new(run, runs);
            let links = run.tracks.chunk_by(|a, b| a.link == b.link);
            for tracks in links {
                plots.push(of_link(run, &drawing, tracks)?);
            }
        }
        let more = runs.iter().map(|run| run.changes.left_out).sum();
        Ok(Self {
            open: plots.len() <= OPEN,
            plots,
            changes: runs.iter().flat_map(changes).collect(),
            left_out: left_out(more, "changes of links"),
        })
    }
}

fn changes(run: &Run) -> Vec<String> {
    let change = |change: &Change| {
        let phase = change.phase.as_ref().map(|phase| format!("phase {phase}"));
        let by_hand = change.by_hand.then(|| "changed by hand".to_owned());
        let what: Vec<String> = by_hand.into_iter().chain(phase).collect();
        let (at, link) = (at(run, change.mono_ns), run.named(&change.link));
        format!("{at} s: {link}: {}", what.join(", "))
    };
    run.changes.items.iter().map(change).collect()
}

fn of_link<'a>(run: &'a Run, plots: &Plots, tracks: &[Track]) -> Result<OfLink<'a>, PageError> {
    let name = &tracks[0].link;
    let link = run.about.links.iter().find(|link| link.name == *name);
    let each = tracks.iter().map(|t| t.series.samples_each()).max();
    let mut figures = Vec::new();
    for track in tracks {
        figures.extend(plots.of(track)?.map(|svg| (run.named(&track.name()), svg)));
    }
    Ok(OfLink {
        title: run.named(&link.map_or_else(|| name.clone(), title)),
        joined: joined(each.unwrap_or_default()),
        figures,
        notes: link.map_or(&[], |link| &link.notes),
    })
}

/// Returns a title such as "access: profile lte on eth0 of client, engine hold".
fn title(link: &RunLink) -> String {
    let reversed = if link.reversed { ", reversed" } else { "" };
    format!(
        "{}: profile {}{reversed} on {} of {}, engine {}",
        link.name, link.profile, link.interface, link.node, link.engine
    )
}
