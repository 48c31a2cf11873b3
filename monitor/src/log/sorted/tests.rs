// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::{BufRead, BufReader, Seek};

use rustix::pipe::pipe;
use serde_json::Value;

use super::*;
use crate::log::{OutputLine, OutputStream, PhaseLine, PhaseName};

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

fn output(mono_ns: u64, text: impl Into<String>) -> Line {
    Line::Output(OutputLine {
        mono_ns,
        node: "a".into(),
        stream: OutputStream::Stdout,
        text: text.into(),
        partial: false,
    })
}

fn phase(mono_ns: u64) -> Line {
    let phase = PhaseName::Measurement;
    Line::Phase(PhaseLine { mono_ns, phase })
}

fn end(log: &SortedLog) {
    let sender = log.sender().lines.as_ref().unwrap();
    sender
        .send(Sent::Last("{\"type\":\"end\"}\n".into()))
        .unwrap();
}

fn values(text: impl BufRead) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect()
}

/// A file that is deleted with the test, and the log in it.
fn in_file() -> (File, SortedLog) {
    let name = format!("emud-sorted-{}-{}", std::process::id(), mono_ns());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(path).unwrap();
    let log = SortedLog::new(Clock::now(), Some(file.try_clone().unwrap())).unwrap();
    (file, log)
}

fn texts(mut file: File) -> Vec<String> {
    file.rewind().unwrap();
    let text = |line: Value| line["text"].as_str().unwrap_or("-").to_owned();
    values(BufReader::new(file)).into_iter().map(text).collect()
}

#[test]
fn lines_are_sorted_and_those_of_the_same_time_stay_as_they_came() {
    let (file, mut log) = in_file();
    let now = mono_ns();
    log.sender().line(phase(now));
    for (after, text) in [(30, "d"), (10, "a"), (20, "b"), (20, "c")] {
        log.sender().line(output(now + after * MS, text));
    }
    // Before the first line: not part of this run.
    log.sender().line(output(now - MS, "early"));
    end(&log);
    log.finish(PATIENCE).unwrap();
    assert_eq!(texts(file), ["-", "early", "a", "b", "c", "d", "-"]);
}

#[test]
fn a_line_waits_for_earlier_ones_but_not_for_long() {
    let (file, mut log) = in_file();
    log.sender().line(output(mono_ns(), "b"));
    thread::sleep(Duration::from_millis(100));
    assert_eq!(file.metadata().unwrap().len(), 0);
    log.sender().line(output(mono_ns() - 150 * MS, "x"));
    let give_up = mono_ns() + 5000 * MS;
    while file.metadata().unwrap().len() == 0 && mono_ns() < give_up {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(250));
    // It sorts before lines that are already in the file: it is written at once.
    log.sender().line(output(mono_ns() - 1000 * MS, "late"));
    end(&log);
    log.finish(PATIENCE).unwrap();
    assert_eq!(texts(file), ["b", "x", "late", "-"]);
}

#[test]
fn many_lines_at_once_are_not_lost() {
    let (file, mut log) = in_file();
    // Fewer than what may wait: the thread that writes may have no CPU meanwhile.
    const LINES: u32 = 30_000;
    for n in 0..LINES {
        log.sender().line(output(mono_ns(), n.to_string()));
    }
    end(&log);
    log.finish(PATIENCE).unwrap();
    assert_eq!(log.sender().lost(), 0);
    let expected = (0..LINES).map(|n| n.to_string()).chain(["-".into()]);
    assert!(texts(file).into_iter().eq(expected));
}

#[test]
fn a_reader_that_stands_still_costs_output_alone_and_that_is_said() {
    let (reader, writer) = pipe().unwrap();
    let mut log = SortedLog::new(Clock::now(), Some(File::from(writer))).unwrap();
    let text = "x".repeat(64 << 10);
    let sent = 2 * MAX_BEHIND / text.len();
    for _ in 0..sent {
        log.sender().line(output(mono_ns(), &text[..]));
    }
    (0..10).for_each(|_| log.sender().line(phase(mono_ns())));
    let lost = log.sender().lost();
    assert!(lost as usize > sent / 3, "{lost} of {sent}");
    let reading = thread::spawn(move || values(BufReader::new(File::from(reader))));
    thread::sleep(Duration::from_millis(500));
    end(&log);
    log.finish(PATIENCE).unwrap();
    drop(log);
    let lines = reading.join().unwrap();
    let of = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
    assert_eq!(of("phase").count(), 10);
    assert_eq!(of("output").count() as u64, sent as u64 - lost);
    let told: u64 = of("lost")
        .map(|line| line["output_lines"].as_u64().unwrap())
        .sum();
    assert_eq!(told, lost);
    assert_eq!(lines.last().unwrap()["type"], "end");
}

#[test]
fn nobody_waits_for_a_reader_for_ever() {
    let (_reader, writer) = pipe().unwrap();
    let mut log = SortedLog::new(Clock::now(), Some(File::from(writer))).unwrap();
    log.sender().line(output(mono_ns(), "x".repeat(1 << 20)));
    end(&log);
    let error = log.finish(Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_full_disk_is_said_at_the_end() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut log = SortedLog::new(Clock::now(), Some(full)).unwrap();
    log.sender().line(phase(mono_ns()));
    end(&log);
    let error = log.finish(PATIENCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

#[test]
fn without_a_file_lines_go_nowhere() {
    let mut log = SortedLog::new(Clock::now(), None).unwrap();
    log.sender().line(phase(mono_ns()));
    assert_eq!(log.sender().lost(), 0);
    log.finish(PATIENCE).unwrap();
}
