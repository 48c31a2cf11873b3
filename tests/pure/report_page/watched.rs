// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud medium watch`: a log that grows, and the picture of it.

use std::fs::OpenOptions;
use std::io::Write;

use emud::experiment::results::{Follow, ResultsError};
use emud::top::{Key, Stations, draw_stations};
use emud_monitor::log::StationCounted;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::made_up::{Log, LogFile, MEASURED, SECOND, clean, on_air};

fn picture(view: &Stations, width: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, 24)).unwrap();
    terminal.draw(|frame| draw_stations(view, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| -> String {
        let cells: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        cells.trim_end().to_owned() + "\n"
    };
    (0..24).map(line).collect()
}

/// The columns of the line that begins with this one.
fn row(picture: &str, first: &str) -> Vec<String> {
    let mut lines = picture.lines().map(|line| line.split_whitespace());
    let line = lines.find(|line| line.clone().next() == Some(first));
    line.expect(picture).map(str::to_owned).collect()
}

fn append(file: &LogFile, text: &str) {
    let mut file = OpenOptions::new().append(true).open(file.path()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Two stations and one out of range: half a second on air, 600 attempts of which 90 failed and 30
/// were the last, 510 packets sent.
#[test]
fn stations_of_a_growing_log() {
    let mut log: Log = on_air(&[[0.0, 0.0], [200.0, 0.0], [900.0, 0.0]]);
    let before = log.lines.len();
    let file = log.write();
    let mut view = Stations::new(Follow::open(file.path()).unwrap()).unwrap();
    let shown = picture(&view, 80);
    assert!(
        shown.contains("wlan0 (1 of 1)  3 stations, no sample so far"),
        "{shown}"
    );
    let silent = ["-"; 8].map(str::to_owned);
    assert_eq!(row(&shown, "n2")[2..10], silent);
    assert!(shown.contains("neighbours of n1: n2"), "{shown}");

    let counted = StationCounted {
        attempts: 600,
        data_frames: 600,
        data_kbit_s: 600 * 8_250,
        failed: 90,
        collided: 60,
        given_up: 30,
        sent_packets: 510,
        sent_bytes: 510 * 1000,
        received_bytes: 250_000,
        dropped_full: 7,
        dropped_aqm: 2,
        air_ns: SECOND / 2,
        busy_ns: SECOND * 3 / 4,
        ..StationCounted::default()
    };
    log.station(3, 1, counted, [212.4, -3.0], Some(&[0, 2]));
    let line = format!("{}\n", log.lines[before]);
    let (begin, rest) = line.split_at(line.len() / 2);
    append(&file, begin);
    view.read().unwrap();
    assert_eq!(picture(&view, 80), shown, "half a line");
    append(&file, rest);
    view.read().unwrap();
    assert!(!view.key(Key::Down) && !view.key(Key::Char('m')) && !view.key(Key::Char('j')));
    let shown = picture(&view, 80);
    let expected = "n2 212,-3 50% 75% 510 4.08Mbit 2.00Mbit 10% 30 9 3 2";
    assert_eq!(row(&shown, "n2").join(" "), expected, "{shown}");
    assert!(shown.contains("neighbours of n2: n1 n3"), "{shown}");
    assert!(
        shown.contains("every 1.0 s") && !shown.contains("ENDED"),
        "{shown}"
    );
    let wide = picture(&view, 150);
    assert_eq!(
        row(&wide, "n2").join(" "),
        format!("{expected} 600 10% 1.50 8.25Mbit")
    );

    let end_ns = MEASURED + 9 * SECOND;
    log.raw("end", end_ns, &serde_json::json!({ "mono_ns": end_ns }));
    append(&file, &format!("{}\n", log.lines[before + 1]));
    view.read().unwrap();
    assert!(picture(&view, 80).contains("ENDED"));
    assert!(!view.key(Key::Char('?')));
    assert!(picture(&view, 80).contains("RETRY  attempts that were repeated"));
    assert!(!view.key(Key::Escape) && view.key(Key::Escape));
}

/// Column and row of a name in a picture.
fn spot(picture: &str, name: &str) -> [f64; 2] {
    let mut lines = (0..).zip(picture.lines().skip(1));
    let found = lines.find_map(|(y, line)| Some((line.split_once(name)?.0.chars().count(), y)));
    let (x, y) = found.expect(picture);
    [x as f64, f64::from(y)]
}

/// The columns and rows of dots in a picture: least and most.
fn dots(picture: &str) -> [[usize; 2]; 2] {
    let of_line = |(y, line): (usize, &str)| {
        let cells = line.chars().enumerate();
        let dots = cells.filter(|(_, c)| ('\u{2801}'..='\u{28ff}').contains(c));
        dots.map(|(x, _)| [x, y]).collect::<Vec<_>>()
    };
    let all: Vec<_> = picture
        .lines()
        .skip(1)
        .enumerate()
        .flat_map(of_line)
        .collect();
    [0, 1].map(|axis| {
        let values = || all.iter().map(|dot| dot[axis]);
        [values().min().expect(picture), values().max().unwrap()]
    })
}

/// 1800 m are 10/11 of 80 columns, so that a column has 24.75 m and a line 49.5 m: the ring of 250 m is ten
/// columns and five lines around its station.
#[test]
fn a_map_has_the_range_of_the_selected_station() {
    let mut log: Log = on_air(&[[0.0, 0.0], [200.0, 0.0], [1800.0, 0.0]]);
    let before = log.lines.len();
    let file = log.write();
    let mut view = Stations::new(Follow::open(file.path()).unwrap()).unwrap();
    view.key(Key::Char('v'));
    let shown = picture(&view, 80);
    assert!(
        shown.contains("1980 m across") && !shown.contains("RETRY"),
        "{shown}"
    );
    // ratatui draws names in one column less than dots.
    let near = |found: f64, expected: f64| (found - expected).abs() <= 1.5;
    let [n1, n2, n3] = ["n1", "n2", "n3"].map(|name| spot(&shown, name));
    assert!(n1[1] == n2[1] && n1[1] == n3[1], "{shown}");
    assert!(
        near(n2[0] - n1[0], 200.0 / 24.75) && near(n3[0] - n1[0], 1800.0 / 24.75),
        "{shown}"
    );
    let [columns, rows] = dots(&shown);
    assert!(near(columns[1] as f64, n1[0] + 10.1), "{shown}");
    assert!(
        near(rows[0] as f64, n1[1] - 5.0) && near(rows[1] as f64, n1[1] + 5.0),
        "{shown}"
    );
    // The line to the neighbour.
    let line = shown.lines().nth(n1[1] as usize + 1).unwrap();
    let between = line.chars().skip(n1[0] as usize + 2).take(5);
    assert!(between.clone().all(|c| c > '\u{2800}'), "{shown}");

    // It goes to the third one, and a line up.
    log.station(3, 0, StationCounted::default(), [1600.0, 60.0], Some(&[2]));
    append(&file, &format!("{}\n", log.lines[before]));
    view.read().unwrap();
    let shown = picture(&view, 80);
    let n1 = spot(&shown, "n1");
    assert!(
        near(n1[0] - n2[0], 1400.0 / 24.75) && n1[1] == n2[1] - 1.0,
        "{shown}"
    );
    let [columns, _] = dots(&shown);
    assert!(near(columns[0] as f64, n1[0] - 10.1), "{shown}");
    // The last one has no neighbour any more, and another ring.
    view.key(Key::End);
    let [columns, _] = dots(&picture(&view, 80));
    assert!(near(columns[0] as f64, n3[0] - 10.1), "{shown}");
    view.key(Key::Char('v'));
    assert!(picture(&view, 80).contains("RETRY"));
}

/// All its stations are in the origin, and there is no range.
#[test]
fn a_segment_has_no_positions() {
    let mut log: Log = on_air(&[[0.0, 0.0]; 2]);
    let file = log.write();
    let at = |file: &LogFile| {
        let view = Stations::new(Follow::open(file.path()).unwrap()).unwrap();
        row(&picture(&view, 80), "n2")[1].clone()
    };
    assert_eq!(at(&file), "0,0");
    for line in &mut log.lines {
        *line = line.replace("\"range_m\":250.0", "\"range_m\":null");
    }
    assert_eq!(at(&log.write()), "-");
}

#[test]
fn what_has_no_medium_is_rejected() {
    let wired = clean(1).write();
    let error = Stations::new(Follow::open(wired.path()).unwrap()).unwrap_err();
    assert!(matches!(error, ResultsError::NoMedium { .. }), "{error}");
    assert!(error.to_string().contains("[medium.NAME]"), "{error}");
    append(&wired, "no JSON\n");
    let text = std::fs::read_to_string(wired.path()).unwrap();
    let (_, without) = text.split_once('\n').unwrap();
    std::fs::write(wired.path(), without).unwrap();
    let error = Stations::new(Follow::open(wired.path()).unwrap()).unwrap_err();
    assert!(matches!(error, ResultsError::NotALog { .. }), "{error}");
}
