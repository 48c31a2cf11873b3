// SPDX-License-Identifier: MIT OR Apache-2.0
//! Late and lost frames reach the sockets of monitors.

use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use emud::abi::EMUD_LATE_NS;
use emud::datapath::engine::hold::reports::{LinkName, pass_on};
use emud::host::now_ns;
use serde_json::{Value, json};
use support::site::Scratch;

use super::{Bench, MS, PATIENCE, frame, number};

/// A folder with the socket of a monitor, and other files.
struct Monitors {
    folder: Scratch,
    monitor: UnixListener,
    other: UnixListener,
}

impl Monitors {
    fn new() -> Self {
        let folder = Scratch::new();
        let listen = |name: &str| {
            let listener = UnixListener::bind(folder.join(name)).unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        };
        let other = listen("not-a-monitor.sock");
        // Of a monitor that was killed.
        drop(listen("monitor-dead.sock"));
        let monitor = listen("monitor-live.sock");
        Self {
            folder,
            monitor,
            other,
        }
    }

    /// The lines of the next connection.
    fn next(&self) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        let stream: UnixStream = loop {
            match self.monitor.accept() {
                Ok((stream, _)) => break stream,
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
            assert!(Instant::now() < deadline, "no connection");
            thread::sleep(Duration::from_millis(1));
        };
        stream.set_nonblocking(false).unwrap();
        BufReader::new(stream)
            .lines()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    }

    fn nothing_more(&self) {
        for listener in [&self.monitor, &self.other] {
            let error = listener.accept().map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
    }
}

fn telling(folder: &Path) -> (Bench, JoinHandle<()>) {
    let (sender, failures) = sync_channel(16);
    let folder = folder.to_owned();
    let link = || {
        Some(LinkName {
            name: "eth7".into(),
            ifindex: 7,
            netns: 4_026_531_840,
        })
    };
    let teller = thread::spawn(move || pass_on(&failures, &folder, link));
    (Bench::telling(1 << 20, Some(sender)), teller)
}

#[test]
fn a_late_frame_reaches_the_monitor() {
    let monitors = Monitors::new();
    let (bench, teller) = telling(&monitors.folder);
    let before_ns = now_ns();
    let departure_ns = before_ns - 5 * MS;
    bench.send(departure_ns, &frame(1, 60));
    assert_eq!(number(&bench.next().frame), 1);
    let lines = monitors.next();
    let after_ns = now_ns();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let mono_ns = lines[0]["mono_ns"].as_u64().unwrap();
    assert!((before_ns..=after_ns).contains(&mono_ns), "{mono_ns}");
    let expected = json!({
        "type": "emulator",
        "failure": "late",
        "name": "eth7",
        "ifindex": 7,
        "netns": 4_026_531_840_u64,
        "value": mono_ns - departure_ns,
        "threshold": EMUD_LATE_NS,
        "since_mono_ns": departure_ns,
        "mono_ns": mono_ns,
        "count": 1,
    });
    assert_eq!(lines[0], expected);
    bench.stop().0.unwrap();
    teller.join().unwrap();
    monitors.nothing_more();
}

/// Up to one line every 10 ms is sent, but no frame is missing in the count.
#[test]
fn all_late_and_lost_frames_are_counted() {
    let monitors = Monitors::new();
    let (bench, teller) = telling(&monitors.folder);
    let start_ns = now_ns();
    for n in 0..200 {
        bench.send(now_ns() - 5 * MS, &frame(n, 60));
        bench.packets.send_raw(&[0; 30]);
        thread::sleep(Duration::from_micros(500));
    }
    for expected in 0..200 {
        assert_eq!(number(&bench.next().frame), expected);
    }
    let stats = super::last(&bench.stop().1);
    let lasted_ns = now_ns() - start_ns;
    assert_eq!((stats.late, stats.dropped), (200, 200));
    teller.join().unwrap();
    let mut lines = Vec::new();
    while counted(&lines, "late") + counted(&lines, "dropped") < 400 {
        lines.extend(monitors.next());
    }
    assert_eq!(
        (counted(&lines, "late"), counted(&lines, "dropped")),
        (200, 200)
    );
    // The first, one for each 10 ms, and the rest at the end; of two kinds.
    let most = 2 * (2 + lasted_ns / (10 * MS));
    assert!(lines.len() as u64 <= most, "{} lines, {most}", lines.len());
    for line in lines.iter().filter(|line| line["failure"] == "dropped") {
        assert_eq!(
            (&line["value"], &line["threshold"]),
            (&line["count"], &json!(1))
        );
    }
    monitors.nothing_more();
}

fn counted(lines: &[Value], failure: &str) -> u64 {
    let of = lines.iter().filter(|line| line["failure"] == failure);
    of.map(|line| line["count"].as_u64().unwrap()).sum()
}

/// Punctual frames are not reported.
#[test]
fn a_frame_in_time_is_not_told() {
    let monitors = Monitors::new();
    let (bench, teller) = telling(&monitors.folder);
    // The CPU may run other tasks for a while: a frame that the holder itself reports as late does
    // not count.
    for n in 0..20 {
        bench.send(now_ns() + 20 * MS, &frame(n, 60));
        bench.next();
    }
    let late = super::last(&bench.stop().1).late;
    teller.join().unwrap();
    let mut told = 0;
    while told < late {
        told += counted(&monitors.next(), "late");
    }
    monitors.nothing_more();
}
