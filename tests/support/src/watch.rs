// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud monitor`, watched from outside: its lines, and when each of them was readable.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{emud_path, run};
use crate::{clock, site};

/// Time limit for everything here.
const LONGEST: Duration = Duration::from_secs(20);

/// The exit code of a run that saw contention.
pub const SEEN: i32 = 3;

#[derive(Debug, Clone)]
pub struct Line {
    /// CLOCK_MONOTONIC.
    pub readable_ns: u64,
    pub json: Value,
}

impl Line {
    pub fn is(&self, kind: &str) -> bool {
        self.json["type"] == kind
    }

    pub fn number(&self, pointer: &str) -> u64 {
        self.json
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{pointer} in {}", self.json))
    }

    pub fn text(&self, pointer: &str) -> &str {
        self.json
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("{pointer} in {}", self.json))
    }

    pub fn resource(&self) -> &str {
        self.text("/resource")
    }

    pub fn mono_ns(&self) -> u64 {
        self.number("/mono_ns")
    }

    /// Whether it is an alarm about this CPU.
    pub fn is_busy_cpu(&self, cpu: &str) -> bool {
        self.is("alarm") && self.json["scope"]["cpu"].as_u64() == cpu.parse().ok()
    }

    /// "cpu", "network external", "page-in", ...: the name in the table.
    pub fn criterion(&self) -> String {
        let resource = self.resource();
        let part = ["class", "direction"]
            .iter()
            .find_map(|name| self.json["scope"][name].as_str());
        match (resource, part) {
            ("memory", Some(direction)) => direction.to_owned(),
            (_, Some(part)) => format!("{resource} {part}"),
            _ => resource.to_owned(),
        }
    }

    /// The share of the groups whose name contains this.
    pub fn share_of(&self, name: &str) -> f64 {
        let shares = self.json["shares"].as_array().expect("shares");
        shares
            .iter()
            .filter(|share| share["group"].as_str().is_some_and(|g| g.contains(name)))
            .map(|share| share["share"].as_f64().expect("a share"))
            .sum()
    }
}

#[derive(Default)]
struct Said {
    lines: Vec<Line>,
    ended: bool,
}

type Lines = Arc<(Mutex<Said>, Condvar)>;

/// A running monitor; killed when dropped.
pub struct Watch {
    child: Child,
    lines: Lines,
    errors: Option<JoinHandle<String>>,
    pub socket: PathBuf,
}

/// A monitor that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub lines: Vec<Line>,
    pub err: String,
}

impl Watch {
    /// Starts one and waits until it watches.
    pub fn start(options: &[&str]) -> Self {
        Self::start_as(Command::new(emud_path()), options)
    }

    /// The same, without other load of this machine.
    pub fn alone(options: &[&str]) -> Self {
        let ignored = site::others_ignored();
        let mut all: Vec<&str> = ignored.iter().map(String::as_str).collect();
        all.extend(options);
        Self::start(&all)
    }

    pub fn start_as(command: Command, options: &[&str]) -> Self {
        let watch = Self::spawn(command, options);
        if watch.next(0, LONGEST, |line| line.is("start")).is_none() {
            panic!("the monitor did not start: {:?}", watch.kill());
        }
        watch
    }

    /// Starts one.
    pub fn spawn(command: Command, options: &[&str]) -> Self {
        let socket = std::env::temp_dir().join(site::unique("socket"));
        Self::spawn_at(command, socket, options)
    }

    /// Starts one with this socket.
    pub fn spawn_at(mut command: Command, socket: PathBuf, options: &[&str]) -> Self {
        let mut child = command
            .args(["monitor", "--json", "--socket"])
            .arg(&socket)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start emud monitor");
        let out = child.stdout.take().expect("a pipe");
        let mut err = child.stderr.take().expect("a pipe");
        let lines = Lines::default();
        let said = lines.clone();
        std::thread::spawn(move || read_lines(out, &said));
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            text
        });
        Self {
            child,
            lines,
            errors: Some(errors),
            socket,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the number of lines; later ones have this number or a higher one.
    pub fn mark(&self) -> usize {
        self.lines.0.lock().expect("the lines").lines.len()
    }

    /// The lines from a mark on.
    pub fn since(&self, mark: usize) -> Vec<Line> {
        self.lines.0.lock().expect("the lines").lines[mark..].to_vec()
    }

    /// Returns the first matching line from a mark on; `None` if it was not printed in time.
    pub fn next(
        &self,
        mark: usize,
        longest: Duration,
        wanted: impl Fn(&Line) -> bool,
    ) -> Option<Line> {
        let until = Instant::now() + longest;
        let (said, more) = (&self.lines.0, &self.lines.1);
        let mut said = said.lock().expect("the lines");
        loop {
            if let Some(line) = said.lines[mark..].iter().find(|line| wanted(line)) {
                return Some(line.clone());
            }
            let left = until.saturating_duration_since(Instant::now());
            if said.ended || left.is_zero() {
                return None;
            }
            said = more.wait_timeout(said, left).expect("the lines").0;
        }
    }

    /// The line that begins a run.
    pub fn begin(&self) -> Line {
        self.since(0)
            .into_iter()
            .find(|line| line.is("start"))
            .expect("a start")
    }

    /// Between two ticks of the monitor, ns.
    pub fn tick_ns(&self) -> u64 {
        self.begin().number("/tick_ns")
    }

    /// The first alarm of a resource from a mark on.
    pub fn alarm(&self, mark: usize, resource: &str, longest: Duration) -> Option<Line> {
        self.next(mark, longest, |line| {
            line.is("alarm") && line.resource() == resource
        })
    }

    /// The end of an episode.
    pub fn clear(&self, alarm: &Line, longest: Duration) -> Option<Line> {
        let episode = alarm.number("/episode");
        self.next(0, longest, |line| {
            line.is("clear") && line.number("/episode") == episode
        })
    }

    /// Returns whether an episode of the wanted alarms was open at a time: further contention then
    /// raises no alarm.
    pub fn going_on(&self, at_ns: u64, wanted: impl Fn(&Line) -> bool) -> bool {
        let over = |alarm: &Line| {
            let clear = self.clear(alarm, Duration::ZERO);
            clear.is_some_and(|clear| clear.mono_ns() < at_ns)
        };
        let mut alarms = self.alarms_since(0).into_iter();
        alarms.any(|alarm| wanted(&alarm) && alarm.mono_ns() < at_ns && !over(&alarm))
    }

    pub fn alarms_since(&self, mark: usize) -> Vec<Line> {
        let mut lines = self.since(mark);
        lines.retain(|line| line.is("alarm"));
        lines
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: a plain call; the process is a child that has not been waited for.
        unsafe { libc::kill(self.pid() as libc::pid_t, signal) };
    }

    /// Ends it with Ctrl-C, and returns its last output.
    pub fn end(self) -> Ended {
        self.signal(libc::SIGINT);
        self.wait(LONGEST)
    }

    /// Ends it with kill -9, and returns its output.
    pub fn kill(mut self) -> Ended {
        self.signal(libc::SIGKILL);
        let status = self.child.wait().expect("its end");
        self.ended(status)
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self, longest: Duration) -> Ended {
        let until = Instant::now() + longest;
        loop {
            if let Some(status) = self.child.try_wait().expect("its end") {
                return self.ended(status);
            }
            assert!(Instant::now() < until, "no end: {:?}", self.kill());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn ended(&mut self, status: ExitStatus) -> Ended {
        let errors = self.errors.take().expect("not ended before");
        let err = errors.join().expect("its errors");
        let (said, more) = (&self.lines.0, &self.lines.1);
        let mut said = said.lock().expect("the lines");
        while !said.ended {
            said = more.wait(said).expect("the lines");
        }
        Ended {
            code: status.code().unwrap_or(-1),
            lines: said.lines.clone(),
            err,
        }
    }

    /// `emud monitor reset` for this one.
    pub fn reset(&self) {
        let mut command = Command::new(emud_path());
        command.args(["monitor", "reset", "--socket"]);
        run(command.arg(&self.socket)).expect(0);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.errors.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Ended {
    /// Its last line.
    pub fn end(&self) -> &Line {
        let last = self.lines.last().filter(|line| line.is("end"));
        last.unwrap_or_else(|| panic!("no end line: {} {:?}", self.err, self.lines.last()))
    }

    pub fn of(&self, kind: &str) -> Vec<&Line> {
        self.lines.iter().filter(|line| line.is(kind)).collect()
    }

    pub fn verdict_on(&self, resource: &str) -> &str {
        self.end().text(&format!("/resources/{resource}"))
    }
}

/// The instrument must not add to what it measures: it has priority over all ordinary tasks.
fn read_lines(out: impl Read, lines: &Lines) {
    clock::real_time(10);
    let mut out = BufReader::new(out);
    let mut text = String::new();
    loop {
        text.clear();
        let got = out.read_line(&mut text);
        let readable_ns = clock::now();
        let (said, more) = (&lines.0, &lines.1);
        let mut said = said.lock().expect("the lines");
        if !matches!(got, Ok(len) if len > 0) {
            said.ended = true;
            more.notify_all();
            return;
        }
        // Output that is not JSON is kept as text, which no test accepts as a line.
        let json = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.as_str()));
        said.lines.push(Line { readable_ns, json });
        more.notify_all();
    }
}
