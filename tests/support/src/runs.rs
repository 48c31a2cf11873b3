// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the emud under test, and their logs.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::emud_path;
use crate::site::unique;

/// Thresholds that no test's load reaches, for a machine that is not judged.
pub const DEAF: &str = "\
cpu = \"off\"
network = \"off\"
memory = \"off\"
disk = \"off\"
emulator = \"off\"
";

/// Thresholds that are watched, and that no load of a few seconds reaches.
pub const WATCHED: &str = "\
cpu.theta = \"60min\"
network = \"off\"
memory = \"off\"
disk.theta = \"60min\"
emulator = \"off\"
";

/// In the environment of every run: the process of the test.
pub const TAG: &str = "EMUD_TEST";

/// A folder for one test's files; deleted with the value.
pub struct Folder(pub PathBuf);

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(unique("run"));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Runs `emud run` with these arguments before the command. Contention is not watched: most
    /// tests are about something else, and the machine may have other load meanwhile.
    pub fn run(&self, words: &str, command: &[&str]) -> Ran {
        let output = self.command(words, command).output().unwrap();
        self.ran(&output)
    }

    /// The same with watched criteria.
    pub fn watched(&self, words: &str, command: &[&str]) -> Ran {
        let output = self.monitored(WATCHED, words, command).output().unwrap();
        self.ran(&output)
    }

    pub fn command(&self, words: &str, command: &[&str]) -> Command {
        self.monitored(DEAF, words, command)
    }

    fn monitored(&self, monitor: &str, words: &str, command: &[&str]) -> Command {
        let mut emud = Command::new(emud_path());
        // Its children inherit it: this distinguishes them from those of other tests.
        emud.env(TAG, std::process::id().to_string());
        emud.args(["run", "--log", &self.path("run.log")]);
        emud.args(["--monitor", &self.file("monitor.toml", monitor)]);
        emud.args(words.split_whitespace());
        if !command.is_empty() {
            emud.arg("--").args(command);
        }
        emud.stdin(Stdio::null()).current_dir(&self.0);
        // Under nohup, or in the background of a script, signals are ignored, and a program keeps
        // that.
        let by_default = || {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
                // SAFETY: no handler is given.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: signal(2) may be called between fork and exec.
        unsafe { emud.pre_exec(by_default) };
        emud
    }

    /// A command line at a terminal, which `script` creates; what is written to it is typed.
    pub fn terminal(&self, line: &str) -> Command {
        let mut script = Command::new("script");
        script
            .args(["-qec", line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            // Progress requires a terminal that can move its cursor.
            .env("TERM", "xterm");
        script
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        script
    }

    /// The same at a terminal; the input ends with `typed`.
    pub fn at_a_terminal(&self, words: &str, typed: &str) -> Ran {
        let deaf = self.file("deaf.toml", DEAF);
        let emud = emud_path();
        let line = format!(
            "{} run --monitor {deaf} --log run.log {words}",
            emud.display()
        );
        let mut script = self.terminal(&line).spawn().unwrap();
        let mut input = script.stdin.take().unwrap();
        input.write_all(typed.as_bytes()).unwrap();
        // An end of the input would be typed, too.
        let output = script.wait_with_output().unwrap();
        drop(input);
        self.ran(&output)
    }

    pub fn ran(&self, output: &Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            log: log(&self.path("run.log")),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The output and files of a run.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
    pub log: Vec<Value>,
}

impl Ran {
    /// Ends the test unless the run is clean; beside other jobs it may be invalid, too, because
    /// they keep a holder from its CPU.
    pub fn done(self) -> Self {
        let busy = self.code == 4 && !crate::full();
        assert!(
            self.code == 0 || busy,
            "{}: {}{}",
            self.code,
            self.out,
            self.err
        );
        self
    }

    /// Ends the test if the exit code differs.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }

    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.log.iter().filter(move |line| line["type"] == kind)
    }

    pub fn one<'a>(&'a self, kind: &'a str) -> &'a Value {
        let mut all = self.of(kind);
        let line = all.next().unwrap_or_else(|| panic!("no {kind}: {self:?}"));
        assert!(all.next().is_none(), "more than one {kind}");
        line
    }

    /// When a phase began, ns.
    pub fn phase(&self, phase: &str) -> u64 {
        let line = self.of("phase").find(|line| line["phase"] == phase);
        line.unwrap()["mono_ns"].as_u64().unwrap()
    }
}

/// Returns all lines of a log; none if there is no log.
pub fn log(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(line).collect()
}

/// min, avg, max and mdev in ms, from what ping prints.
pub fn rtt_ms(out: &str) -> [f64; 4] {
    let line = out.lines().find_map(|line| line.split_once("mdev = "));
    let (_, figures) = line.unwrap_or_else(|| panic!("no figures: {out}"));
    let figures = figures.split(' ').next().unwrap();
    let all: Vec<f64> = figures
        .split('/')
        .map(|text| text.parse().unwrap())
        .collect();
    all.try_into().unwrap()
}
