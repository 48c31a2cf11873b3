// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real command: its exit codes, its lines, and what remains after it. Needs root.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use support::host::soon;
use support::site::Scratch;
use support::validator::assert_valid_log as assert_valid;

fn emud(arguments: &[&str]) -> Command {
    let mut command = Command::new(support::emud_path());
    command.args(arguments);
    command
}

fn socket(name: &str) -> String {
    let name = format!("emud-live-{}-{name}.sock", std::process::id());
    std::env::temp_dir().join(name).display().to_string()
}

/// Independent of other load of the machine.
fn assert_seen(code: Option<i32>, end: &Value) {
    let resources = end["resources"].as_object().unwrap();
    let contended = resources.values().any(|verdict| verdict == "contended");
    assert_eq!(code, Some(if contended { 3 } else { 0 }), "{end:#}");
}

struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn new(arguments: &[&str]) -> Self {
        let mut child = emud(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_report_is_contention_and_a_signal_ends_the_run() {
    for signal in [Signal::INT, Signal::TERM] {
        let socket = socket(&format!("{signal:?}"));
        let mut running = Running::new(&["monitor", "--socket", &socket]);
        let start = running.line();
        assert_eq!(start["socket"], socket);
        let report = ["alarm", "jitter", "--value", "12ms", "--threshold", "10ms"];
        let told = emud(&report).args(["--socket", &socket]).status().unwrap();
        assert!(told.success());
        running.signal(signal);
        let mut lines = vec![start];
        while lines.last().unwrap()["type"] != "end" {
            lines.push(running.line());
        }
        assert_valid(&lines);
        let end = lines.last().unwrap();
        assert_eq!(end["reason"], "signal");
        assert_eq!(end["alarms"]["application"], 1);
        assert_seen(running.child.wait().unwrap().code(), end);
        assert!(!std::path::Path::new(&socket).exists());
        let none = emud(&report).args(["--socket", &socket]).output().unwrap();
        assert_eq!(none.status.code(), Some(66));
    }
}

#[test]
fn a_time_ends_the_run_and_the_file_is_as_the_output() {
    let (socket, file) = (socket("time"), socket("time") + ".json");
    let mut command = emud(&["monitor", "--duration", "300ms", "--socket", &socket]);
    let out = command.args(["--json", "-o", &file]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    std::fs::remove_file(file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_valid(&lines);
    assert_seen(out.status.code(), lines.last().unwrap());
}

/// A window of 2 s needs no capability beside.
#[test]
fn pressure_alone_is_watched_or_refused() {
    let socket = socket("psi");
    let mut command = emud(&["monitor", "--only", "psi", "--psi", "1s/2s"]);
    command.args(["--duration", "100ms", "--json", "--socket", &socket]);
    let out = command.output().unwrap();
    let code = out.status.code();
    if !std::path::Path::new("/proc/pressure/cpu").exists() {
        assert_eq!(code, Some(69), "{out:?}");
        return;
    }
    let lines: Vec<Value> = (out.stdout.split(|byte| *byte == b'\n'))
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_valid(&lines);
    for resource in ["cpu", "memory", "disk"] {
        assert_eq!(lines[0]["watched"][resource], "yes", "{resource}");
    }
    assert_seen(code, lines.last().unwrap());
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_run() {
    let socket = socket("head");
    let mut running = Running::new(&["monitor", "--socket", &socket]);
    running.line();
    let Running { child, out } = &mut running;
    let closed = std::mem::replace(out, BufReader::new(dummy()));
    drop(closed);
    let begin = Instant::now();
    let code = child.wait().unwrap().code().unwrap();
    assert!([0, 3].contains(&code), "{code}");
    assert!(begin.elapsed() < Duration::from_secs(20));
}

/// A pipe that replaces another one.
fn dummy() -> std::process::ChildStdout {
    let mut echo = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    echo.wait().unwrap();
    echo.stdout.take().unwrap()
}

#[test]
fn what_cannot_be_done_has_its_exit_code() {
    let of = |arguments: &[&str]| emud(arguments).output().unwrap().status.code();
    let socket = socket("codes");
    let folder = ["monitor", "-o", "/proc/none/log", "--socket", &socket];
    assert_eq!(of(&folder), Some(73));
    let address = ["monitor", "--metrics", "nowhere", "--socket", &socket];
    assert_eq!(of(&address), Some(64));
    let place = ["monitor", "--socket", "/proc/none.sock"];
    assert_eq!(of(&place), Some(73));
    assert_eq!(of(&["monitor", "--stop-after", "0"]), Some(64));
    assert_eq!(of(&["monitor", "--json", "--text"]), Some(64));
    assert_eq!(of(&["monitor", "reset", "--socket", &socket]), Some(66));
    let full = emud(&["monitor", "--duration", "100ms", "--socket", &socket])
        .stdout(
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(74));
}

/// The thread that judges is real-time, the commands for its alarms are not.
#[test]
fn a_command_does_not_inherit_the_priority() {
    let scratch = Scratch::new();
    let (socket, file) = (socket("class"), scratch.join("stat"));
    // It runs once more when the alarm ends.
    let command = format!(
        "cd {} && cat /proc/self/stat > part && mv part stat",
        scratch.display()
    );
    let mut running = Running::new(&["monitor", "--socket", &socket, "--on-alarm", &command]);
    let start = running.line();
    assert_eq!(start["notes"], serde_json::json!([]), "rejected here");
    let told = emud(&["alarm", "x", "--socket", &socket]).status().unwrap();
    assert!(told.success());
    soon("the command has run", || file.exists());
    let stat = std::fs::read_to_string(&file).unwrap();
    assert_eq!(schedule(&stat), (0, 0, 0));
    let pid = running.child.id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // SCHED_RR, priority 1. The tests may run under `nice`.
    let (nice, ..) = schedule(&std::fs::read_to_string("/proc/self/stat").unwrap());
    assert_eq!(schedule(&stat), (nice, 1, 2));
    running.signal(Signal::TERM);
    running.child.wait().unwrap();
}

/// Nice value, real-time priority and policy, fields 19, 40 and 41 of proc_pid_stat(5).
fn schedule(stat: &str) -> (i32, i32, i32) {
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let field = |n: usize| fields[n - 3].parse().unwrap();
    (field(19), field(40), field(41))
}
