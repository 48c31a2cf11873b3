// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures and keys of made-up links.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::state::Mark;
use super::{Action, Key, Top, Watching, draw};
use crate::datapath::engine::Engine;
use crate::datapath::survey::Snapshot;
use crate::datapath::survey::made_up::snapshot;

fn top() -> Top {
    let mut top = Top::new("lab");
    top.read(snapshot(1_000_000_000, 1000));
    top.watching(Watching::Yes);
    top.read(snapshot(2_000_000_000, 3000));
    top
}

fn picture(top: &Top, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(top, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| -> String {
        let cells: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        cells.trim_end().to_owned() + "\n"
    };
    (0..height).map(line).collect()
}

/// Compares with the file beside this one; `EMUD_BLESS=1` writes it.
fn assert_picture(name: &str, drawn: &str) {
    let path = format!("{}/src/top/pictures/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("EMUD_BLESS").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(drawn == wanted, "{path} differs:\n{drawn}");
}

#[test]
fn pictures() {
    let mut top = top();
    assert_picture("80x24", &picture(&top, 80, 24));
    assert_picture("200x50", &picture(&top, 200, 50));
    top.alarm(Some(1), "cpu cpu 1, most by sh");
    top.read(snapshot(3_000_000_000, 3000));
    top.key(Key::Char('d'));
    "80ms"
        .chars()
        .for_each(|c| assert_eq!(top.key(Key::Char(c)), None));
    assert_picture("80x24-prompt", &picture(&top, 80, 24));
    top.key(Key::Escape);
    top.key(Key::Char('?'));
    assert_picture("80x24-help", &picture(&top, 80, 24));
    let mut empty = Top::new("lab");
    empty.read(Snapshot::default());
    empty.watching(Watching::No("needs root".to_owned()));
    assert_picture("80x24-empty", &picture(&empty, 80, 24));
}

/// The figures of the picture, in the row of v0.
#[test]
fn an_interval_is_the_difference() {
    let top = top();
    let row = &top.rows()[0];
    let measured = row.measured.as_ref().unwrap();
    // 2000 packets of 1000 bytes in 1 s, a tenth of them lost.
    assert_eq!(measured.sent_bit_s, 14_400_000.0);
    assert_eq!(measured.arrived_packets_s, 2000.0);
    assert_eq!(measured.lost, Some(0.1));
    assert!(
        measured.p50_ns.unwrap().abs_diff(20_000_000) < 2,
        "{measured:?}"
    );
    assert_eq!(measured.late, Some(0));
    // Nothing measured is not nothing lost.
    let silent = top.rows()[1].measured.as_ref().unwrap();
    assert_eq!((silent.lost, silent.p50_ns), (None, None));
    // fq does not count late packets.
    let of_fq = top
        .rows()
        .iter()
        .find(|row| row.engine == Engine::Fq)
        .unwrap();
    assert_eq!(of_fq.measured.as_ref().unwrap().late, None);
}

/// Neighbour discovery, other protocols and rules pass on a perfect host, too.
#[test]
fn what_passes_as_documented_did_not_fail() {
    let mut top = top();
    let mut now = snapshot(3_000_000_000, 3000);
    now.links[0].directions[0].engine_dropped = Some(1);
    let passed = &mut now.links[0].directions[0].streams[0].counters.passed;
    (passed.no_holder, passed.failed) = (10, 100);
    (passed.neighbour, passed.not_ip) = (1000, 1000);
    (passed.not_active, passed.rule) = (1000, 1000);
    top.read(now);
    assert_eq!(top.rows()[0].measured.as_ref().unwrap().failed, Some(111));
}

/// Where a namespace could not be entered, old drops are no burst of the next interval.
#[test]
fn drops_that_are_not_known_are_no_figure() {
    let mut top = top();
    for (s, dropped, failed) in [
        (3, None, None),
        (4, Some(5000), None),
        (5, Some(5001), Some(1)),
    ] {
        let mut now = snapshot(s * 1_000_000_000, 3000);
        now.links[0].directions[0].engine_dropped = dropped;
        top.read(now);
        assert_eq!(top.rows()[0].measured.as_ref().unwrap().failed, failed);
    }
}

/// `!` stays until the end of an episode; a report of the emulator and lost events are of one interval.
#[test]
fn an_interval_has_a_mark() {
    let mut top = Top::new("lab");
    top.watching(Watching::Yes);
    let mut marks = vec![];
    for s in 1..9 {
        match s {
            2 => top.missed(),
            3 => top.failure("emulator tampered"),
            5 => top.alarm(Some(1), "cpu cpu 1"),
            6 => top.failure("emulator late"),
            7 => top.clear(1),
            _ => {}
        }
        top.read(Snapshot {
            mono_ns: s * 1_000_000_000,
            ..Snapshot::default()
        });
        marks.push(*top.ribbon.back().unwrap());
    }
    let (clean, alarm, late) = (Mark::Clean, Mark::Alarm, Mark::Late);
    let wanted = [
        clean,
        Mark::Unwatched,
        late,
        clean,
        alarm,
        alarm,
        clean,
        clean,
    ];
    assert_eq!(marks, wanted);
}

/// A restart of the counters is no difference.
#[test]
fn a_link_that_is_attached_again_has_no_interval() {
    let mut top = top();
    let mut again = snapshot(3_000_000_000, 3500);
    // In an interval it may become as old as its predecessor was.
    again.links.iter_mut().for_each(|link| link.id += 1);
    top.read(again);
    assert!(top.rows().iter().all(|row| row.measured.is_none()));
}

#[test]
fn nothing_is_wider_than_the_terminal_or_moves_its_cursor() {
    for (width, height) in [
        (80, 24),
        (80, 10),
        (100, 30),
        (139, 24),
        (140, 24),
        (300, 80),
    ] {
        let drawn = picture(&top(), width, height);
        assert!(!drawn.contains('\u{1b}'), "{drawn}");
        assert!(drawn.contains("TAMPERED"), "{width}x{height}\n{drawn}");
        assert!(drawn.contains("q quit"), "{width}x{height}\n{drawn}");
    }
    // Smaller than that there is only no panic.
    for (width, height) in [(1, 1), (20, 5), (79, 3)] {
        picture(&top(), width, height);
    }
}

#[test]
fn keys_lead_to_commands() {
    let run = |words: &str| {
        let words = words.split(' ').map(str::to_owned).collect();
        Some(Action::Run(words))
    };
    let mut top = top();
    let typed = |top: &mut Top, begin: char, text: &str| {
        assert_eq!(top.key(Key::Char(begin)), None);
        text.chars()
            .for_each(|c| assert_eq!(top.key(Key::Char(c)), None));
        top.key(Key::Enter)
    };
    assert_eq!(typed(&mut top, 'd', "80ms"), run("set v0 up.delay=80ms"));
    top.key(Key::Down);
    // It is down.
    assert_eq!(top.key(Key::Char('s')), run("set v0 down.state=up"));
    top.key(Key::Char('j'));
    assert_eq!(
        typed(&mut top, 'l', "1%"),
        run("set v0 links.voice.down.loss=1%")
    );
    top.key(Key::Down);
    let far = "--netns a-namespace-with-a-long-name";
    assert_eq!(
        top.key(Key::Char('s')),
        run(&format!("{far} set eth0 up.state=down"))
    );
    let attach = "attach eth0 --profile dsl --exchange";
    let attach = run(&format!("{far} {attach}"));
    assert_eq!(typed(&mut top, 'p', "dsl"), attach);
    // Nothing typed changes nothing.
    assert_eq!(typed(&mut top, 'd', ""), None);
    assert_eq!(top.key(Key::Char('d')), None);
    assert_eq!(top.key(Key::Escape), None);
    assert_eq!(top.key(Key::Escape), Some(Action::Quit));
    assert_eq!(top.key(Key::Char('q')), Some(Action::Quit));
}

#[test]
fn a_link_that_would_lose_something_keeps_its_profile() {
    let why = "it spares traffic";
    let mut changed = snapshot(3_000_000_000, 4000);
    changed.links[0].irreplaceable = Some(why);
    let mut top = top();
    // Found while the profile is typed.
    "pdsl".chars().for_each(|c| drop(top.key(Key::Char(c))));
    top.read(changed);
    assert_eq!(top.key(Key::Enter), None);
    let said = |top: &Top| picture(top, 80, 24).lines().last().unwrap().to_owned();
    assert!(said(&top).starts_with("v0: it spares"), "{}", said(&top));
    // Other keys lose nothing.
    assert!(top.key(Key::Char('s')).is_some());
    assert_eq!(top.key(Key::Char('p')), None);
    assert!(said(&top).starts_with("v0: it spares"), "{}", said(&top));
    assert_eq!(top.key(Key::Enter), None);
}

#[test]
fn the_selection_stays_on_its_link() {
    let mut top = top();
    (0..3).for_each(|_| drop(top.key(Key::Down)));
    let selected = |top: &Top| top.selected_row().map(|row| row.interface.clone());
    assert_eq!(selected(&top).as_deref(), Some("eth0"));
    let mut fewer = snapshot(3_000_000_000, 3000);
    fewer.links.remove(0);
    top.read(fewer);
    assert_eq!(selected(&top).as_deref(), Some("eth0"));
    top.read(Snapshot::default());
    assert_eq!(top.selected_row(), None);
    assert_eq!(top.key(Key::Char('s')), None);
}

/// A key that follows at once would change the link that has moved up.
#[test]
fn a_link_that_goes_leaves_its_selection_to_no_other_one() {
    let without = |number: usize| {
        let mut without = snapshot(3_000_000_000, 3000);
        without.links.remove(number);
        without
    };
    let mut top = top();
    (0..3).for_each(|_| drop(top.key(Key::Down)));
    top.read(without(1));
    assert_eq!(top.selected_row(), None);
    for key in ['s', 'd', 'l', 'p'] {
        assert_eq!(top.key(Key::Char(key)), None);
        assert!(picture(&top, 80, 24).contains("eth0: this link is gone, select another one"));
    }
    // Why the last change failed is said first.
    top.done("no such profile", true);
    assert!(picture(&top, 80, 24).contains("no such profile"));
    // It is there again, as after an exchange of its profile.
    top.read(snapshot(4_000_000_000, 3000));
    assert!(
        matches!(&top.key(Key::Char('s')), Some(Action::Run(all)) if all.contains(&"eth0".into()))
    );
    for (key, interface) in [(Key::Down, "eth1\u{1b}[2J"), (Key::Up, "v0")] {
        top.read(without(1));
        assert_eq!(top.key(key), None);
        assert_eq!(
            top.selected_row().map(|row| &*row.interface),
            Some(interface)
        );
        top.read(snapshot(5_000_000_000, 3000));
        top.key(Key::Home);
        (0..3).for_each(|_| drop(top.key(Key::Down)));
    }
}

#[test]
fn what_is_typed_for_a_link_that_goes_is_not_for_another_one() {
    for begin in ['l', 'd', 'p'] {
        let mut top = top();
        (0..3).for_each(|_| drop(top.key(Key::Down)));
        top.key(Key::Char(begin));
        top.key(Key::Char('5'));
        // Others may go.
        let mut fewer = snapshot(3_000_000_000, 3000);
        fewer.links.remove(0);
        top.read(fewer);
        assert!(picture(&top, 80, 24).contains(": 5_"), "{begin}");
        let mut without = snapshot(4_000_000_000, 3000);
        without.links.remove(1);
        top.read(without);
        let shown = picture(&top, 80, 24);
        assert!(shown.contains("eth0: this link is gone"), "{shown}");
        // The rest of what is typed is not a key.
        "0ms"
            .chars()
            .for_each(|c| assert_eq!(top.key(Key::Char(c)), None));
        // It is there again, as after a reading during a change.
        top.read(snapshot(5_000_000_000, 3000));
        assert!(picture(&top, 80, 24).contains(": 50ms_"), "{begin}");
        let mut without = snapshot(6_000_000_000, 3000);
        without.links.remove(1);
        top.read(without);
        assert_eq!(top.key(Key::Enter), None, "{begin}");
        assert!(
            picture(&top, 80, 24).contains("this link is gone"),
            "{begin}"
        );
        top.key(Key::Home);
        assert!(picture(&top, 80, 24).contains("q quit"), "{begin}");
    }
}

/// An interval without a monitor is not a clean one.
#[test]
fn unwatched_is_not_clean() {
    let ribbon = |top: &Top| {
        let drawn = picture(top, 80, 24);
        let line = drawn
            .lines()
            .find(|line| line.starts_with("host "))
            .unwrap()
            .to_owned();
        line.trim_start_matches("host ").to_owned()
    };
    let quiet = || {
        let mut quiet = snapshot(1, 1000);
        quiet.links.remove(1);
        quiet
    };
    let mut top = Top::new("lab");
    top.read(quiet());
    top.watching(Watching::Yes);
    top.read(quiet());
    // For as long as an episode goes on.
    top.alarm(Some(1), "cpu");
    top.read(quiet());
    top.read(quiet());
    top.clear(1);
    top.alarm(None, "application");
    top.read(quiet());
    top.read(quiet());
    // A link with a part that is missing.
    top.read(snapshot(9, 1000));
    top.watching(Watching::No("it ended".to_owned()));
    top.read(quiet());
    assert_eq!(ribbon(&top), "?.!!!.x?");
}
