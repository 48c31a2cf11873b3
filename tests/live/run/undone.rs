// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything is removed, however a run ends. Remaining interfaces and children are checked after
//! every test; here also processes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::host::is_holder;
use support::emud_path;
use support::host::{interfaces, pids, soon};
use support::runs::{Folder, TAG};

/// Processes of the emud under test, and those it runs; without processes that only wait to be
/// reaped.
fn ours() -> BTreeSet<u32> {
    let emud = fs::canonicalize(emud_path()).unwrap();
    let sleeps = sleeping();
    let tag = format!("{TAG}={}\0", std::process::id());
    pids(|pid| {
        let of = |file: &str| format!("/proc/{pid}/{file}");
        let words = fs::read(of("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let environment = fs::read(of("environ")).unwrap_or_default();
        let own = String::from_utf8_lossy(&environment).contains(&tag);
        own && fs::read_link(of("exe")).is_ok_and(|exe| exe == emud) || words.trim() == sleeps
    })
}

/// A command line that no other test uses.
fn sleeping() -> String {
    format!("sleep 1000.{}", std::process::id())
}

fn start(folder: &Folder) -> Child {
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let script = format!("setsid {0} & echo started; exec {0}", sleeping());
    let mut emud = folder.command("--profile ./p.toml", &["sh", "-c", &script]);
    emud.stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn started(emud: &mut Child) {
    let mut line = String::new();
    BufReader::new(emud.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "started\n");
}

fn nothing_left(processes: &BTreeSet<u32>) {
    soon("all processes end", || ours() == *processes);
    soon("the host's end goes", || interfaces() == ["lo"]);
}

pub fn by_signals() {
    let processes = ours();
    let cases = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    for (signal, code) in cases {
        let folder = Folder::new();
        let mut emud = start(&folder);
        started(&mut emud);
        assert_eq!(interfaces().len(), 2);
        kill_process(Pid::from_child(&emud), signal).unwrap();
        let ran = folder.ran(&emud.wait_with_output().unwrap()).expect(code);
        assert_eq!(ran.one("end")["verdict"], "unwatched");
        nothing_left(&processes);
    }
}

/// One of the terminal's reaches emud and the program, which shares it although its output does not go there.
pub fn a_signal_of_the_terminal_comes_once() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let script = "n=0; trap 'n=$((n + 1))' INT; echo ready; i=0; \
                  while [ $i -lt 30 ]; do sleep 0.1; i=$((i + 1)); [ $n = 0 ] || i=$((i + 9)); done; echo came $n";
    folder.file("count.sh", script);
    let emud = emud_path();
    let line = format!(
        "{} run --monitor monitor.toml --log run.log --profile ./p.toml -- sh count.sh >out",
        emud.display()
    );
    folder.file("monitor.toml", support::runs::DEAF);
    let mut terminal = folder.terminal(&line);
    let mut terminal = terminal.stdout(Stdio::null()).spawn().unwrap();
    let out = || fs::read_to_string(folder.path("out")).unwrap_or_default();
    soon("the program starts", || out().contains("ready"));
    std::io::Write::write_all(terminal.stdin.as_mut().unwrap(), b"\x03").unwrap();
    terminal.wait().unwrap();
    assert!(out().contains("came 1\n"), "{}", out());
}

/// Later steps are skipped after a signal ended the program.
pub fn nothing_starts_after_a_signal() {
    let folder = Folder::new();
    let text = "[node.a]\ncommand = \"echo started; exec sleep 99\"\n\
        [node.b]\ncommand = \"echo too late\"\nwaits-for = [\"a\"]\n\
        [link.w]\nbetween = [\"a\", \"b\"]\n";
    let scenario = folder.file("s.toml", text);
    let mut emud = folder.command(&format!("--scenario {scenario}"), &[]);
    let mut emud = emud
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(emud.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "a| started\n");
    kill_process(Pid::from_child(&emud), Signal::INT).unwrap();
    let ran = folder.ran(&emud.wait_with_output().unwrap()).expect(130);
    assert!(!ran.out.contains("too late"), "{}", ran.out);
    assert_eq!(ran.one("exit")["node"], "a");
}

/// At any moment of its life, and the next one works.
pub fn after_kill() {
    let processes = ours();
    for ms in [0, 20, 40, 60, 80, 100, 130, 160, 200, 300, 500] {
        let folder = Folder::new();
        let mut emud = start(&folder);
        sleep(Duration::from_millis(ms));
        emud.kill().unwrap();
        emud.wait().unwrap();
        nothing_left(&processes);
    }
    let folder = Folder::new();
    let mut emud = start(&folder);
    started(&mut emud);
    emud.kill().unwrap();
    emud.wait().unwrap();
    folder.run("--profile ./p.toml", &["true"]).expect(0);
    nothing_left(&processes);
}

/// A holder that starts when everything else in its namespace is gone.
pub fn a_holder_that_starts() {
    let processes = ours();
    for _ in 0..4 {
        let folder = Folder::new();
        let mut emud = start(&folder);
        let is_new_holder = |pid: u32| is_holder(&pid.to_string()) && ours().contains(&pid);
        let holder = loop {
            let found = pids(is_new_holder).into_iter().next();
            if let Some(pid) = found.and_then(|pid| Pid::from_raw(pid as i32)) {
                break pid;
            }
            assert_eq!(emud.try_wait().unwrap(), None, "without a holder");
        };
        kill_process(holder, Signal::STOP).unwrap();
        emud.kill().unwrap();
        emud.wait().unwrap();
        let others = || {
            ours()
                .into_iter()
                .filter(|&pid| pid as i32 != holder.as_raw_pid())
        };
        soon("all other processes end", || {
            others().eq(processes.iter().copied())
        });
        kill_process(holder, Signal::CONT).unwrap();
        nothing_left(&processes);
    }
}

/// Its interfaces are in the nodes, and end with the process that serves them.
pub fn a_medium_after_kill() {
    let processes = ours();
    let text = format!(
        "[medium.wlan0]\n[node.a]\ncommand = \"{0}\"\n[node.b]\ncommand = \"ping -q -i 0.01 a\"\n",
        sleeping()
    );
    for ms in [0, 50, 100, 200, 400, 800] {
        let folder = Folder::new();
        let scenario = folder.file("s.toml", &text);
        let mut emud = folder.command(&format!("--scenario {scenario}"), &[]);
        let mut emud = emud
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(ms));
        emud.kill().unwrap();
        emud.wait().unwrap();
        nothing_left(&processes);
    }
}

/// The runs before it still have results, whether it fails or cannot begin.
pub fn when_a_later_run_fails() {
    for (log, code) in [("run.log", 69), ("run.2.log", 73)] {
        let folder = Folder::new();
        fs::create_dir(folder.path(log)).unwrap();
        let text = "name = \"s\"\n[link.w]\nbetween = [\"a\", \"b\"]\n[node.b]\n\
            [node.a]\ncommand = \"true\"\nprepare = \"test $EMUD_REPEAT = 1\"\n";
        let scenario = folder.file("s.toml", text);
        let words = format!("--scenario {scenario} --repeat 3 --junit junit.xml");
        let emud = folder.command(&words, &[]).output().unwrap();
        let err = String::from_utf8_lossy(&emud.stderr);
        assert_eq!(emud.status.code(), Some(code), "{err}");
        assert!(err.contains("1 runs, 1 counted"), "{err}");
        let junit = fs::read_to_string(folder.path("junit.xml")).unwrap();
        for part in ["s 1 of 3", "s 2 of 3", "<failure type=\"run\""] {
            assert!(junit.contains(part), "{junit}");
        }
    }
}

pub fn when_preparation_fails() {
    let processes = ours();
    let folder = Folder::new();
    let head = "[link.w]\nbetween = [\"a\", \"b\"]\n[node.a]\ncommand = \"true\"\n";
    let cases = [
        ("[node.b]\nprepare = [\"exit 3\"]\n", "exit code 3"),
        (
            "[node.b]\ncommand = \"exit 4\"\nservice = true\nready = \"false\"\n",
            "exit code 4",
        ),
        (
            "[node.b]\ncommand = \"sleep 99\"\nservice = true\nready = \"false\"\n",
            "never succeeded",
        ),
        (
            "[node.b]\nprepare = [\"sleep 99\"]\n",
            "`sleep 99` did not end",
        ),
    ];
    for (node, said) in cases {
        let text = format!("ready-within = \"1s\"\n{head}{node}");
        let scenario = folder.file("s.toml", &text);
        let ran = folder
            .run(&format!("--scenario {scenario}"), &[])
            .expect(69);
        assert!(ran.err.contains(said), "{}", ran.err);
        assert_eq!(ran.one("end")["verdict"], "invalid");
        nothing_left(&processes);
    }
}
