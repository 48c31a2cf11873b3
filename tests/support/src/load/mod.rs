// SPDX-License-Identifier: MIT OR Apache-2.0
//! Load generators. Each is a separate process (this program again, with a hidden argument), so
//! that it can run in a cgroup, a namespace, on a CPU, and be killed. It executes lines from its
//! standard input and prints to its standard output what it did and when (CLOCK_MONOTONIC).

mod cpu;
mod disk;
mod fuse;
mod memory;
mod network;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::clock;

/// Makes this program a load.
pub const ARGUMENT: &str = "--load";

/// The command of a load begins with this, unless it has a different name.
pub const COMMAND: &str = "mon-";

/// Time limit for a single command of a load.
const LONGEST: Duration = Duration::from_secs(120);

/// A running load; killed when dropped.
pub struct Load {
    child: Child,
    said: Receiver<String>,
}

impl Load {
    /// Starts a load and waits until it is ready.
    pub fn start(kind: &str, options: &[(&str, &str)]) -> Self {
        let mut child = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .arg(kind)
            .args(
                options
                    .iter()
                    .map(|(name, value)| format!("{name}={value}")),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start a load");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (say, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        let load = Self { child, said };
        assert_eq!(load.hear(), "ready", "the load {kind} {options:?}");
        load
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn say(&mut self, command: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{command}").expect("write to the load");
    }

    /// Returns the next line of its output.
    pub fn hear(&self) -> String {
        self.said
            .recv_timeout(LONGEST)
            .expect("an answer of the load")
    }

    /// Sends a command and waits for its answer, numbers after a name.
    pub fn ask(&mut self, command: &str) -> Vec<u64> {
        self.say(command);
        numbers(&self.hear())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The numbers in a line.
pub fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// The arguments of a load.
struct Options(BTreeMap<String, String>);

impl Options {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number<T: FromStr>(&self, name: &str, otherwise: T) -> T {
        self.text(name).map_or(otherwise, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name}={text} is not a number"))
        })
    }
}

/// The load's side of [`Load`]; arguments are a kind and `name=value`.
pub fn main(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let kind = arguments.next().expect("a kind of load");
    let options = Options(
        arguments
            .map(|argument| {
                let (name, value) = argument.split_once('=').expect("name=value");
                (name.to_owned(), value.to_owned())
            })
            .collect(),
    );
    enter(&kind, &options);
    let commands = commands();
    settle(&options);
    match kind.as_str() {
        "cpu" => cpu::run(&commands),
        "disk" => disk::run(&options, &commands),
        "fuse" => fuse::run(&options, &commands),
        "memory" => memory::run(&options, &commands),
        "network" => network::run(&options, &commands),
        _ => panic!("no such load: {kind}"),
    }
    ExitCode::SUCCESS
}

/// Settings of the whole process.
fn enter(kind: &str, options: &Options) {
    // SAFETY: plain system calls.
    unsafe {
        // A test that dies ends its loads.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
    let name = (options.text("name")).map_or_else(|| format!("{COMMAND}{kind}"), str::to_owned);
    let name = std::ffi::CString::new(name).expect("no NUL");
    // SAFETY: the name outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    for group in options
        .text("cgroups")
        .into_iter()
        .flat_map(|s| s.split(','))
    {
        std::fs::write(format!("{group}/cgroup.procs"), "0")
            .unwrap_or_else(|e| panic!("enter {group}: {e}"));
    }
    if let Some(namespace) = options.text("netns") {
        crate::enter(namespace);
    }
}

/// Settings of the working thread only: the one that reads commands must not disturb it.
fn settle(options: &Options) {
    if let Some(cpu) = options.text("cpu") {
        clock::pin(cpu.parse().expect("a number of a CPU"));
    }
    let policy = match options.text("policy") {
        Some("fifo") => libc::SCHED_FIFO,
        // Ahead of what is not real-time, and every 100 ms it lets holders run, which have this policy and
        // priority: with SCHED_FIFO the links of all tests beside it lost their lease, and their packets passed.
        Some("rr") => libc::SCHED_RR,
        _ => return,
    };
    clock::schedule(policy, options.number("priority", 1));
}

fn commands() -> Receiver<String> {
    let (say, said) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if say.send(line).is_err() {
                return;
            }
        }
    });
    said
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("write to the test");
}

/// The name of a command and the numbers after it.
fn parsed(command: &str) -> (&str, Vec<u64>) {
    let word = command.split(' ').next().unwrap_or(command);
    (word, numbers(command))
}
