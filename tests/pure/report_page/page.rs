// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: its content, that it is well-formed, and that a log cannot inject markup.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use emud::experiment::report::{html, plots};
use emud::experiment::results::{HostFigure, Logged, Run, figures};
use emud_monitor::log::{
    ArtefactLine, ClassCounted, Judgement, MetricLine, PhaseName, RunVerdict, StationCounted,
};
use serde_json::Value;

use super::made_up::{
    Log, MEASURED, SECOND, about, clean, contended, invalid, judgement, on_air, star, unfinished,
};
use support::validator::{html_mistakes, svg_mistakes};

fn page(log: &Log) -> String {
    let page = html(&Logged::read(log.write().path()).unwrap()).unwrap();
    assert_eq!(html_mistakes(&page), "");
    page
}

pub fn emud(arguments: &[&str]) -> Output {
    Command::new(support::emud_path())
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn every_verdict_is_in_words() {
    assert!(page(&clean(1)).contains("<strong>clean</strong>"));
    assert!(page(&unfinished(1)).contains("<strong>unfinished</strong>"));
    let invalid = page(&invalid(1));
    assert!(invalid.contains("<strong>invalid</strong>"));
    assert!(invalid.contains("<p>17 packets left 3.2ms late at 4.1 s</p>"));
    let contended = page(&contended(1));
    assert!(contended.contains("<strong>contended</strong>"));
    assert!(contended.contains("Seconds touched by contention: 30-38, 51"));
    assert!(contended.contains("93% stress-ng"));
}

#[test]
fn what_was_asked_is_beside_what_was_measured() {
    let page = page(&clean(1));
    for text in [
        "8Mbit",
        "20ms",
        "2ms",
        "1%",
        "iperf3 -c 10.0.0.2",
        "the kernel lacks sch_fq",
        "6.18.0",
    ] {
        assert!(page.contains(text), "no {text}");
    }
    assert_eq!(page.matches("<figure>").count(), 2);
}

/// Without one for a dark page a plot would have the colours of a light one there.
#[test]
fn every_colour_of_a_plot_has_one_for_a_dark_page() {
    let page = page(&contended(1));
    let (style, plots) = page.split_once("</style>").unwrap();
    for name in ["fill", "stroke"] {
        let begin = format!("{name}=\"#");
        let found = plots.split(&begin).skip(1);
        let found: BTreeSet<&str> = found.filter_map(|rest| rest.split('"').next()).collect();
        assert!(found.len() > 1, "{found:?}");
        for colour in found {
            let dark = format!("svg [{begin}{colour}\"]");
            assert!(style.contains(&dark), "no {dark}");
        }
    }
}

#[test]
fn what_else_happened_to_packets_is_said() {
    let mut log = Log::new(1, &["access"]);
    log.sample(0, "access", "up", 0.5);
    for (key, n) in [("untouched", 12), ("engine_dropped", 1_234)] {
        let last = log.lines.last_mut().unwrap();
        *last = last.replace(&format!("\"{key}\":0"), &format!("\"{key}\":{n}"));
    }
    log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
    let said = "access up: packets 12 passed untouched by the link, 1,234 dropped by the engine";
    assert!(page(&log).contains(said));
    assert!(!page(&clean(1)).contains("access up: packets"));
}

#[test]
fn the_host_is_beside_the_links() {
    let mut log = contended(1);
    assert!(!page(&log).contains("<h2>Host</h2>"));
    assert_eq!(
        plots(&Logged::read(log.write().path()).unwrap())
            .unwrap()
            .len(),
        2
    );
    let end = log.lines.pop().unwrap();
    for second in 0..60 {
        log.host(second, if second < 30 { 0.25 } else { 0.75 });
    }
    // What is not known, and a line behind the measured phase.
    let known = log
        .lines
        .last()
        .unwrap()
        .replace("\"busy\":0.75", "\"busy\":0.25");
    let unknown = |key: &str| {
        known.replace(
            &format!("\"{key}\":{{"),
            &format!("\"{key}\":null,\"to_be\":{{"),
        )
    };
    log.lines.extend([unknown("cpu"), unknown("swap")]);
    log.host(70, 1.0);
    log.lines.push(end);
    let run = Run::read(log.write().path()).unwrap();
    let measured = &run.host_track.measured;
    // 30 s of each, and 1 s more.
    let mean = measured.mean(HostFigure::Busy).unwrap();
    assert!((mean - 30.25 / 61.0).abs() < 1e-9, "{mean}");
    assert_eq!(measured.most(HostFigure::Busy), Some(0.75));
    assert_eq!(measured.mean(HostFigure::Iowait), None);
    // Bytes of a volume and its disk are the same ones.
    assert_eq!(measured.mean(HostFigure::Written), Some(2e6));
    assert_eq!(measured.most(HostFigure::SwapOut), Some(59.0 * 4096.0));
    let page = page(&log);
    let section = page.split("<h2>Host</h2>").nth(1).unwrap();
    let section = section.split("<h2>").next().unwrap();
    for text in [
        "memory in use, of 8 GB",
        "3 GB",
        "75%",
        "241.7 kB/s",
        "busiest disk (sda at most)",
        "host: CPUs, %",
        "swap, kB/s",
        // Of the contention in the plots of the links.
        "cpu 1",
    ] {
        assert!(section.contains(text), "no {text}: {section}");
    }
    assert!(!section.contains("iowait"));
    // The same time axis as that of the link.
    let plots = plots(&Logged::Run(run.into())).unwrap();
    let [.., link, host] = &plots[..] else {
        panic!("no plots");
    };
    assert_eq!(host.file, "host.svg");
    assert_eq!(svg_mistakes(&host.svg), "");
    let red = |svg: &str| {
        let rects = svg.split("<rect").skip(1);
        let rects = rects.filter_map(|rect| rect.split("/>").next());
        let red = rects.filter(|rect| rect.contains("#C8281E"));
        let x = |rect: &str| {
            rect.split(" x=")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
                .to_owned()
        };
        red.map(x).take(2).collect::<Vec<_>>()
    };
    assert_eq!(red(&link.svg).len(), 2);
    assert_eq!(red(&link.svg), red(&host.svg));
}

#[test]
fn classes_of_bottlenecks_are_in_a_table() {
    let mut log = Log::new(7, &["access"]);
    assert!(!page(&log).contains("Classes of bottlenecks"));
    log.seconds(&["access"], 4);
    for second in 0..4 {
        let counted = ClassCounted {
            sent_packets: 1_000,
            sent_bytes: 1_250_000,
            marked: 3,
            dropped_full: 5,
            dropped_expired: 7,
            dropped_aqm: 11,
            wait_ns: 2_500_000_000,
        };
        log.class(second, "bulk", counted);
        log.class(second, "voice", ClassCounted::default());
    }
    // Behind the measured phase.
    log.phase(MEASURED + 4 * SECOND, PhaseName::CleanUp);
    log.class(
        4,
        "bulk",
        ClassCounted {
            sent_bytes: 1 << 40,
            ..ClassCounted::default()
        },
    );
    log.end(5, Some(&judgement(RunVerdict::Clean, 4)));
    let figures: Vec<_> = figures(&Run::read(log.write().path()).unwrap())
        .iter()
        .map(|figure| (figure.name.text(), figure.value))
        .filter(|(name, _)| name.contains("uplink"))
        .collect();
    let bulk = |name: &str, value| (format!("access bottleneck class uplink.bulk {name}"), value);
    let of_voice = "access bottleneck class uplink.voice throughput".to_owned();
    let want = [
        bulk("throughput", 1e7),
        bulk("delay mean", 2_500_000.0),
        bulk("queue drops", 92.0 / 4_092.0),
        (of_voice, 0.0),
    ];
    assert_eq!(figures, want);
    let page = page(&log);
    let table = page.split("Classes of bottlenecks").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = table.split("<tr>").skip(2).take(2).map(cells).collect();
    assert_eq!(
        rows[0],
        [
            "access",
            "uplink.bulk",
            "10Mbit",
            "2.5ms",
            "4,000",
            "12",
            "20",
            "28",
            "44",
            "4,542 B"
        ]
    );
    let idle = [
        "access",
        "uplink.voice",
        "0bit",
        "",
        "0",
        "0",
        "0",
        "0",
        "0",
        "4,542 B",
    ];
    assert_eq!(rows[1], idle);
}

#[test]
fn stations_are_in_a_table_and_are_figures() {
    let mut log = on_air(&[[0.0, 0.0], [100.0, 0.0]]);
    for second in 0..4 {
        let counted = StationCounted {
            attempts: 120,
            // Half of them at 11, half at 5.5 Mbit/s.
            data_frames: 120,
            data_kbit_s: 60 * (11_000 + 5_500),
            sent_packets: 100,
            sent_bytes: 125_000,
            failed: 20,
            retried: 18,
            collided: 15,
            damaged: 5,
            internal_collisions: 1,
            given_up: 2,
            dropped_full: 3,
            dropped_aqm: 4,
            received_packets: 1,
            received_bytes: 250,
            duplicates: 1,
            air_ns: SECOND / 4,
            busy_ns: SECOND / 2,
        };
        log.station(second, 0, counted, [second as f64, 0.0], None);
        log.station(second, 1, StationCounted::default(), [100.0, 0.0], None);
    }
    // Behind the measured phase.
    log.phase(MEASURED + 4 * SECOND, PhaseName::CleanUp);
    log.station(
        4,
        0,
        StationCounted {
            sent_bytes: 1 << 40,
            ..StationCounted::default()
        },
        [4.0, 0.0],
        None,
    );
    log.end(5, Some(&judgement(RunVerdict::Clean, 4)));
    let found: Vec<_> = figures(&Run::read(log.write().path()).unwrap())
        .iter()
        .map(|figure| (figure.name.text(), figure.value))
        .collect();
    let n1 = |name: &str, value| (format!("wlan0 station n1 {name}"), value);
    let idle = ("wlan0 station n2 throughput".to_owned(), 0.0);
    let want = [
        n1("throughput", 1e6),
        n1("loss", 8.0 / 408.0),
        n1("queue drops", 28.0 / 436.0),
        idle,
    ];
    assert_eq!(found, want);
    let page = page(&log);
    assert!(!page.contains("Links: configured"));
    let table = page.split("Stations of media").nth(1).unwrap();
    // The largest of 0 to 3 at the ends of intervals.
    assert!(table.contains("longest queue at a sample"), "{table}");
    let rows: Vec<Vec<&str>> = table.split("<tr>").skip(3).take(2).map(cells).collect();
    let n1 = [
        "wlan0", "n1", "1Mbit", "2kbit", "400", "72", "8", "28", "4", "8.25Mbit", "60", "20",
        "25%", "50%", "3", "6 J",
    ];
    assert_eq!(rows[0], n1);
    assert_eq!(rows[1][..4], ["wlan0", "n2", "0bit", "0bit"]);
}

/// n2 leaves the range of n1 after 3 of 4 s.
fn walking() -> Log {
    let mut log = on_air(&[[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]]);
    let idle = StationCounted::default();
    for second in 0..4 {
        let x = 100.0 + 50.0 * (second + 1) as f64;
        log.station(second, 0, idle, [0.0, 0.0], (x > 200.0).then_some(&[2]));
        log.station(second, 1, idle, [x, 0.0], (x > 200.0).then_some(&[]));
        log.station(second, 2, idle, [0.0, 100.0], (x > 200.0).then_some(&[0]));
    }
    log.end(4, Some(&judgement(RunVerdict::Clean, 4)));
    log
}

#[test]
fn the_map_moves_and_marks_neighbours_while_they_are() {
    let page = page(&walking());
    let map = page.split("<h3>Map of wlan0</h3>").nth(1).unwrap();
    let moving = map.split("class=\"frames\"").next().unwrap();
    assert!(moving.contains("its range of 250 m") && moving.contains("4 s show 4 s."));
    // n2 goes straight for all the time; the others stand still.
    let ways: Vec<&str> = moving.split("<animateTransform").skip(1).collect();
    assert_eq!(ways.len(), 1);
    assert!(ways[0].contains("keyTimes=\"0;1\""), "{}", ways[0]);
    // Rings: n1 and n3 are neighbours for ever, the others until second 3.
    let ring = |of: usize| format!("class=\"ring map0r{of}\"");
    for (station, rings) in [(0, [1, 2]), (1, [0, 2]), (2, [0, 1])] {
        let own = moving
            .split(&format!("map0s{station} station"))
            .nth(1)
            .unwrap();
        let own = own.split("</g>").next().unwrap();
        for of in rings {
            let ring = own
                .split(&ring(of))
                .nth(1)
                .unwrap_or_else(|| panic!("{own}"));
            let ring = ring.split("</circle>").next().unwrap();
            let changes = ring.contains("keyTimes=\"0;0.75;1\" values=\"1;0;0\"");
            assert_eq!(changes, station == 1 || of == 1, "{station} {of}: {ring}");
        }
    }
    // Six pictures: neighbours are 3, 3, 3, 3, 1, 1 pairs.
    let edges = map
        .split("<figure>")
        .skip(1)
        .map(|one| one.matches("class=\"edge ").count());
    assert_eq!(edges.collect::<Vec<_>>(), [3, 3, 3, 3, 1, 1]);
}

#[test]
fn the_map_of_stations_that_stand_still_has_their_lines() {
    let mut log = on_air(&[[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]]);
    let name = "n1<script>";
    log.lines
        .iter_mut()
        .for_each(|line| *line = line.replace("\"n1\"", &format!("{name:?}")));
    log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
    let page = page(&log);
    let map = page.split("<h3>Map of wlan0</h3>").nth(1).unwrap();
    assert_eq!(map.matches("class=\"edge\"").count(), 2);
    assert!(!map.contains("<animate") && !map.contains("class=\"frames\""));
    assert!(!page.contains("<script") && map.contains("n1&#60;script&#62;"));
    // A run without media has none.
    assert!(!self::page(&clean(1)).contains("Map of"));
}

/// With a grid of losses the range is no circle.
#[test]
fn the_map_of_a_medium_without_a_range_has_no_circle() {
    let mut log = on_air(&[[0.0, 0.0], [200.0, 0.0]]);
    for line in &mut log.lines {
        *line = line.replace("\"range_m\":250.0", "\"range_m\":null");
    }
    log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
    let page = page(&log);
    let map = page.split("<h3>Map of wlan0</h3>").nth(1).unwrap();
    assert!(
        map.contains("Choose a station: stations with a ring"),
        "{map}"
    );
    assert!(!map.contains("class=\"reach map0r") && map.contains("class=\"ring"));
}

/// 256 stations that all hear each other: a page that a browser can still show.
#[test]
fn the_map_of_a_large_medium_is_bounded() {
    let positions: Vec<[f64; 2]> = (0..256)
        .map(|n| [f64::from(n % 16), f64::from(n / 16)])
        .collect();
    let mut log = on_air(&positions);
    for second in 0..40 {
        for (station, [x, y]) in positions.iter().copied().enumerate() {
            let at = [x + ((second * 7 + station as u64) % 5) as f64, y];
            log.station(second, station, StationCounted::default(), at, None);
        }
    }
    log.end(40, Some(&judgement(RunVerdict::Clean, 40)));
    let page = page(&log);
    assert!(page.contains("With more than 20 stations"));
    // 32,640 pairs.
    assert!(!page.contains("class=\"edge"));
    assert_eq!(page.matches("too many lines to draw").count(), 6);
    assert!(page.len() < 1 << 20, "{}", page.len());
}

/// 64 stations that all hear each other have 2,016 pairs.
#[test]
fn a_map_without_lines_says_so() {
    let positions: Vec<[f64; 2]> = (0..64).map(|n| [f64::from(n), 0.0]).collect();
    let mut log = on_air(&positions);
    log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
    let page = page(&log);
    assert!(!page.contains("class=\"edge") && page.contains("class=\"ring"));
    assert!(page.contains("More than 2,000 lines between neighbours are not drawn."));
}

/// A wired segment has no map.
#[test]
fn stations_of_a_segment_have_their_table() {
    let mut log = on_air(&[[0.0; 2]; 2]);
    for line in &mut log.lines {
        *line = line.replace("\"range_m\":250.0", "\"range_m\":null");
    }
    let counted = StationCounted {
        sent_packets: 471,
        ..StationCounted::default()
    };
    log.station(0, 0, counted, [0.0; 2], None);
    log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
    let page = page(&log);
    assert!(
        page.contains("Stations of media") && page.contains(">471<"),
        "{page}"
    );
    assert!(!page.contains("Map of"));
}

fn cells(row: &str) -> Vec<&str> {
    let cells = row.split("<td").skip(1);
    cells
        .map(|cell| {
            let cell = cell.split_once('>').unwrap().1;
            cell.split('<').next().unwrap().trim()
        })
        .collect()
}

#[test]
fn contention_is_shaded_and_labelled_and_changes_are_marked() {
    let page = page(&contended(1));
    // Two spans in each panel: throughput, delay and loss of one direction, and for the other one
    // also the queue.
    let red = page.matches("opacity=\"0.22\" fill=\"#C8281E\"").count();
    assert_eq!(red, 2 * (3 + 4), "shaded spans");
    assert!(page.contains("cpu 1\n</text>"), "a label");
    assert!(page.contains("stroke=\"#0A7A5C\""), "a change");
    assert!(
        !self::page(&clean(1)).contains("fill=\"#C8281E\" "),
        "nothing to shade"
    );
}

#[test]
fn a_failed_program_is_at_the_top() {
    let mut log = clean(1);
    log.exit(MEASURED + SECOND, "server", Some(7), false);
    let page = page(&log);
    let said = "the program of server failed with exit code 7: the run counts in no mean";
    assert!(page.contains(said), "{page}");
    // Unwatched resources are not called clean.
    assert!(page.contains("Watched: cpu, network. Not watched: disk."));
    assert!(!page.contains("kept its times"));
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</pre></title><script>alert(1)</script><img src=x onerror='a' alt=\"b\">\0\u{1b}[2J\u{7}\u{202e}&\n.";
    let mut run = about(1, &[hostile]);
    run.name = hostile.to_owned();
    run.argv = vec![hostile.to_owned()];
    run.scenario = Some(hostile.to_owned());
    run.notes = vec![hostile.to_owned()];
    run.nodes[0].name = hostile.to_owned();
    run.links[0].toml = hostile.to_owned();
    run.links[0].reason = hostile.to_owned();
    let mut log = Log::of(run);
    log.seconds(&[hostile], 5);
    log.output(MEASURED + SECOND, hostile);
    let span = log.contention(hostile, SECOND, 2 * SECOND);
    for [stored, error] in [[Some(hostile), None], [None, Some(hostile)]] {
        let kept = ArtefactLine {
            mono_ns: MEASURED + SECOND,
            node: hostile.to_owned(),
            path: hostile.to_owned(),
            stored: stored.map(str::to_owned),
            bytes: 1,
            error: error.map(str::to_owned),
        };
        log.raw("artefact", kept.mono_ns, &kept);
    }
    let metric = MetricLine {
        mono_ns: MEASURED + SECOND,
        name: hostile.to_owned(),
        value: 1.5,
        unit: Some(hostile.to_owned()),
    };
    log.raw("metric", metric.mono_ns, &metric);
    let judged = Judgement {
        contention: vec![span],
        contended_seconds: vec![1, 2],
        invalid: vec![hostile.to_owned()],
        ..judgement(RunVerdict::Invalid, 5)
    };
    log.end(5, Some(&judged));
    let page = page(&log);
    assert!(!page.contains("<script"));
    assert!(!page.contains("<img"));
    assert!(page.contains("&#60;script&#62;"));
    assert!(page.contains("onerror=&#39;a&#39; alt=&#34;b&#34;"));
    // What turns the direction of writing could show a text as another one.
    assert!(page.contains('\u{fffd}') && !page.contains('\u{202e}'));
    // A line stays one.
    assert!(page.contains("\u{fffd}&#38;\n."));

    for plot in plots(&Logged::read(log.write().path()).unwrap()).unwrap() {
        assert_eq!(svg_mistakes(&plot.svg), "", "{}", plot.file);
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        assert!(plot.file.chars().all(allowed), "{}", plot.file);
    }
}

#[test]
fn a_star_of_32_stays_usable() {
    let page = page(&star(32));
    assert_eq!(page.matches("<figure>").count(), 64);
    assert!(
        !page.contains("<details open>"),
        "plots are shown on request"
    );
    assert!(page.len() < 4_000_000, "{}", page.len());
    assert!(self::page(&star(2)).contains("<details open>"));
}

#[test]
fn a_run_that_never_measured_has_a_page() {
    let mut log = clean(1);
    log.lines.truncate(3);
    let page = page(&log);
    assert!(page.contains("The log has no samples"));
    assert!(page.contains("access: profile made-up"));
}

#[test]
fn the_verb_writes_page_and_plots() {
    let log = contended(1).write();
    let directory = std::env::temp_dir().join(format!("report-svg-{}", std::process::id()));
    let out = emud(&[
        "report",
        log.text(),
        "-o",
        "-",
        "--svg",
        directory.to_str().unwrap(),
    ]);
    let mut files: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let svg = fs::read_to_string(directory.join("access-up.svg"));
    fs::remove_dir_all(&directory).unwrap();
    assert!(out.status.success(), "{out:?}");
    assert_eq!(files, ["access-down.svg", "access-up.svg"]);
    assert_eq!(svg_mistakes(&svg.unwrap()), "");
    assert_eq!(html_mistakes(&String::from_utf8(out.stdout).unwrap()), "");
}

#[test]
fn the_verb_says_what_it_cannot_do() {
    let log = clean(1).write();
    let nowhere = "/nonexistent/page.html";
    let out = emud(&["report", log.text(), "-o", nowhere]);
    assert_eq!(out.status.code(), Some(73));
    assert!(String::from_utf8_lossy(&out.stderr).contains(nowhere));
    assert_eq!(emud(&["report", log.text()]).status.code(), Some(64));
    assert_eq!(
        emud(&["report", "/nonexistent.log", "-o", "-"])
            .status
            .code(),
        Some(66)
    );
}

/// The limit is in processor time: it is valid on a busy machine, too.
#[test]
fn a_page_of_ten_to_the_nine_packets_takes_less_than_two_seconds() {
    for lost in [0, 1, 3, 500_000_000] {
        let mut log = Log::new(1, &["access"]);
        log.sample(0, "access", "up", 0.5);
        let last = log.lines.last_mut().unwrap();
        let mut sample: Value = serde_json::from_str(last).unwrap();
        for (key, n) in [
            ("packets", 1_000_000_000),
            ("lost", lost),
            ("passed_packets", 1_000_000_000 - lost),
        ] {
            sample[key] = n.into();
        }
        *last = sample.to_string();
        log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
        let log = log.write();
        let made = Command::new("sh")
            .args(["-c", "ulimit -t 2; exec \"$@\"", "sh"])
            .args([support::emud_path().as_os_str(), "report".as_ref()])
            .args([log.path().as_os_str(), "-o".as_ref(), "-".as_ref()])
            .output()
            .unwrap();
        assert!(made.status.success(), "{lost} lost: {made:?}");
    }
}

/// Neither by another path nor by another name.
#[test]
fn the_page_does_not_overwrite_its_log() {
    let made = clean(1).write();
    let folder = made.path().with_extension("folder");
    fs::create_dir(&folder).unwrap();
    let [log, link, page] = ["a.log", "b.log", "c.html"].map(|name| folder.join(name));
    fs::copy(made.path(), &log).unwrap();
    fs::hard_link(&log, &link).unwrap();
    let path = folder.join("..").join(folder.file_name().unwrap());
    let report = |output: &Path| {
        let [log, output] = [log.as_path(), output].map(|path| path.to_str().unwrap());
        emud(&["report", log, "-o", output]).status.code()
    };
    let before = fs::read(&log).unwrap();
    for output in [&log, &link, &path.join("a.log")] {
        assert_eq!(report(output), Some(64), "{output:?}");
    }
    assert_eq!(fs::read(&log).unwrap(), before);
    assert_eq!(report(&page), Some(0));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn repeats_and_comparisons_have_a_page() {
    let files: Vec<_> = (1..=3).map(|seed| clean(seed).write()).collect();
    let bad = contended(4).write();
    let output = |name: &str| files[0].path().with_file_name(name);
    let (one, two) = (output("repeats.html"), output("both.html"));
    let logs: Vec<&str> = files.iter().map(|file| file.text()).collect();
    let repeats = [
        &["report"],
        &logs[..],
        &[bad.text(), "-o", one.to_str().unwrap()],
    ]
    .concat();
    let out = emud(&repeats);
    assert!(out.status.success(), "{out:?}");
    let page = fs::read_to_string(&one).unwrap();
    assert_eq!(html_mistakes(&page), "");
    assert!(page.contains("4 runs, 3 counted"));
    // Each figure of each run, and the one that does not count.
    let run = Run::read(files[0].path()).unwrap();
    let dots = page.matches("<circle class=\"run a\"").count();
    assert_eq!(dots, 3 * figures(&run).len());
    assert_eq!(
        page.matches("<circle class=\"run out\"").count(),
        figures(&run).len()
    );

    // Nothing is excluded where no run counts.
    let none = emud(&[
        "report",
        bad.text(),
        bad.text(),
        "-o",
        one.to_str().unwrap(),
    ]);
    assert!(none.status.success(), "{none:?}");
    let page = fs::read_to_string(&one).unwrap();
    assert!(page.contains("2 runs, 0 counted"));
    assert_eq!(page.matches("<circle class=\"run out\"").count(), 0);
    assert!(!page.contains("excluded"));

    let both = [
        &["report", logs[0], logs[1], "--against", logs[2], bad.text()],
        &["-o", two.to_str().unwrap()][..],
    ]
    .concat();
    let out = emud(&both);
    assert!(out.status.success(), "{out:?}");
    let page = fs::read_to_string(&two).unwrap();
    assert_eq!(html_mistakes(&page), "");
    let compared = emud(&[
        "compare",
        "--json",
        logs[0],
        logs[1],
        "--against",
        logs[2],
        bad.text(),
    ]);
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(compared["b"]["counted"], 1);
    assert!(page.contains("a: 2 runs, 2 in the figures; b: 2 runs, 1 in the figures"));
    assert!(page.contains("access down delay mean"), "{page}");
    // A page that would replace a log of the second side.
    let over = emud(&["report", logs[0], "--against", logs[1], "-o", logs[1]]);
    assert_eq!(over.status.code(), Some(64));
    let plots = emud(&["report", logs[0], logs[1], "--svg", "plots"]);
    assert_eq!(plots.status.code(), Some(64));
    for file in [one, two] {
        fs::remove_file(file).unwrap();
    }
}
